"""What a report says of traps, added up part by part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.analysis.grouping import most_common
from tracepoint.analysis.sums import RowCounts, SampleSums

if TYPE_CHECKING:
    from tracepoint.analysis.growing import ClosedPart
    from tracepoint.analysis.sections import Choice
    from tracepoint.analysis.traps.build import TrapReader
    from tracepoint.analysis.traps.machine import TrapRows


class TrapSums:
    """The figures of the chosen traps; words are by their numbers, `times` are by word."""

    def __init__(self, reader: TrapReader, choice: Choice) -> None:
        self._names = reader.records.names
        self._choice = choice
        self._equal = RowCounts(is_in_order=reader.records.n_parts == 1)
        self.times: SampleSums[int] = SampleSums()

    def add(self, part: ClosedPart[TrapRows]) -> None:
        """Add the traps of a part."""
        rows = part.rows
        flags = self._choice.flags(rows.tid, rows.cpu, self._names)
        # Which of them have no end is counted of all, whatever is chosen.
        self.times.add(rows.what, rows.dur, (), part.numbers, flags)
        self._equal.add((rows.vector, rows.what, rows.tid), part.numbers, flags)

    def vectors(self) -> list[tuple[tuple[int, int], int]]:
        """Return how many traps have each vector and word, the most first."""
        return most_common(self._equal.counts, lambda own: (own[0], own[1]))

    def tasks(self) -> list[tuple[tuple[int, int], int]]:
        """Return how many traps have each word and task, the most first."""
        return most_common(self._equal.counts, lambda own: (own[1], own[2]))
