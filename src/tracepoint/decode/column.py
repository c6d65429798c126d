"""One column: memory in the layout of Apache Arrow, and its values in Python."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tracepoint.decode.numbers import null_bits, numbers_of, view_numbers
from tracepoint.decode.plan import ColumnKind, FieldPlace, PlanColumn
from tracepoint.wording import one_line, utf8

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import Buffer

    Value = int | float | str | bytes | list[int] | list[str] | None


@dataclass(frozen=True)
class Column:
    """The values of one field in all rows, or of a slice of them.

    `values` are the numbers; of texts, indices (int32) of words, which end in `bytes_` where `ends` (uint64,
    a 0 first) says; of lists and bytes, where those of a row end (int64, a 0 first) in `bytes_`, of lists of
    texts in `items`.  `validity` has a bit a row, the lowest first, 0 where the record does not hold the
    field; None when all do.
    """

    plan: PlanColumn
    n_rows: int
    n_nulls: int
    validity: Buffer | None
    values: Buffer
    bytes_: Buffer | None = None
    ends: Buffer | None = None
    items: Column | None = None

    def __repr__(self) -> str:
        return f"<Column {one_line(self.plan.name, 40)}, {self.plan.kind.name.lower()}, {self.n_rows:,} rows>"

    def __len__(self) -> int:
        return self.n_rows

    @property
    def name(self) -> str:
        """The name of the field."""
        return self.plan.name

    @property
    def numbers(self) -> memoryview[Any]:
        """The numbers of all rows, of texts the indices of their words; those of null rows mean nothing."""
        return view_numbers(self.values, "i" if self.plan.kind is ColumnKind.TEXT else self.plan.code)

    @cached_property
    def words(self) -> list[str]:
        """The strings of a column of texts, each once; bytes that are not UTF-8 are surrogates."""
        return [word.decode("utf-8", "surrogateescape") for word in self.raw_words]

    @property
    def in_utf8(self) -> Column:
        """A column of texts as libraries take it: valid UTF-8, each text once; others as they are."""
        # Never kept in itself: its memory would wait for the garbage collector.
        return self if self._changed_to_utf8 is None else self._changed_to_utf8

    @cached_property
    def _changed_to_utf8(self) -> Column | None:
        if self.plan.kind is not ColumnKind.TEXT or bytes(self.bytes_ or b"").isascii():
            return None
        texts: dict[bytes, int] = {}
        # Two texts may differ only in bytes that are not UTF-8.
        places = [texts.setdefault(utf8(word), len(texts)) for word in self.words]
        values = self.values
        if len(texts) < len(places):
            # The index of a null row may lead nowhere.
            rows = (0 if self.is_null(n) else places[i] for n, i in enumerate(self.numbers))
            values = array("i", rows).tobytes()
        made = text_column(self.name, (), texts)
        return replace(self, values=values, bytes_=made.bytes_, ends=made.ends)

    @property
    def raw_words(self) -> list[bytes]:
        """The strings as bytes."""
        if self.ends is None or self.bytes_ is None:
            return []
        ends, data = view_numbers(self.ends, "Q"), bytes(self.bytes_)
        return [data[a:b] for a, b in pairwise(ends)]

    def is_null(self, row: int) -> bool:
        """Whether the record of a row is too short to hold the field."""
        return self.validity is not None and not memoryview(self.validity)[row >> 3] >> (row & 7) & 1

    def tolist(self, start: int = 0, stop: int | None = None) -> list[Value]:
        """Return the values of rows as Python's own objects, None where a record does not hold the field."""
        rows = range(*slice(start, stop).indices(self.n_rows))
        match self.plan.kind:
            case ColumnKind.TEXT:
                indices, words = view_numbers(self.values, "i"), self.words
                found: list[Any] = [None if self.is_null(n) else words[indices[n]] for n in rows]
            case ColumnKind.WORDS:
                found = [None if self.is_null(n) else self._words_of(n) for n in rows]
            case ColumnKind.LIST | ColumnKind.BYTES | ColumnKind.BITS:
                found = [None if self.is_null(n) else self._item(n) for n in rows]
            case _:
                found = view_numbers(self.values, self.plan.code)[rows.start : rows.stop].tolist()
                if self.validity is not None:
                    found = [None if self.is_null(n) else v for n, v in zip(rows, found, strict=True)]
        return found

    def _words_of(self, row: int) -> Value:
        first, last = view_numbers(self.values, "q")[row : row + 2]
        return [] if self.items is None else self.items.tolist(first, last)  # type: ignore[return-value]

    def _item(self, row: int) -> Value:
        step = self.plan.item_size
        first, last = view_numbers(self.values, "q")[row : row + 2]
        data = memoryview(self.bytes_ or b"")[first * step : last * step]
        is_bytes = self.plan.kind is ColumnKind.BYTES
        return bytes(data) if is_bytes else view_numbers(data, self.plan.code).tolist()


def number_column(name: str, values: Iterable[int], code: str, null: int | None = None) -> Column:
    """Return a column of integers of a `struct` code; those that are `null` are not there.

    An array of that code is taken as it is.
    """
    data = numbers_of(values, code)
    plan = PlanColumn(name, ColumnKind.NUMBER, FieldPlace.FIXED, 0, data.itemsize, 1, code)
    n_nulls, validity = (0, None) if null is None else null_bits(data, null)
    return Column(plan, len(data), n_nulls, validity if n_nulls else None, data)


def names_column(name: str, texts: Iterable[str]) -> Column:
    """Return a column of texts, of which each is kept once.

    >>> names_column("task", ["sh", "init", "sh"]).tolist()
    ['sh', 'init', 'sh']
    """
    words: dict[str, int] = {}
    rows = array("i", (words.setdefault(text, len(words)) for text in texts))
    return text_column(name, rows, (word.encode("utf-8", "surrogateescape") for word in words))


def text_column(
    name: str, rows: Iterable[int], words: Iterable[bytes], n_nulls: int = 0, validity: Buffer | None = None
) -> Column:
    """Return a column of texts: of each row the index of its word."""
    data, parts, ends = numbers_of(rows, "i"), list(words), array("Q", [0])
    for part in parts:
        ends.append(ends[-1] + len(part))
    plan = PlanColumn(name, ColumnKind.TEXT, FieldPlace.FIXED, 0, 0, 1, "")
    return Column(plan, len(data), n_nulls, validity, data, b"".join(parts), ends.tobytes())
