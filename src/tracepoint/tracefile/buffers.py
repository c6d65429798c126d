"""The ring buffers of a trace.dat: the data of each CPU, read block by block."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from tracepoint.errors import DecodeError
from tracepoint.record.pages import read_pages, records_of
from tracepoint.tracefile.compression import MAX_CHUNK
from tracepoint.tracefile.content import BufferContent, CpuPages
from tracepoint.tracefile.cursor import Cursor
from tracepoint.tracefile.damage import Damage
from tracepoint.wording import counted, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tracepoint.record.layout import PageLayout
    from tracepoint.record.pages import Pages
    from tracepoint.record.raw import RawRecord
    from tracepoint.tracefile.compression import Codec
    from tracepoint.tracefile.cursor import Bytes

    Report = Callable[[Damage], None]
    TimeMap = Callable[[int, int], int]

_BLOCK = 1 << 20
_COUNT_SIZE = 4
# The sizes before the data of a chunk.
_CHUNK_HEAD = 8


class Chunk(NamedTuple):
    """Where the compressed bytes of a chunk begin in the file, how many they are and become."""

    start: int
    packed: int
    unpacked: int


@dataclass(frozen=True, slots=True)
class CpuData:
    """The data of one CPU: `size` bytes of the file at `offset`, in pages of `layout`."""

    cpu: int
    offset: int
    size: int
    layout: PageLayout
    data: Bytes = field(repr=False)
    codec: Codec | None = field(default=None, repr=False)
    report: Report = field(default=lambda _: None, repr=False)
    time_map: TimeMap | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return f"<CpuData of CPU {self.cpu}, {self.size:,} bytes at offset {self.offset:#x}>"

    def blocks(self) -> Iterator[bytes]:
        """Yield the data, whole pages at a time; what is not available is reported."""
        return (block for block, _ in self.blocks_at())

    def blocks_at(self) -> Iterator[tuple[bytes, int]]:
        """Yield blocks and their places in the file (a compressed one: where its chunk begins)."""
        return self._plain() if self.codec is None else self._expanded(self.codec)

    def _plain(self) -> Iterator[tuple[bytes, int]]:
        size = self.layout.page_size
        step = max(_BLOCK // size, 1) * size
        end = self.offset + self.size
        for at in range(self.offset, end, step):
            yield bytes(self.data[at : min(at + step, end)]), at

    def _cursor(self) -> Cursor:
        # trace-cmd does not count the number of chunks itself in the size.
        end = min(self.offset + self.size + _COUNT_SIZE, len(self.data))
        return Cursor(self.data, self.offset, end, big=self.layout.is_big_endian)

    @staticmethod
    def _walk_chunks(cursor: Cursor) -> Iterator[Chunk]:
        """Yield the chunks, which are whole; raises DecodeError for the first that is not."""
        for _ in range(cursor.u32()):
            packed, unpacked = cursor.u32(), cursor.u32()
            if unpacked > MAX_CHUNK:
                raise cursor.error(f"a chunk that grows to {unpacked} bytes")
            yield Chunk(cursor.skip(packed, "a chunk"), packed, unpacked)

    def _expanded(self, codec: Codec) -> Iterator[tuple[bytes, int]]:
        cursor = self._cursor()
        try:
            for chunk in self._walk_chunks(cursor):
                yield self.expand_chunk(codec, chunk), chunk.start - _CHUNK_HEAD
        except DecodeError as error:
            at = cursor.at if error.offset is None else error.offset
            self.report(Damage(self.cpu, at, error.reason))
            return
        if cursor.left not in (0, _COUNT_SIZE):
            self.report(Damage(self.cpu, cursor.at, f"{cursor.left} bytes are left over after the chunks"))

    def chunks(self, most: int) -> list[Chunk]:
        """Return where up to `most` compressed chunks are; damage ends the list."""
        found: list[Chunk] = []
        with suppress(DecodeError):
            found.extend(islice(self._walk_chunks(self._cursor()), most))
        return found

    def expand_chunk(self, codec: Codec, chunk: Chunk) -> bytes:
        """Return what a chunk expands to; raises DecodeError for a damaged one."""
        return codec.expand(bytes(self.data[chunk.start : chunk.start + chunk.packed]), chunk.unpacked)

    def pages(self) -> Iterator[tuple[bytes, Pages]]:
        """Yield each block with its pages; damage is reported."""
        for block, at in self.blocks_at():
            pages = read_pages(block, self.layout)
            for head in pages.heads:
                if head.fault:
                    place = at if self.codec is not None else at + head.fault_at
                    self.report(Damage(self.cpu, place, head.fault))
            yield block, pages

    def records(self) -> Iterator[RawRecord]:
        """Yield the records in the order they were written."""
        records = records_of(self.pages(), self.cpu)
        if self.time_map is None:
            return records
        convert, cpu = self.time_map, self.cpu
        return (record._replace(timestamp=convert(record.timestamp, cpu)) for record in records)


@dataclass(frozen=True, slots=True)
class TraceBuffer:
    """One ring buffer: `name` is empty for the top one, else the name of the instance."""

    name: str
    clock: str
    cpus: tuple[CpuData, ...]

    def __repr__(self) -> str:
        name = f"of instance {one_line(self.name, 40)}" if self.name else "at the top"
        return f"<TraceBuffer {name}, clock {one_line(self.clock, 20)}, {counted(len(self.cpus), 'CPU')}>"

    def records(self) -> Iterator[RawRecord]:
        """Yield the records of all CPUs by time, as the kernel's `trace` does.

        Of equal times the lower CPU comes first (kernel/trace/trace.c: __find_next_entry()).
        """
        streams = [cpu.records() for cpu in sorted(self.cpus, key=lambda c: c.cpu)]
        return merge(*streams, key=lambda record: record.timestamp)

    def content(self) -> BufferContent:
        """Return the buffer as a writer takes it; it can be gone through more than once."""
        return BufferContent(tuple(CpuPages(c.cpu, _Blocks(c)) for c in self.cpus), self.name, self.clock)


@dataclass(frozen=True, slots=True)
class _Blocks:
    cpu: CpuData

    def __iter__(self) -> Iterator[bytes]:
        return self.cpu.blocks()


def without_overlaps(buffers: list[TraceBuffer], n_bytes: int, report: Report) -> tuple[TraceBuffer, ...]:
    """Cut data off where a file of `n_bytes` ends, and drop what lies over other data.

    A small file whose tables all point to the same bytes would else be a very long recording.
    """
    taken: list[tuple[int, int]] = []
    kept = []
    for buffer in buffers:
        cpus = []
        for cpu in buffer.cpus:
            size = min(cpu.size, max(n_bytes - cpu.offset, 0))
            if size < cpu.size:
                reason = f"{cpu.size} bytes of data where the file has {size}"
                report(Damage(cpu.cpu, min(cpu.offset, n_bytes), reason))
            if not size:
                cpus.append(replace(cpu, offset=min(cpu.offset, n_bytes), size=0, codec=None))
            else:
                taken.append((cpu.offset, size))
                cpus.append(replace(cpu, size=size))
        kept.append(replace(buffer, cpus=tuple(cpus)))
    bad = _overlapping(taken)
    return tuple(_without(buffer, bad, report) for buffer in kept)


def _overlapping(places: list[tuple[int, int]]) -> set[tuple[int, int]]:
    bad: set[tuple[int, int]] = set()
    reached = 0
    for offset, size in sorted(places):
        if offset < reached:
            bad.add((offset, size))
        reached = max(reached, offset + size)
    return bad


def _without(buffer: TraceBuffer, bad: set[tuple[int, int]], report: Report) -> TraceBuffer:
    cpus = []
    for cpu in buffer.cpus:
        if (cpu.offset, cpu.size) in bad:
            report(Damage(cpu.cpu, cpu.offset, "the data lies over other data and was left out"))
        else:
            cpus.append(cpu)
    return replace(buffer, cpus=tuple(cpus))
