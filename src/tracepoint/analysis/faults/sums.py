"""What a report says of page faults, added up part by part."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from tracepoint.analysis.grouping import most_common
from tracepoint.analysis.sums import RowCounts, SampleSums
from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.analysis.faults.build import FaultReader
    from tracepoint.analysis.faults.machine import FaultRows
    from tracepoint.analysis.growing import ClosedPart
    from tracepoint.analysis.sections import Choice

K = TypeVar("K")


class EqualFaults(NamedTuple):
    """What sections tell faults apart by; `region` is the number of one of `known_regions`."""

    tid: int
    ip: int
    code: int
    is_kernel: int
    outcome: int
    waiting: int
    region: int
    doubt: int
    process: int


class FaultSums:
    """How many of the chosen faults are equal in all that sections tell apart, and their times by outcome."""

    def __init__(self, reader: FaultReader, choice: Choice) -> None:
        self._reader = reader
        self._choice = choice
        self._equal = RowCounts(is_in_order=reader.is_in_order)
        self.times: SampleSums[int] = SampleSums()

    @property
    def n(self) -> int:
        """How many faults are chosen."""
        return self._equal.n

    def add(self, part: ClosedPart[FaultRows]) -> None:
        """Add the faults of a part."""
        rows = part.rows
        flags = self._choice.flags(rows.tid, rows.cpu, self._reader.records.names)
        if self._reader.ends:
            # Which of them have no end is counted of all, whatever is chosen.
            self.times.add(rows.outcome, rows.dur, (), part.numbers, flags)
        columns = (
            rows.tid, rows.ip, rows.code, rows.is_kernel, rows.outcome, rows.waiting, rows.region, rows.doubt,
        )  # fmt: skip
        self._equal.add(columns, part.numbers, flags)

    @cached_property
    def _counts(self) -> dict[EqualFaults, int]:
        process_of = self._reader.machine.process_of
        return {EqualFaults._make((*own, process_of(own[0]))): n for own, n in self._equal.counts.items()}

    def by(self, key: Callable[[EqualFaults], K]) -> list[tuple[K, int]]:
        """Return how many faults have each key, the most first."""
        return most_common(self._counts, key)

    def sum(self, is_one: Callable[[EqualFaults], int], of: Callable[[EqualFaults], K]) -> Counter[K]:
        """Return how many faults are of a kind, by what they are of."""
        found: Counter[K] = Counter()
        for own, n in self._counts.items():
            if is_one(own):
                found[of(own)] += n
        return found
