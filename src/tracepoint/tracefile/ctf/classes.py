"""What reads the packets of one trace: its header, and the contexts and events of its classes of streams."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from tracepoint.errors import DecodeError
from tracepoint.tracefile.ctf.headers import HeaderReaders, extended, quick_header
from tracepoint.tracefile.ctf.scopes import (
    EVENT_HEADER,
    HEADER,
    PACKET_CONTEXT,
    CtfScope,
)
from tracepoint.tracefile.ctf.types import CtfArray, CtfEnum, CtfInteger, CtfStruct, shown_name
from tracepoint.tracefile.ctf.values import ValueReaders

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from tracepoint.tracefile.ctf.bits import PacketBits
    from tracepoint.tracefile.ctf.metadata import CtfMetadata, CtfStream
    from tracepoint.tracefile.ctf.types import CtfType
    from tracepoint.tracefile.filebytes import Bytes

    Path = tuple[str, ...]
    ReadEvent = Callable[[PacketBits], bytes]

MAGIC = 0xC1FC1FC1


class StreamReader:
    """Reads the packets of a class of streams; `events` read the fields of each event, by its id.

    `needed` are the integers of headers and contexts that events refer to.
    """

    def __init__(
        self, metadata: CtfMetadata, stream: CtfStream, events: dict[int, ReadEvent], needed: set[Path]
    ) -> None:
        is_big = metadata.is_big_endian
        roots: dict[Path, CtfType] = {
            HEADER: metadata.packet_header,
            PACKET_CONTEXT: stream.packet_context,
            EVENT_HEADER: stream.event_header,
        }
        scope = CtfScope(roots, needed)
        self._events = events
        self._context = ValueReaders(scope, is_big_endian=is_big).reader(
            stream.packet_context, PACKET_CONTEXT
        )
        header = HeaderReaders(scope, is_big_endian=is_big).reader(stream.event_header, EVENT_HEADER)
        if not any(path[: len(EVENT_HEADER)] == EVENT_HEADER for path in needed):
            header = quick_header(stream.event_header, header, is_big_endian=is_big) or header
        self._header = header
        numbers = {shown_name(p[-1]): k for p, k in scope.integers.items() if p[:-1] == PACKET_CONTEXT}
        self._sizes = {name: _size_of(kind) for name, kind in numbers.items()}
        self.discarded_bits = self._sizes.get("events_discarded", 64)
        self.clock = metadata.clock(_clock_name(scope))
        self._only = next(iter(events)) if len(events) == 1 else None

    def read_context(self, bits: PacketBits) -> dict[str, int]:
        """Read the context of a packet; return its integers by name."""
        return _integers(self._context(bits), self._sizes)

    def begin(self, cycles: int, context: dict[str, int]) -> int:
        """Return the value of the clock at which a packet begins."""
        return self._time(cycles, context, "timestamp_begin")

    def end(self, cycles: int, context: dict[str, int]) -> int:
        """Return the value at which a packet ends, where the next one does not say when it begins."""
        return cycles if "timestamp_begin" in context else self._time(cycles, context, "timestamp_end")

    def _time(self, cycles: int, context: dict[str, int], name: str) -> int:
        return extended(cycles, context[name], self._sizes[name]) if name in context else cycles

    def read_event(self, bits: PacketBits) -> bytes:
        """Read an event and return its record; raises DecodeError for an id that the metadata do not have."""
        start = bits.at
        bits.event_id = 0 if self._only is None else self._only
        self._header(bits)
        read = self._events.get(bits.event_id)
        if read is None:
            raise bits.wrong(
                f"an event of the unknown id {bits.event_id}: the rest of the packet is left out"
            )
        record = read(bits)
        if bits.at == start:
            raise bits.wrong("an event of no bits: the rest of the packet is left out")
        return record


def _integers(found: dict[str, Any], names: Container[str]) -> dict[str, int]:
    return {name: value for name, value in found.items() if name in names and isinstance(value, int)}


def _size_of(kind: CtfInteger | CtfEnum) -> int:
    return kind.container.size if isinstance(kind, CtfEnum) else kind.size


def _clock_name(scope: CtfScope) -> str:
    """Return the name of the clock that the headers of events refer to, else the contexts of packets."""
    for root in (EVENT_HEADER, PACKET_CONTEXT):
        for path, kind in scope.integers.items():
            integer = kind.container if isinstance(kind, CtfEnum) else kind
            if path[: len(root)] == root and integer.clock:
                return integer.clock
    return ""


class TraceReader:
    """Reads the headers of the packets of one trace; `mark` is what all of them begin with."""

    def __init__(self, metadata: CtfMetadata, streams: dict[int, StreamReader], needed: set[Path]) -> None:
        self._streams = streams
        scope = CtfScope({HEADER: metadata.packet_header}, needed)
        readers = ValueReaders(scope, is_big_endian=metadata.is_big_endian)
        self._header = readers.reader(metadata.packet_header, HEADER)
        self._names = {shown_name(path[-1]) for path in scope.integers if path[:-1] == HEADER}
        self.mark = _mark(metadata)

    def read_header(self, bits: PacketBits) -> tuple[StreamReader, int | None]:
        """Read the header of a packet; return its class of streams, and which stream it is if that is said.

        Raises DecodeError when it is not one of this trace.
        """
        found = _integers(self._header(bits), self._names)
        if found.get("magic", MAGIC) != MAGIC:
            raise DecodeError(
                f"begins with {found['magic']:#x}, which is not the magic of a packet",
                offset=bits.place + bits.base,
            )
        number = found.get("stream_id", next(iter(self._streams), 0))
        stream = self._streams.get(number)
        if stream is None:
            raise DecodeError(f"a packet of the unknown stream {number}", offset=bits.base)
        return stream, found.get("stream_instance_id")

    def is_ours(self, data: Bytes) -> bool:
        """Say whether a file begins as the packets of this trace do: those of another have other types."""
        return data[: len(self.mark)] == self.mark


def _mark(metadata: CtfMetadata) -> bytes:
    """Return the first bytes of every packet, empty where headers do not begin with a magic number."""
    header = metadata.packet_header
    fields = header.fields if isinstance(header, CtfStruct) else ()
    if not fields or shown_name(fields[0][0]) != "magic":
        return b""
    kind = fields[0][1]
    if not isinstance(kind, CtfInteger) or kind.size != 32:
        return b""
    mark = struct.pack(">I" if metadata.is_big_endian else "<I", MAGIC)
    has_uuid = len(fields) > 1 and fields[1][0] == "uuid" and isinstance(fields[1][1], CtfArray)
    return mark + metadata.uuid if has_uuid else mark
