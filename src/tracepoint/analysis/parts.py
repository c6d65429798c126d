"""The rows of an analysis part by part: kept where there are few of them, else read again where asked for."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from tracepoint.analysis.growing import ClosedPart, Rows, join_rows
from tracepoint.analysis.report import Report
from tracepoint.analysis.sections import MAX_ROWS, Choice

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from tracepoint.analysis.coverage import Coverage
    from tracepoint.analysis.needs import MissingEvent
    from tracepoint.decode.table import ColumnTable

Part = TypeVar("Part")
#: So many rows are kept; of more, only sums.
MAX_KEPT = 4_000_000


class RowParts(Generic[Part]):
    """Rows in parts: those that are `kept`, or what `read` gives to the function that it is called with."""

    def __init__(
        self, read: Callable[[Callable[[Part], object]], object], kept: list[Part] | None = None
    ) -> None:
        self._read = read
        self.kept = kept

    def give(self, *takes: Callable[[Part], object]) -> None:
        """Call all of `takes` with each part, as they come: read again where they are not kept.

        >>> found = []
        >>> RowParts(lambda take: take("read again")).give(found.append)
        >>> RowParts(lambda take: take("read again"), ["kept"]).give(found.append)
        >>> found
        ['read again', 'kept']
        """

        def take(part: Part) -> None:
            for one in takes:
                one(part)

        if self.kept is None:
            self._read(take)
        for part in self.kept or ():
            take(part)


class Summing(Protocol):
    """What adds up the rows of parts."""

    def add(self, part: Any, /) -> None:
        """Add the rows of a part."""


Sums = TypeVar("Sums", bound=Summing)


class SummedParts(RowParts[ClosedPart[Rows]], Generic[Rows, Sums]):
    """The rows of a recording that is read now, in parts, and what they sum up to.

    `read` reads the recording and gives the rows of each part to the function that it is called with; the
    first reading keeps them up to MAX_KEPT, from then on it adds them to what `sums_of` returns for the
    choice that has no limits.  One part is kept whatever its size: it is no more than what was read of it.
    """

    def __init__(
        self,
        read: Callable[[Callable[[ClosedPart[Rows]], object]], object],
        sums_of: Callable[[Choice], Sums],
    ) -> None:
        self._kept: list[ClosedPart[Rows]] = []
        super().__init__(read, self._kept)
        self._sums_of = sums_of
        self._sums: Sums | None = None
        self._last: tuple[Choice, Sums] | None = None
        read(self._take)

    def _take(self, part: ClosedPart[Rows]) -> None:
        if self._sums is not None:
            self._sums.add(part)
            return
        self._kept.append(part)
        if len(self._kept) > 1 and sum(map(len, self._kept)) > MAX_KEPT:
            self._sums = self._sums_of(Choice())
            kept, self._kept, self.kept = self._kept, [], None
            # Each goes before the next is added, as the last one is still being read.
            while kept:
                self._sums.add(kept.pop(0))

    def sums(self, choice: Choice) -> Sums:
        """Return the sums of the chosen rows: those made before where they have all that is shown."""
        if choice.is_of_all and choice.most is not None and choice.most <= MAX_ROWS:
            if self._sums is None:
                self._sums = self._summed(Choice())
            return self._sums
        if self._last is None or self._last[0] != choice:
            self._last = None
            self._last = choice, self._summed(choice)
        return self._last[1]

    def _summed(self, choice: Choice) -> Sums:
        sums = self._sums_of(choice)
        self.give(sums.add)
        return sums

    def figures(self, choice: Choice) -> Sums:
        """Return the sums of the chosen rows for figures that no limit on the rows shown changes."""
        return self.sums(choice._replace(most=MAX_ROWS))

    def all_rows(self, empty: Rows) -> Rows:
        """Return all rows by their numbers, as one part has them; `empty` has none."""
        parts: list[ClosedPart[Rows]] = []
        self.give(parts.append)
        rows = join_rows(parts, empty)
        if self.kept is not None:
            # Not to keep them twice.
            self.kept = [ClosedPart(range(len(rows[0])), rows)]
        return rows


class PartedReport(Report, Generic[Rows, Sums]):
    """A report whose rows are read in parts: of a large recording they are read again where asked for.

    That takes the recording, which must still be open; figures of all tasks and CPUs were summed before.
    """

    def __init__(
        self, coverage: Coverage, missing: Sequence[MissingEvent], parts: SummedParts[Rows, Sums]
    ) -> None:
        super().__init__(coverage, missing)
        self.parts = parts

    @abstractmethod
    def tables_of(self, rows: Callable[[], Rows]) -> dict[str, ColumnTable]:
        """Return the tables that rows are shown as; `rows` gives them when they are asked for."""

    @property
    def whole_tables(self) -> dict[str, ColumnTable]:
        """The tables that are not of the rows: none, unless an analysis has some."""
        return {}

    def read_tables(self, *takes: Callable[[Mapping[str, ColumnTable]], None]) -> None:
        """Call all of `takes` with the tables: of each part where the rows are not kept."""
        if self.parts.kept is not None:
            super().read_tables(*takes)
            return

        def take(part: ClosedPart[Rows]) -> None:
            for one in takes:
                one(self.tables_of(lambda: part.rows))

        self.parts.give(take)
        for one in takes if self.whole_tables else ():
            one(self.whole_tables)
