"""What a report says of requests, added up part by part."""

from __future__ import annotations

from array import array
from collections import Counter
from typing import TYPE_CHECKING

from tracepoint.analysis.block.build import device_name, operation
from tracepoint.analysis.block.requests import NEVER
from tracepoint.analysis.spans import OPEN
from tracepoint.analysis.sums import LongestRows, SampleSums
from tracepoint.analysis.units import task_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.analysis.block.build import RequestReader
    from tracepoint.analysis.block.requests import RequestRows
    from tracepoint.analysis.distribution import Samples
    from tracepoint.analysis.growing import ClosedPart
    from tracepoint.analysis.sections import Choice, Value
    from tracepoint.analysis.spans import Hiding

#: A device, what a request does, and whether a loss may hide when it was queued, if it was.
Kind = tuple[int, str, int]


def lengths_of(rows: RequestRows, at: int) -> tuple[int, int, int]:
    """Return how long a request was queued, in the device, and both in ns; OPEN where that is not known."""
    inserted, first, issue, done = rows.inserted[at], rows.first_issue[at], rows.issue[at], rows.done[at]
    queued = OPEN if NEVER in (inserted, first) else first - inserted
    return (queued, OPEN, OPEN) if done == NEVER else (queued, done - issue, done - rows.ts[at])


class DeviceSums:
    """What one device did: when requests began and ended that were seen from begin to end, and counts."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.starts, self.stops = array("q"), array("q")
        self.n_sectors = self.n_merged = self.n_requeues = self.n_errors = self.n_in_parts = 0


class RequestSums:
    """The figures of the chosen requests; of each seen from begin to end its times are kept.

    If a loss may hide when requests were queued depends on whether their device has a queue, which a later
    one may say: those are apart.
    """

    def __init__(self, requests: RequestReader, choice: Choice) -> None:
        self._requests = requests
        self._tasks = requests.records.names
        self._choice = choice
        self.devices: dict[int, DeviceSums] = {}
        # Queued, in the device, in all.
        self._lengths: list[SampleSums[Kind]] = [SampleSums(), SampleSums(), SampleSums()]
        self._missing: list[Counter[Kind]] = [Counter(), Counter(), Counter()]
        self._longest: dict[tuple[int, int], LongestRows[Sequence[Value]]] = {}

    def add(self, part: ClosedPart[RequestRows]) -> None:
        """Add the requests of a part."""
        rows, numbers = part.rows, part.numbers
        flags = self._choice.flags(rows.tid, rows.cpu, self._tasks)
        places = [at for at in range(len(part)) if flags is None or flags[at]]
        names = [operation(word) for word in self._requests.words.all]
        kinds = [(rows.dev[at], names[rows.rwbs[at]], rows.is_start_unknown[at]) for at in places]
        lengths = [lengths_of(rows, at) for at in places]
        own_numbers = [numbers[at] for at in places]
        for which, sums in enumerate(self._lengths):
            values = [length[which] for length in lengths]
            # One that a loss cuts is counted as dropped, also where it has no length for another reason.
            sums.add(kinds, values, [rows.is_cut[at] for at in places], own_numbers)
            self._missing[which].update(
                kind
                for kind, value, at in zip(kinds, values, places, strict=True)
                if value == OPEN and not rows.is_cut[at] and kind[2]
            )
        for at in places:
            self._add_device(rows, at, numbers[at])
        self._add_longest(part, places)

    def _add_device(self, rows: RequestRows, at: int, number: int) -> None:
        own = self.devices.get(rows.dev[at])
        if own is None:
            own = self.devices[rows.dev[at]] = DeviceSums(number)
        own.first = min(own.first, number)
        if rows.done[at] != NEVER and not rows.is_cut[at]:
            own.starts.append(rows.ts[at])
            own.stops.append(rows.done[at])
            own.n_sectors += rows.n_sectors[at]
        own.n_merged += rows.is_merged[at]
        own.n_requeues += rows.n_requeues[at]
        own.n_errors += rows.error[at] != 0
        own.n_in_parts += rows.n_parts[at] > 1

    def _add_longest(self, part: ClosedPart[RequestRows], places: Sequence[int]) -> None:
        rows, numbers, words = part.rows, part.numbers, self._requests.words.all
        whole: dict[tuple[int, int], list[int]] = {}
        for at in places:
            if rows.done[at] != NEVER and not rows.is_cut[at]:
                whole.setdefault((rows.dev[at], rows.is_start_unknown[at]), []).append(at)
        for key, own in whole.items():

            def shown(at: int, own: list[int] = own) -> tuple[Value, ...]:
                row = own[at]
                return (
                    rows.done[row] - rows.ts[row], rows.done[row] - rows.issue[row], rows.ts[row],
                    words[rows.rwbs[row]], rows.sector[row], rows.n_sectors[row], device_name(rows.dev[row]),
                    task_text(self._tasks, rows.tid[row]),
                )  # fmt: skip

            longest = self._longest.setdefault(key, LongestRows(self._choice.most))
            longest.add([rows.done[row] - rows.ts[row] for row in own], [numbers[row] for row in own], shown)

    def longest(self) -> LongestRows[Sequence[Value]]:
        """Return the longest of the requests that were seen from begin to end."""
        found: LongestRows[Sequence[Value]] = LongestRows(self._choice.most)
        for (dev, is_unknown), own in self._longest.items():
            if not is_unknown or dev not in self._requests.queued:
                found.extend(own)
        return found

    def samples(self, which: int, hiding: Hiding) -> dict[str, Samples]:
        """Return how long requests were queued (0), in the device (1) or both (2), by device and kind."""
        sums, missing = self._lengths[which], self._missing[which]
        groups: dict[str, list[Kind]] = {}
        n_dropped: Counter[str] = Counter()
        for kind in dict.fromkeys([*sums.groups, *missing]):
            dev, name, is_unknown = kind
            title = f"{device_name(dev)} {name}"
            is_hidden = is_unknown and dev in self._requests.queued
            if is_hidden and which == len(self._lengths) - 1:
                n_dropped[title] += sums.count(kind) + missing[kind]
                continue
            groups.setdefault(title, []).append(kind)
            n_dropped[title] += missing[kind] if is_hidden else 0
        return sums.by_name(groups, hiding, n_dropped)
