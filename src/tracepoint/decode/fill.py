"""Copying the fields of rows into columns, in Python: what `csrc/decode/columns.c` must give."""

from __future__ import annotations

import struct
import sys
from array import array
from typing import TYPE_CHECKING

from tracepoint.decode.column import Column
from tracepoint.decode.plan import ColumnKind, FieldPlace
from tracepoint.record.field import LOCATION_SIZE, set_bits, unpack_location

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.decode.plan import PlanColumn
    from tracepoint.decode.rows import Row


def fill_slowly(rows: Sequence[Row], plan: Sequence[PlanColumn], *, is_big_endian: bool) -> list[Column]:
    """Return the columns of rows."""
    return [_fill(rows, column, ">" if is_big_endian else "<") for column in plan]


def _fill(rows: Sequence[Row], plan: PlanColumn, order: str) -> Column:
    if plan.kind is ColumnKind.STAMP:
        return Column(plan, len(rows), 0, None, array("q", (row.stamp for row in rows)).tobytes())
    if plan.kind is ColumnKind.CPU:
        return Column(plan, len(rows), 0, None, array("i", (row.cpu for row in rows)).tobytes())
    found = [_bytes_of(plan, row.data, order) for row in rows]
    n_nulls = found.count(None)
    validity = _bitmap(found) if n_nulls else None
    if plan.kind is ColumnKind.TEXT:
        return Column(plan, len(rows), n_nulls, validity, *_texts(found))
    if plan.kind is ColumnKind.NUMBER:
        numbers = b"".join(data or bytes(plan.size) for data in found)
        return Column(plan, len(rows), n_nulls, validity, _in_own_order(plan, numbers, order))
    ends = array("q", [0])
    if plan.kind is ColumnKind.BITS:
        bits = array("I")
        for data in found:
            bits.extend(set_bits(data or b"", plan.element, is_big_endian=order == ">") or ())
            ends.append(len(bits))
        return Column(plan, len(rows), n_nulls, validity, ends.tobytes(), bits.tobytes())
    for data in found:
        ends.append(ends[-1] + len(data or b"") // plan.element)
    items = _in_own_order(plan, b"".join(data or b"" for data in found), order)
    return Column(plan, len(rows), n_nulls, validity, ends.tobytes(), items)


def _in_own_order(plan: PlanColumn, data: bytes, order: str) -> bytes:
    numbers = array(plan.code or "B", data)
    if order != ("<" if sys.byteorder == "little" else ">"):
        numbers.byteswap()
    return numbers.tobytes()


def _bytes_of(plan: PlanColumn, record: bytes, order: str) -> bytes | None:
    """Return the bytes of a field, None when the record does not hold them all, in whole items."""
    start, size = plan.offset, plan.size
    if plan.place is FieldPlace.REST:
        size = max(len(record) - start, 0)
    elif plan.place is not FieldPlace.FIXED:
        if start + LOCATION_SIZE > len(record):
            return None
        origin = start + LOCATION_SIZE if plan.place is FieldPlace.REL_LOC else 0
        start, size = unpack_location(struct.unpack_from(order + "I", record, start)[0], origin)
    if start + size > len(record) or size % plan.element:
        return None
    return record[start : start + size]


def _bitmap(found: Sequence[bytes | None]) -> bytes:
    # Bits after the last row are set, as in the C form.
    bits = bytearray(b"\xff" * (len(found) + 7 >> 3))
    for row, data in enumerate(found):
        if data is None:
            bits[row >> 3] &= ~(1 << (row & 7))
    return bytes(bits)


def _texts(found: Sequence[bytes | None]) -> tuple[bytes, bytes, bytes]:
    """Return indices, the words in the order in which they came, and where they end."""
    words: dict[bytes, int] = {}
    indices = array("i")
    for data in found:
        indices.append(0 if data is None else words.setdefault(data.partition(b"\0")[0], len(words)))
    ends = array("Q", [0])
    for word in words:
        ends.append(ends[-1] + len(word))
    return indices.tobytes(), b"".join(words), ends.tobytes()
