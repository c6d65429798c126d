"""Records as `name=value ...`: for events whose print format cannot be followed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.record.field import element_type, field_bytes, integer, is_text

if TYPE_CHECKING:
    from tracepoint.layout.format import EventFormat, FieldFormat

_MAX_BYTES = 1 << 12


def field_text(form: EventFormat, field: FieldFormat, record: bytes) -> str:
    """Return one field's value: text for char arrays, hex for pointers and structs, else decimal.

    What lies outside the record reads `<cut>`.
    """
    data = field_bytes(form, field, record)
    if data is None:
        return "<cut>"
    data = data[:_MAX_BYTES]
    if is_text(field):
        return data.partition(b"\0")[0].decode("latin-1")
    if field.is_array:
        kind = element_type(form, field)
        step = kind.size if kind is not None and len(data) % kind.size == 0 else 1
        values = (integer(form, data[at : at + step]) for at in range(0, len(data), step))
        return "{" + ",".join(f"0x{value:x}" for value in values) + "}"
    if len(data) not in (1, 2, 4, 8):
        return data.hex()
    number = integer(form, data, is_signed=field.is_signed)
    return f"0x{number:x}" if field.ctype.endswith("*") else str(number)


def fields_text(form: EventFormat, record: bytes) -> str:
    """Return all fields but the common ones as `name=value`, separated by spaces (latin-1 text)."""
    return " ".join(f"{field.name}={field_text(form, field, record)}" for field in form.event_fields)
