"""One stream file of CTF: its packets, and the records of the events in them by time."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from tracepoint.errors import DecodeError
from tracepoint.named import NamedTuple
from tracepoint.record.page import LOST_UNKNOWN, U64, add_lost
from tracepoint.tracefile.ctf.bits import MAX_ELEMENTS, PacketBits
from tracepoint.tracefile.damage import Damage
from tracepoint.tracefile.filebytes import close_bytes, open_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tracepoint.tracefile.cpudata import Report
    from tracepoint.tracefile.ctf.classes import StreamReader, TraceReader
    from tracepoint.tracefile.filebytes import FileBytes

_TIME_LIMIT = 1 << 63
# Of a larger packet each value is read from the file.
_MAX_COPIED = 1 << 26
_MAX_LOST = (1 << 31) - 1


class CtfRecord(NamedTuple):
    """A record: its time in ns, its CPU, its bytes, and how many events were lost before it."""

    stamp: int
    cpu: int
    data: bytes
    lost: int = 0


class _Packet(NamedTuple):
    """A packet: its place in bytes, the CPU, and what its context says.

    `content` is the bit at which its last event ends, `begin` its first time in ns, `instance` says which
    stream it is of where one may be in several files.
    """

    at: int
    size: int
    content: int
    reader: StreamReader
    cpu: int
    begin: int
    context: dict[str, int]
    instance: int | None


class StreamCounts:
    """What the packets of a stream have counted so far."""

    def __init__(self) -> None:
        self._sequence: int | None = None
        self._discarded = 0

    def lost_before(self, context: dict[str, int], discarded_bits: int) -> int:
        """Return how many events were lost since the packet before; LOST_UNKNOWN when it is not known.

        What was lost before the first packet counts when it is number 0: a snapshot begins in the middle.
        """
        lost, sequence = 0, context.get("packet_seq_num")
        discarded = context.get("events_discarded", self._discarded)
        if sequence is not None:
            if self._sequence is None:
                self._discarded = self._discarded if sequence == 0 else discarded
            elif sequence != self._sequence + 1:
                lost = LOST_UNKNOWN
            self._sequence = sequence
        n_more = (discarded - self._discarded) % (1 << discarded_bits)
        self._discarded = discarded
        return add_lost(lost, min(n_more, _MAX_LOST))


class StreamFile:
    """A stream file while it is read; `cpu` is that of streams that do not name one.

    `counts` are those of the streams of its trace, which may go on in other files.  What is damaged is
    reported, and reading goes on at the next packet.
    """

    def __init__(
        self,
        path: Path,
        trace: TraceReader,
        counts: dict[tuple[StreamReader, int], StreamCounts],
        cpu: int,
        report: Report,
    ) -> None:
        self._path = path
        self._trace = trace
        self._cpu = cpu
        self._report = report
        self._data: bytes | FileBytes = b""
        self._bits = PacketBits(b"")
        self._counts = StreamCounts()
        self._all_counts = counts
        self._lost = 0

    def begin(self) -> int | None:
        """Return the time in ns at which the first packet begins, None for a file without packets."""
        self._open()
        try:
            packet = self._packet(0)
        except DecodeError:
            return 0
        finally:
            self._close()
        return None if packet is None else packet.begin

    def _open(self) -> None:
        self._data = open_bytes(self._path, self._report)
        self._bits = PacketBits(self._data)
        self._counts, self._lost = StreamCounts(), 0

    def _close(self) -> None:
        close_bytes(self._data)
        self._bits = PacketBits(b"")
        self._data = b""

    def records(self) -> Iterator[CtfRecord]:
        """Yield the records in the order of the file."""
        self._open()
        try:
            at = 0
            if self._data and not self._trace.is_ours(self._data):
                self._report(Damage(None, 0, f"{self._path.name}: begins with another magic number or UUID"))
            while at < len(self._data):
                try:
                    packet = self._packet(at)
                except DecodeError as error:
                    self._damage(None, at, error)
                    at = self._next(at)
                    continue
                if packet is None:
                    break
                yield from self._events(packet)
                self._bits.cycles = packet.reader.end(self._bits.cycles, packet.context)
                at += packet.size
            if self._lost:
                reason = f"events were lost after the last record: {self._lost}"
                self._report(Damage(None, at, f"{self._path.name}: {reason}"))
        finally:
            self._close()

    def _damage(self, cpu: int | None, at: int, error: DecodeError) -> None:
        offset = at if error.offset is None else error.offset
        self._report(Damage(cpu, offset, f"{self._path.name}: {error.reason}"))

    def _next(self, at: int) -> int:
        """Return where the next packet may begin: at the next magic number."""
        mark, found = self._trace.mark, -1
        with suppress(DecodeError):
            found = self._data.find(mark, at + 1) if mark else -1
        return len(self._data) if found < 0 else found

    def _packet(self, at: int) -> _Packet | None:
        """Read the head of a packet; raises DecodeError when it is damaged."""
        bits, left = self._bits, len(self._data) - at
        if not left:
            return None
        bits.data, bits.place, bits.base = self._data, 0, at
        bits.at, bits.end, bits.n_left = 0, left * 8, MAX_ELEMENTS
        reader, instance = self._trace.read_header(bits)
        context = reader.read_context(bits)
        size = context.get("packet_size", 8 * left)
        content = context.get("content_size", size)
        if size % 8 or not bits.at <= content <= size:
            raise DecodeError(f"a packet of {size} bits with {content} of content", offset=at)
        begin = bits.cycles = reader.begin(bits.cycles, context)
        cpu = context.get("cpu_id", self._cpu)
        if size > 8 * left:
            self._report(Damage(cpu, at, f"{self._path.name}: {left} bytes of a packet of {size // 8}"))
            content, size = min(content, 8 * left), 8 * left
        return _Packet(at, size // 8, content, reader, cpu, reader.clock.ns(begin), context, instance)

    def _losses(self, packet: _Packet) -> int:
        """Return how many events were lost since the packet before."""
        counts = self._counts
        if packet.instance is not None:
            counts = self._all_counts.setdefault((packet.reader, packet.instance), counts)
        return counts.lost_before(packet.context, packet.reader.discarded_bits)

    def _events(self, packet: _Packet) -> Iterator[CtfRecord]:
        bits, reader, at = self._bits, packet.reader, packet.at
        bits.end, cpu = packet.content, packet.cpu
        clock_ns, read_event = reader.clock.ns, reader.read_event
        self._lost = add_lost(self._lost, self._losses(packet))
        try:
            if packet.size <= _MAX_COPIED:
                bits.data, bits.place, bits.base = self._data[at : at + packet.size], at, 0
            while bits.at < bits.end:
                at = packet.at + (bits.at >> 3)
                bits.n_left = MAX_ELEMENTS
                data = read_event(bits)
                stamp = clock_ns(bits.cycles)
                if not -_TIME_LIMIT <= stamp < _TIME_LIMIT:
                    raise bits.wrong("a time that no record holds: the rest of the packet is left out")
                yield CtfRecord(stamp & U64, cpu, data, self._lost)
                self._lost = 0
        except DecodeError as error:
            self._damage(cpu, at, error)
