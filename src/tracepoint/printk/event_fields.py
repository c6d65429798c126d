"""Records as the option `fields` shows them: each field by its type, whatever the print format says.

kernel/trace/trace_output.c: print_event_fields(); since Linux 6.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.printk import ops
from tracepoint.printk.facts import UnknownPartError
from tracepoint.printk.own_events import is_own_event
from tracepoint.record.field import location_origin, unpack_location

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.layout.format import EventFormat, FieldFormat
    from tracepoint.printk.memory import RecordMemory

    Show = Callable[[RecordMemory, bytes], str]

_OVERFLOW = "<OVERFLOW>"


def lower_event_fields(form: EventFormat) -> ops.TextOp:
    """Lower a record to its name and fields; the kernel does not find those of the tracer's own events."""
    if is_own_event(form):
        return ops.Literal(f"UNKNOWN TYPE {form.id}")
    parts: list[ops.TextOp] = [ops.Literal(f"{form.name}:")]
    big = ops.Const(int(form.is_big_endian))
    for field in form.event_fields:
        kind, origin = ops.Literal(_kind(field)), ops.Const(location_origin(field))
        place = (ops.Const(field.offset), ops.Const(field.size))
        parts += [ops.Literal(f" {field.name}="), ops.Call("event_field", (kind, *place, origin, big))]
    if len(parts) == 1:
        parts.append(ops.Literal("No fields found"))
    return ops.Joined(tuple(parts))


def _kind(field: FieldFormat) -> str:
    """Return how a field is shown: filter_assign_type() in kernel/trace/trace_events_filter.c."""
    is_located = field.is_data_loc or field.is_rel_loc
    if is_located and "cpumask_t" in field.ctype and field.is_data_loc:
        return "none"
    if is_located:
        return "located text" if "char" in field.ctype else "located bytes"
    if "[" in field.ctype and "char" in field.ctype:
        return "text"
    if field.ctype in ("char *", "const char *"):
        return "pointer"
    return "number"


def event_field_text(record: RecordMemory, kind: str, at: int, size: int, origin: int, is_big: int) -> str:  # noqa: PLR0917  a call of a program
    """Return a field of a record as its kind is shown."""
    data = record.data[at : at + size]
    if at + size > len(record.data):
        return _OVERFLOW
    if kind == "text":
        return _text(data)
    value = int.from_bytes(data, "big" if is_big else "little")
    if kind.startswith("located"):
        start, length = unpack_location(value, origin)
        if start + length > len(record.data):
            return _OVERFLOW
        located = record.data[start : start + length]
        return _text(located) if kind == "located text" else ",".join(f"{byte:02x}" for byte in located)
    if kind == "pointer":
        if value not in record.facts.printk_formats:
            raise UnknownPartError("a string in the kernel's memory")
        return f"(0x{value:016x}:{record.facts.printk_formats[value]})"
    return "<INVALID-TYPE>" if kind == "none" else _number(value, size)


def _text(data: bytes) -> str:
    return data.partition(b"\0")[0].decode("latin-1")


def _number(value: int, size: int) -> str:
    """Write a number of so many bytes as the kernel does: a byte as a character too."""
    if size == 1:
        return (f"'{chr(value)}'" if chr(value).isprintable() and value < 127 else "") + f"({value})"
    if size == 2:
        return f"0x{value:x} ({value})"
    if size not in (4, 8):
        return "<INVALID-SIZE>"
    signed = value - (1 << 8 * size) if value >> (8 * size - 1) else value
    return f"0x{value:x} ({signed})"
