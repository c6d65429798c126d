"""One column of several that follow each other in time, each given up when it was added."""

from __future__ import annotations

import mmap
import sys
from array import array
from typing import TYPE_CHECKING, Any

from tracepoint.decode.column import Column
from tracepoint.decode.plan import LISTS, ColumnKind

if TYPE_CHECKING:
    from types import ModuleType

    from typing_extensions import Buffer

    from tracepoint.decode.plan import PlanColumn


_LARGE = 1 << 20
# mremap() is Linux's own.
_CAN_MOVE = sys.platform == "linux"


class ColumnJoiner:
    """Adds the values of columns to those before.

    Memory grows in place, so that there is never more than the result and one part.
    """

    def __init__(self, decode: ModuleType, plan: PlanColumn) -> None:
        self._decode = decode
        self._plan = plan
        self._values, self._bytes = _Memory(), _Memory()
        self._words: dict[bytes, int] = {}
        self._last = 0
        self._n_rows = self._n_nulls = 0
        # Rows with the bits of those that hold the field; None where all do.
        self._bits: list[tuple[int, Buffer | None]] = []

    def add(self, column: Column) -> None:
        """Add the rows of a column."""
        self._bits.append((column.n_rows, column.validity))
        self._n_rows += column.n_rows
        self._n_nulls += column.n_nulls
        match self._plan.kind:
            case ColumnKind.TEXT:
                self._add_texts(column)
            case ColumnKind.LIST | ColumnKind.BYTES | ColumnKind.BITS:
                self._add_lists(column)
            case _:
                self._values.add(column.values)

    def _add_texts(self, column: Column) -> None:
        """Give each word one number: that of the first column that has it."""
        words = self._words
        table = array("i", (words.setdefault(word, len(words)) for word in column.raw_words))
        is_same = table == array("i", range(len(table)))
        self._values.add(column.values if is_same else self._decode.remap(column.values, table))

    def _add_lists(self, column: Column) -> None:
        data = _bytes(column.bytes_ or b"")
        ends = self._decode.join_ends((array("q", [0, self._last]), column.values))
        # The 0 at the begin, and where the lists before ended.
        self._values.add(_bytes(ends)[16 if self._values.size else 8 :])
        self._bytes.add(data)
        self._last += len(data) // self._plan.item_size

    def column(self) -> Column:
        """Return the column of all rows."""
        has_ends = self._plan.kind in LISTS
        bytes_: Buffer | None = self._bytes.take() if has_ends else None
        ends: Buffer | None = None
        if self._plan.kind is ColumnKind.TEXT:
            places = array("Q", [0])
            for word in self._words:
                places.append(places[-1] + len(word))
            bytes_, ends = b"".join(self._words), places.tobytes()
        validity = self._all_bits() if self._n_nulls else None
        values = self._values.take()
        return Column(self._plan, self._n_rows, self._n_nulls, validity, values, bytes_, ends)

    def _all_bits(self) -> bytes:
        """Return the bits of all rows; those after the last are set."""
        bits, at = 0, 0
        for n_rows, validity in self._bits:
            own = (1 << n_rows) - 1
            if validity is not None:
                own &= int.from_bytes(memoryview(validity), "little")
            bits |= own << at
            at += n_rows
        size = at + 7 >> 3
        return (bits | (1 << 8 * size) - (1 << at)).to_bytes(size, "little")


class _Memory:
    """Bytes that grow: once there are many, in pages of their own.

    Those are moved, not copied, and leave no holes in the memory of the process.
    """

    def __init__(self) -> None:
        self._data: bytearray | mmap.mmap = bytearray()
        self.size = 0

    def add(self, data: Buffer) -> None:
        """Add bytes at the end."""
        more = _bytes(data)
        end = self.size + len(more)
        if isinstance(self._data, bytearray) and (end < _LARGE or not _CAN_MOVE):
            self._data += more
        else:
            pages = self._reserve(end)
            pages[self.size : end] = more
        self.size = end

    def _reserve(self, size: int) -> mmap.mmap:
        if isinstance(self._data, bytearray):
            made = mmap.mmap(-1, 2 * size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            made[: self.size] = bytes(self._data)
            self._data = made
        elif size > len(self._data):
            self._data.resize(size + size // 2)
        return self._data

    def take(self) -> Buffer:
        """Return the bytes."""
        return self._data if isinstance(self._data, bytearray) else memoryview(self._data)[: self.size]


def _bytes(data: Any) -> memoryview:
    return memoryview(data).cast("B")
