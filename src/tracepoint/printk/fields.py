"""Records as `name=value ...`: for events whose print format cannot be followed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.printk.evaluate import parse_field_type
from tracepoint.source.cvalue import int_type_of

if TYPE_CHECKING:
    from tracepoint.layout.format import EventFormat, FieldFormat

_MAX_BYTES = 1 << 12


def _integer(form: EventFormat, data: bytes, *, is_signed: bool) -> int:
    return int.from_bytes(data, "big" if form.is_big_endian else "little", signed=is_signed)


def _element_size(form: EventFormat, field: FieldFormat, n_bytes: int) -> int:
    ctype = parse_field_type(field)
    kind = int_type_of(type(ctype)(ctype.base, ctype.pointers), form.long_size)
    size = kind.size if kind is not None else 1
    return size if size in (1, 2, 4, 8) and n_bytes % size == 0 else 1


def field_text(form: EventFormat, field: FieldFormat, record: bytes) -> str:
    """Return one field's value: text for char arrays, hex for pointers and structs, else decimal.

    What lies outside the record reads `<cut>`.
    """
    start, size = field.offset, field.size
    if field.is_data_loc:
        word = record[start : start + 4]
        if len(word) < 4:
            return "<cut>"
        number = _integer(form, word, is_signed=False)
        start = (number & 0xFFFF) + (field.offset + 4 if field.is_rel_loc else 0)
        size = number >> 16
    elif field.is_array and size == 0:
        size = max(len(record) - start, 0)
    data = record[start : start + min(size, _MAX_BYTES)]
    if len(data) < min(size, _MAX_BYTES):
        return "<cut>"
    if field.is_array:
        if field.element_ctype in ("char", "const char"):
            return data.partition(b"\0")[0].decode("latin-1")
        step = _element_size(form, field, len(data))
        values = (_integer(form, data[at : at + step], is_signed=False) for at in range(0, len(data), step))
        return "{" + ",".join(f"0x{value:x}" for value in values) + "}"
    if size not in (1, 2, 4, 8):
        return data.hex()
    number = _integer(form, data, is_signed=field.is_signed)
    return f"0x{number:x}" if field.ctype.endswith("*") else str(number)


def fields_text(form: EventFormat, record: bytes) -> str:
    """Return all fields but the common ones as `name=value`, separated by spaces (latin-1 text)."""
    return " ".join(f"{field.name}={field_text(form, field, record)}" for field in form.event_fields)
