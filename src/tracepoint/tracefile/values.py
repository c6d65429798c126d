"""A record's fields as plain values: numbers, texts, lists; what is cut off is None."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING

from tracepoint.printk.evaluate import parse_field_type
from tracepoint.source.ctype import CType
from tracepoint.source.cvalue import int_type_of
from tracepoint.tracefile.cursor import byte_order

if TYPE_CHECKING:
    from tracepoint.layout.format import EventFormat, FieldFormat

    Value = int | float | str | list[int] | None

# No kernel has them; the events of processes do.
_FLOATS = {"float": 4, "double": 8}
_CHARS = ("char", "const char")


def field_values(form: EventFormat, record: bytes) -> dict[str, Value]:
    """Return the event's own fields by name, in their order.

    `record` begins at `common_type`.  Char arrays are text up to their NUL, other arrays lists of numbers,
    structs and what else is no number hex digits; floating point is a number, or `nan`, `inf`, `-inf`.
    """
    return {field.name: field_value(form, field, record) for field in form.event_fields}


def field_value(form: EventFormat, field: FieldFormat, record: bytes) -> Value:
    """Return the value of one field, None when the record does not hold it."""
    order = byte_order(is_big_endian=form.is_big_endian)
    start, size = field.offset, field.size
    if field.is_data_loc:
        if start + 4 > len(record):
            return None
        word = int.from_bytes(record[start : start + 4], order)
        start = (word & 0xFFFF) + (field.offset + 4 if field.is_rel_loc else 0)
        size = word >> 16
    elif field.is_array and not size:
        size = max(len(record) - start, 0)
    if start + size > len(record):
        return None
    data = record[start : start + size]
    if _FLOATS.get(field.ctype) == size and not field.is_array:
        number = _float(data, is_big_endian=form.is_big_endian)
        # JSON has no other numbers.
        return number if math.isfinite(number) else str(number)
    if not field.is_array:
        return int.from_bytes(data, order, signed=field.is_signed) if size in (1, 2, 4, 8) else data.hex()
    if field.element_ctype in _CHARS:
        return data.partition(b"\0")[0].decode("utf-8", "surrogateescape")
    ctype = parse_field_type(field)
    kind = int_type_of(CType(ctype.base, ctype.pointers), form.long_size)
    if kind is None or size % kind.size:
        return data.hex()
    return [
        int.from_bytes(data[at : at + kind.size], order, signed=kind.is_signed)
        for at in range(0, size, kind.size)
    ]


def _float(data: bytes, *, is_big_endian: bool) -> float:
    code = "f" if len(data) == 4 else "d"
    number: float = struct.unpack(f"{'>' if is_big_endian else '<'}{code}", data)[0]
    return number
