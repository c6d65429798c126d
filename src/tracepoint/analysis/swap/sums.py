"""What a report says of swapping and reclaim, of the chosen tasks and CPUs."""

from __future__ import annotations

from collections import Counter
from itertools import compress
from typing import TYPE_CHECKING

from tracepoint.analysis.sums import KeyCounts, SampleSums
from tracepoint.analysis.swap.machine import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.analysis.growing import ClosedPart
    from tracepoint.analysis.sections import Choice
    from tracepoint.analysis.swap.machine import Moves, ReclaimRows


class ReclaimSums:
    """The figures of the chosen times of reclaim, by the number of their kind and by task.

    `n_freed` are pages, of those kinds of which that is recorded; `ns` the time of reclaim.
    """

    def __init__(self, tasks: Mapping[int, str], choice: Choice) -> None:
        self._tasks = tasks
        self._choice = choice
        self.kinds: KeyCounts[int] = KeyCounts()
        self.lengths: SampleSums[int] = SampleSums()
        self.n_freed: Counter[int] = Counter()
        self.ns: Counter[int] = Counter()
        self.n_of_task: Counter[int] = Counter()
        self.ns_of_task: Counter[int] = Counter()

    def add(self, part: ClosedPart[ReclaimRows]) -> None:
        """Add the times of a part."""
        rows, numbers = part.rows, part.numbers
        flags = self._choice.flags(rows.tid, rows.cpu, self._tasks)
        self.lengths.add(rows.kind, rows.dur, rows.is_cut, numbers, flags)
        places: Sequence[int] = range(len(part)) if flags is None else [*compress(range(len(part)), flags)]
        self.kinds.add([rows.kind[at] for at in places], [numbers[at] for at in places])
        for at in places:
            kind, tid, dur, n_freed = rows.kind[at], rows.tid[at], rows.dur[at], rows.n_freed[at]
            if n_freed != UNKNOWN:
                self.n_freed[kind] += n_freed
            self.ns[kind] += max(dur, 0)
            self.n_of_task[tid] += 1
            self.ns_of_task[tid] += max(dur, 0)


class ChosenMoves:
    """The moved pages of the chosen tasks and CPUs: records (`n`) and pages, by kind and by task.

    Both are in the order of the first records; `n_major` is by task: those of kind 1.
    """

    def __init__(self, moves: Moves, choice: Choice, tasks: Mapping[int, str]) -> None:
        self.n = self.n_pages = 0
        self.kinds: Counter[int] = Counter()
        self.pages_of_task: Counter[int] = Counter()
        self.n_major: Counter[int] = Counter()
        for (tid, cpu, kind), (n, n_pages) in moves.counts.items():
            if choice.has_cpu(cpu) and choice.has_task(tid, tasks.get(tid, "")):
                self.n += n
                self.n_pages += n_pages
                self.kinds[kind] += n
                self.pages_of_task[tid] += n_pages
                self.n_major[tid] += n if kind == 1 else 0
