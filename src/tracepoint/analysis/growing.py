"""Rows that a machine adds by their begin and changes until it hands them over, part by part."""

from __future__ import annotations

from array import array
from itertools import chain
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from typing import Any

# A named tuple of columns, which are arrays.
Rows = TypeVar("Rows", bound="tuple[Any, ...]")


class ClosedPart(Generic[Rows]):
    """Rows that no record can change any more: a named tuple of columns, and the number of each row.

    The numbers are in order: those of a recording say which rows began earlier, also in another part.
    """

    __slots__ = ("numbers", "rows")

    def __init__(self, numbers: Sequence[int], rows: Rows) -> None:
        self.numbers = numbers
        self.rows = rows

    def __len__(self) -> int:
        return len(self.numbers)


class GrowingRows(Generic[Rows]):
    """The rows that a machine may still change: a named tuple of columns, which grow together.

    A machine appends to each of `columns`, whose last row then has the number `last`; by that it finds the
    row again (`place`), whichever were handed over before.

    >>> from tracepoint.named import NamedTuple
    >>> class Times(NamedTuple):
    ...     ts: array
    ...     dur: array
    >>> growing = GrowingRows(Times(array("q"), array("q")))
    >>> for ts in (10, 20, 30):
    ...     _ = growing.columns.ts.append(ts), growing.columns.dur.append(-1)
    >>> growing.columns.dur[growing.place(0)] = growing.columns.dur[growing.place(2)] = 5
    >>> closed = growing.close(held=[1])
    >>> list(closed.numbers), closed.rows.ts, growing.last, growing.place(1)
    ([0, 2], array('q', [10, 30]), 2, 0)
    """

    def __init__(self, columns: Rows) -> None:
        self.columns = columns
        self._first: array[int] = columns[0]
        # A number is that of a row in the columns, and how many rows were handed over; of rows from parts
        # before, which stay, the columns begin with those: their places by number.
        self._n_gone = 0
        self._held: dict[int, int] = {}

    @property
    def last(self) -> int:
        """The number of the row that was added last."""
        return self._n_gone + len(self._first) - 1

    def place(self, number: int) -> int:
        """Return where the columns have a row now."""
        place = number - self._n_gone
        return place if place >= len(self._held) else self._held[number]

    def mark(self, column: array[int], numbers: Iterable[int]) -> None:
        """Set one of the columns to 1 in some rows."""
        for number in numbers:
            column[self.place(number)] = 1

    def close(self, held: Collection[int]) -> ClosedPart[Rows]:
        """Hand over all rows but those with the numbers `held`."""
        stays = sorted(set(held))
        places, numbers = list(map(self.place, stays)), array("q", self.numbers)
        rows = type(self.columns)(*(_without(column, places) for column in self.columns))
        for column in self.columns:
            column[:] = array(column.typecode, map(column.__getitem__, places))
        self._n_gone += len(numbers) - len(stays)
        self._held = {number: place for place, number in enumerate(stays)}
        return ClosedPart(_without(numbers, places), rows)

    def finish(self) -> ClosedPart[Rows]:
        """Hand over all rows, to which none is added any more."""
        return ClosedPart(self.numbers, self.columns)

    @property
    def numbers(self) -> Sequence[int]:
        """The numbers of the rows that are here."""
        rest = range(self._n_gone + len(self._held), self.last + 1)
        return array("q", [*self._held, *rest]) if self._held else rest


def _without(column: array[int], places: Sequence[int]) -> array[int]:
    """Return a column without what is in some places, which are in order."""
    found, start = column[:0], 0
    for place in places:
        found += column[start:place]
        start = place + 1
    return found + column[start:] if start else column[:]


def join_rows(parts: Sequence[ClosedPart[Rows]], empty: Rows) -> Rows:
    """Return the rows of several parts as columns, by their numbers; `empty` has none.

    >>> from tracepoint.named import NamedTuple
    >>> class Times(NamedTuple):
    ...     ts: array
    >>> parts = [ClosedPart(range(1, 2), Times(array("q", [20]))), ClosedPart([0], Times(array("q", [10])))]
    >>> join_rows(parts, Times(array("q"))).ts
    array('q', [10, 20])
    """
    if len(parts) == 1:
        return parts[0].rows
    numbers = array("q", chain.from_iterable(part.numbers for part in parts))
    order = sorted(range(len(numbers)), key=numbers.__getitem__)
    columns = []
    for at, column in enumerate(empty):
        whole = array(column.typecode)
        for part in parts:
            own = part.rows[at]
            # Those that nothing changed are the columns of the records.
            whole += own if isinstance(own, array) else array(column.typecode, own)
        columns.append(array(column.typecode, map(whole.__getitem__, order)))
    return type(empty)(*columns)
