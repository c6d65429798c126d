"""A field and its source as the macro call of LTTng's TP_FIELDS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.generate.lttng.types import LttngKind, is_text, kind_of
from tracepoint.model.field import (
    ArrayField,
    BitmaskField,
    DynamicArrayField,
    Field,
    SockaddrField,
    StringField,
)

if TYPE_CHECKING:
    from tracepoint.generate.lttng.assign import FieldSource
    from tracepoint.generate.lttng.print_names import Shown

# babeltrace refuses a trace whose sequence has a signed length.
LENGTH_TYPE = "unsigned int"

Call = tuple[str, list[str]]


def field_call(field: Field, source: FieldSource, shown: Shown, enums: dict[str, str]) -> Call:
    """Return the macro and the arguments that record a field; `enums` maps a field to its LTTng enum."""
    match field:
        case StringField() if source.length:
            return "ctf_sequence_text", ["char", field.name, source.text, LENGTH_TYPE, source.length]
        case StringField():
            return "ctf_string", [field.name, source.text]
        case BitmaskField():
            return "ctf_sequence_hex", ["unsigned long", field.name, source.text, LENGTH_TYPE, source.length]
        case SockaddrField():
            return "ctf_sequence_hex", ["u8", field.name, source.text, LENGTH_TYPE, source.length]
        case ArrayField() | DynamicArrayField():
            return _array_call(field, source, shown)
    return _scalar_call(field, source, shown, enums)


def _array_call(field: ArrayField | DynamicArrayField, source: FieldSource, shown: Shown) -> Call:
    macro = "ctf_array" if isinstance(field, ArrayField) else "ctf_sequence"
    length_type = [] if isinstance(field, ArrayField) else [LENGTH_TYPE]
    ctype, length = field.ctype, source.length
    kind = kind_of(field.ctype)
    is_hex = field.name in shown.hexadecimal
    match kind:
        case LttngKind.BYTES:
            ctype, length, is_hex = "u8", f"({length}) * sizeof({field.ctype})", True
        case LttngKind.POINTER:
            ctype, is_hex = "unsigned long", True
        case LttngKind.NETWORK:
            macro += "_network"
    if kind is LttngKind.INTEGER and is_text(ctype) and not is_hex:
        macro += "_text"
    elif is_hex:
        macro += "_hex"
    return macro, [ctype, field.name, source.text, *length_type, length]


def _scalar_call(field: Field, source: FieldSource, shown: Shown, enums: dict[str, str]) -> Call:
    suffix = "_hex" if field.name in shown.hexadecimal else ""
    match kind_of(field.ctype):
        case LttngKind.BYTES:
            return "ctf_array_hex", ["u8", field.name, source.text, f"sizeof({field.ctype})"]
        case LttngKind.POINTER:
            return "ctf_integer_hex", ["unsigned long", field.name, _as_number(source.text)]
        case LttngKind.NETWORK:
            return f"ctf_integer_network{suffix}", [field.ctype, field.name, source.text]
        case LttngKind.LITTLE:
            return "ctf_integer_bitfield", [field.ctype, field.name, source.text]
    if field.name in enums:
        return "ctf_enum", [enums[field.name], field.ctype, field.name, source.text]
    return f"ctf_integer{suffix}", [field.ctype, field.name, source.text]


def _as_number(text: str) -> str:
    is_primary = text.replace("->", "").replace(".", "").replace("_", "a").isalnum()
    return f"(unsigned long)({text})" if not is_primary else f"(unsigned long){text}"


def field_notes(field: Field, shown: Shown, enums: dict[str, str]) -> list[str]:
    """Say what of a recorded field does not survive, in words that follow the field's name."""
    notes = []
    kind = kind_of(field.ctype)
    if isinstance(field, BitmaskField):
        notes.append("a mask is recorded as a sequence of unsigned long")
    elif isinstance(field, SockaddrField):
        notes.append("an address is recorded as a sequence of bytes")
    elif kind is LttngKind.BYTES and not isinstance(field, StringField):
        notes.append(f"{field.ctype} is recorded as bytes: LTTng knows no structs")
    elif kind is LttngKind.POINTER and is_text(field.ctype.rstrip("* ")):
        notes.append("the pointer is recorded, not the text that it points to")
    if isinstance(field, StringField) and field.length is not None:
        notes.append("text after a NUL byte within the length is recorded as NULs")
    if field.name in shown.flags:
        notes.append("the names of its flags are lost: LTTng has no flags, only enums")
    if field.name in shown.computed and kind not in (LttngKind.NETWORK, LttngKind.LITTLE):
        notes.append("the print format shows it through a function, which no reader of LTTng calls")
    if shown.names.get(field.name) == () or (shown.names.get(field.name) and field.name not in enums):
        notes.append("its names cannot be an enum of LTTng")
    return notes
