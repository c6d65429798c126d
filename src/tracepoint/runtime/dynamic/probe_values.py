"""The record of an event probe, made from the record of the event that it is attached to.

Kernel: kernel/trace/trace_eprobe.c, get_event_field(); kernel/trace/trace_probe_tmpl.h, store_trace_args().
The fixed part is packed, without gaps; texts follow in the order of the arguments.  A text that does not lie
in the record has a length of 0, which is printed as `(fault)`; past the end of the record are zeros.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.record.field import location_origin, pack_location, unpack_location
from tracepoint.runtime.dynamic.probe_args import HEAD, WORD, Comm, FieldOperand, Fixed, Quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tracepoint.runtime.dynamic.probe_args import ProbeArg, Source

MAX_TEXT = 4096
COMM_BYTES = 16
_LONG_SIZES = (1, 2, 4)


def make_probe_record(args: Sequence[ProbeArg], source: bytes, comm: Callable[[], bytes]) -> bytes:
    """Return the bytes of a probe's record, its first 8 empty, from those of the attached event.

    `comm` gives the name of the thread and is called only where that is fetched.
    """
    fixed = bytearray(max((arg.offset + arg.n_bytes for arg in args), default=HEAD))
    texts = bytearray()
    for arg in args:
        if arg.kind.is_text:
            text = _text(arg, source, comm)
            location = pack_location(len(fixed) + len(texts), len(text))
            fixed[arg.offset : arg.offset + 4] = location.to_bytes(4, "little")
            texts += text
        else:
            fixed[arg.offset : arg.offset + arg.n_bytes] = _numbers(arg, source, comm)
    return bytes(fixed + texts)


def _text(arg: ProbeArg, record: bytes, comm: Callable[[], bytes]) -> bytes:
    """Return a text with the byte that ends it; nothing where it cannot be read."""
    steps = arg.fetch.steps
    # The record is not user memory.
    is_readable = arg.fetch.source.is_text and arg.kind.name != "ustring"
    if not is_readable or len(steps) > 1 or (steps and steps[0][1]):
        return b""
    memory, start = _memory(arg, record, comm)
    start += steps[0][0] if steps else 0
    if not 0 <= start < len(memory):
        return b""
    return memory[start:].partition(b"\0")[0][: MAX_TEXT - 1] + b"\0"


def _numbers(arg: ProbeArg, record: bytes, comm: Callable[[], bytes]) -> bytes:
    size = arg.kind.n_bytes
    if not arg.fetch.steps:
        return _shifted(arg, _number(arg.fetch.source, record) % (1 << 8 * size))
    memory, start = _memory(arg, record, comm)
    start += arg.fetch.steps[0][0]
    return b"".join(
        _shifted(arg, int.from_bytes(_bytes(memory, at, size), "little"))
        for at in range(start, start + arg.n_bytes, size)
    )


def _memory(arg: ProbeArg, record: bytes, comm: Callable[[], bytes]) -> tuple[bytes, int]:
    """Return the bytes where the text of a source lies, and its place there."""
    match arg.fetch.source:
        case Comm():
            return comm()[: COMM_BYTES - 1].ljust(COMM_BYTES, b"\0"), 0
        case Quoted(text):
            return text.encode(errors="surrogateescape") + b"\0", 0
        case FieldOperand(place) if place.is_data_loc:
            word = int.from_bytes(_bytes(record, place.offset, 4), "little")
            return record, unpack_location(word, location_origin(place))[0]
        case FieldOperand(place):
            return record, place.offset
    return b"", 0


def _number(source: Source, record: bytes) -> int:
    """Return a number as the kernel reads a field: 1, 2, 4 or else 8 bytes."""
    if not isinstance(source, FieldOperand):
        return source.value if isinstance(source, Fixed) else 0
    place = source.place
    size = place.size if place.size in _LONG_SIZES else WORD
    return int.from_bytes(_bytes(record, place.offset, size), "little", signed=place.is_signed)


def _bytes(memory: bytes, at: int, size: int) -> bytes:
    """Return bytes from any place; zeros where there are none."""
    before = min(max(-at, 0), size)
    return (b"\0" * before + memory[max(at, 0) : max(at + size, 0)]).ljust(size, b"\0")


def _shifted(arg: ProbeArg, value: int) -> bytes:
    """Cut a bit field out, and store the number."""
    size = arg.kind.n_bytes
    if arg.bits is not None:
        left, right = arg.bits
        value = (value << left) % (1 << 8 * size) >> right
    return value.to_bytes(size, "little")
