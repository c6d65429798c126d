"""Records as `name=value ...`: for events whose print format cannot be followed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.printk import ops
from tracepoint.record.field import element_type, field_bytes, integer, is_text, location_origin
from tracepoint.source.types import UINT, IntType

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
    if _is_pointer(field):
        return f"0x{integer(form, data):x}"
    return str(integer(form, data, is_signed=field.is_signed))


def _is_pointer(field: FieldFormat) -> bool:
    return field.ctype.endswith("*")


def fields_text(form: EventFormat, record: bytes) -> str:
    """Return all fields but the common ones as `name=value`, separated by spaces (latin-1 text)."""
    return " ".join(f"{field.name}={field_text(form, field, record)}" for field in form.event_fields)


def fields_op(form: EventFormat) -> ops.TextOp:
    """Return the op whose text is `fields_text`; it fails on a record that is cut off."""
    parts: list[ops.TextOp] = []
    for field in form.event_fields:
        name = f"{' ' if parts else ''}{field.name}="
        parts += [ops.Literal(name), _field_op(form, field)]
    return ops.Joined(tuple(parts))


def _field_op(form: EventFormat, field: FieldFormat) -> ops.TextOp:
    if field.is_data_loc:
        return _located_op(form, field)
    if field.is_array and not field.size:
        return ops.Unknown("an array that goes on to the end of the record")
    if field.is_array:
        return _memory_op(form, field, ops.At(field.offset), ops.Const(field.size))
    if field.size not in (1, 2, 4, 8):
        place, size = ops.At(field.offset), ops.Const(min(field.size, _MAX_BYTES))
        return ops.Joined((_held(place, ops.Const(field.size)), ops.Hex(place, size, "")))
    is_pointer = _is_pointer(field)
    kind = IntType(field.size, is_signed=field.is_signed and not is_pointer)
    number = ops.Number(ops.Load(field.offset, kind), "x" if is_pointer else "d" if kind.is_signed else "u")
    return ops.Joined((ops.Literal("0x"), number)) if is_pointer else number


def _located_op(form: EventFormat, field: FieldFormat) -> ops.TextOp:
    if not field.is_array:
        return ops.Unknown("a value that is no array at a place of its own")
    word = ops.Load(field.offset, UINT)
    size = ops.Binary(">>", word, ops.Const(16), UINT)
    return _memory_op(form, field, ops.WordPlace(word, location_origin(field)), size)


def _memory_op(form: EventFormat, field: FieldFormat, place: ops.PlaceOp, size: ops.NumberOp) -> ops.TextOp:
    """Return the op for an array of `size` bytes at a place."""
    most = ops.Binary("min", size, ops.Const(_MAX_BYTES), UINT)
    if is_text(field):
        return ops.Joined((_held(place, size), ops.String(place, most)))
    kind = element_type(form, field)
    step = 1 if kind is None else kind.size
    if step > 8:
        return ops.Unknown("numbers of 128 bits")
    count = ops.Binary("/", most, ops.Const(step), UINT)
    numbers: ops.TextOp = ops.Numbers(place, count, step)
    if step > 1:
        rest = ops.Binary("%", most, ops.Const(step), UINT)
        numbers = ops.IfText(rest, ops.Numbers(place, most, 1), numbers)
    return ops.Joined((_held(place, size), numbers))


def _held(place: ops.PlaceOp, size: ops.NumberOp) -> ops.TextOp:
    """Return an op that shows nothing, and fails where the record does not hold the bytes at a place."""
    return ops.Bitmap(place, size, ops.Const(0))
