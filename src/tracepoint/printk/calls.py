"""The functions that a `Call` of a print program may name: what is too rare to be an op of its own.

Each takes the record, then the values of its arguments; a place is None where it is NULL, and then so is the
text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.printk import addresses
from tracepoint.printk.event_fields import event_field_text
from tracepoint.printk.facts import UnknownPartError
from tracepoint.printk.hexdump import hex_dump
from tracepoint.printk.memory import take
from tracepoint.printk.own_events import (
    kernel_stack_text,
    raw_data_text,
    repeats_text,
    state_digits,
    user_stack_text,
)
from tracepoint.printk.own_lines import record_bytes_text
from tracepoint.printk.scsi import command_text
from tracepoint.printk.stored_printk import stored_text
from tracepoint.printk.times import rtc_text, time64_text

if TYPE_CHECKING:
    from tracepoint.printk.memory import Location, RecordMemory
    from tracepoint.printk.twin.maker import Function

_SOCKADDR_IN6_SIZE = 28


def _ip4(_: RecordMemory, place: Location | None, letters: str, is_big: int) -> str | None:
    return None if place is None else addresses.ip4_text(take(place, 4), letters, is_big_endian=bool(is_big))


def _ip6(_: RecordMemory, place: Location | None, letters: str, _is_big: int) -> str | None:
    if place is None:
        return None
    data = take(place, 16)
    return (
        addresses.ip6_compressed(data)
        if letters == "I6c"
        else addresses.ip6_text(data, colons=letters[0] == "I")
    )


def _mac(_: RecordMemory, place: Location | None, letters: str, _is_big: int) -> str | None:
    return None if place is None else addresses.mac_text(take(place, 6), letters)


def _uuid(_: RecordMemory, place: Location | None, letters: str, _is_big: int) -> str | None:
    return None if place is None else addresses.uuid_text(take(place, 16), letters)


def _sockaddr(_: RecordMemory, place: Location | None, letters: str, is_big: int) -> str | None:
    if place is None:
        return None
    data = place[0][max(place[1], 0) : place[1] + _SOCKADDR_IN6_SIZE]
    text = addresses.sockaddr_text(data, letters, is_big_endian=bool(is_big))
    if text is None or len(data) < 2:
        raise UnknownPartError("a socket address that the record holds in part only")
    return text


def _time(_: RecordMemory, place: Location | None, letters: str, is_big: int) -> str | None:
    if place is None:
        return None
    size, make = (36, rtc_text) if letters.startswith("tR") else (8, time64_text)
    return make(take(place, size), letters[2:], is_big_endian=bool(is_big))


def _fourcc(_: RecordMemory, place: Location | None, _letters: str, is_big: int) -> str | None:
    if place is None:
        return None
    code = int.from_bytes(take(place, 4), "big" if is_big else "little")
    shown = code & 0x7FFFFFFF
    characters = [shown >> shift & 0xFF for shift in (0, 8, 16, 24)]
    letters = "".join(chr(c) if 0x20 <= c < 0x7F else "." for c in characters)
    return f"{letters} {'big' if code >> 31 else 'little'}-endian (0x{code:08x})"


_ESCAPES = {10: "\\n", 13: "\\r", 9: "\\t", 11: "\\v", 12: "\\f", 7: "\\a", 27: "\\e", 0: "\\0"}


def _escape(byte: int) -> str:
    # lib/string_helpers.c: string_escape_mem() with ESCAPE_ANY_NP: printable bytes stay, those of
    # latin-1 included (lib/ctype.c).
    if 0x20 <= byte < 0x7F or byte >= 0xA0:
        return chr(byte)
    return _ESCAPES.get(byte) or f"\\{byte:03o}"


def _escaped(_: RecordMemory, place: Location | None, count: int) -> str:
    return "".join(map(_escape, take(place, count)))


def _hex_dump(  # noqa: PLR0917  the arguments of the macro
    _: RecordMemory,
    prefix: str | None,
    prefix_type: int,
    row_size: int,
    group_size: int,
    place: Location | None,
    length: int,
    has_ascii: int,
    is_big: int,
) -> str:
    if prefix_type == 1:
        raise UnknownPartError("the address of a dumped buffer")
    return "\n" + hex_dump(
        take(place, length) if length > 0 else b"",
        prefix=prefix or "",
        has_offset=prefix_type == 2,
        row_size=row_size,
        group_size=group_size,
        has_ascii=bool(has_ascii),
        is_big_endian=bool(is_big),
    )


def _comm(record: RecordMemory, pid: int) -> str:
    """Return the command of a task: kernel/trace/trace.c: trace_find_cmdline()."""
    comm = "<idle>" if pid == 0 else record.facts.comms.get(pid)
    if comm is None:
        record.note(f"the command of pid {pid} is not known")
        return "<...>"
    return comm


CALLS: dict[str, Function] = {
    "comm": _comm,
    "escaped": _escaped,
    "event_field": event_field_text,
    "fourcc": _fourcc,
    "hex_dump": _hex_dump,
    "ip4": _ip4,
    "ip6": _ip6,
    "kernel_stack": kernel_stack_text,
    "mac": _mac,
    "raw_data": raw_data_text,
    "record_bytes": record_bytes_text,
    "repeats": repeats_text,
    "scsi_command": command_text,
    "sockaddr": _sockaddr,
    "state_digits": state_digits,
    "stored_print": stored_text,
    "time": _time,
    "user_stack": user_stack_text,
    "uuid": _uuid,
}
