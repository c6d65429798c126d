"""The ring buffers of a trace.dat: the data of each CPU, read block by block."""

from __future__ import annotations

import mmap
from bisect import bisect_left
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
from tracepoint.tracefile.sieve import ALL_TIMES, MAX_TIME, MIN_TIME, Sieve, shown_time, signed_time
from tracepoint.wording import counted, one_line

if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable, Collection, Iterator, Mapping

    from tracepoint.filter.program import FilterProgram
    from tracepoint.record.layout import PageLayout
    from tracepoint.record.page import Buffer
    from tracepoint.record.pages import Pages
    from tracepoint.record.raw import RawRecord
    from tracepoint.tracefile.compression import Codec
    from tracepoint.tracefile.cursor import Bytes
    from tracepoint.tracefile.sieve import Window
    from tracepoint.tracefile.timing import TimeMap

    Report = Callable[[Damage], None]

_BLOCK = 1 << 20
_COUNT_SIZE = 4
_MAX_CHUNKS = 1_000_000
# The sizes before the data of a chunk.
_CHUNK_HEAD = 8


class Chunk(NamedTuple):
    """Where the compressed bytes of a chunk begin in the file, how many they are and become."""

    start: int
    packed: int
    unpacked: int


@dataclass(frozen=True, slots=True)
class CpuData:
    """The data of one CPU: `size` bytes of the file at `offset`, in pages of `layout`.

    `picked` are the compressed chunks to read, None for all; `sieve` leaves the chosen records; `new_ids`
    (one uint16 for each id) are what it writes in place of the records' ids.
    """

    cpu: int
    offset: int
    size: int
    layout: PageLayout
    data: Bytes = field(repr=False)
    codec: Codec | None = field(default=None, repr=False)
    report: Report = field(default=lambda _: None, repr=False)
    time_map: TimeMap | None = field(default=None, repr=False)
    picked: tuple[Chunk, ...] | None = field(default=None, repr=False)
    sieve: Sieve | None = field(default=None, repr=False)
    new_ids: array[int] | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return f"<CpuData of CPU {self.cpu}, {self.size:,} bytes at offset {self.offset:#x}>"

    def blocks(self) -> Iterator[bytes]:
        """Yield the data, whole pages at a time; what is not available is reported."""
        return (bytes(block) for block, _ in self.blocks_at())

    def blocks_at(self) -> Iterator[tuple[Buffer, int]]:
        """Yield blocks and their places in the file (a compressed one: where its chunk begins)."""
        blocks = self._plain() if self.codec is None else self._expanded(self.codec)
        yield from blocks if self.sieve is None else self._sifted(blocks, self.sieve)

    def _sifted(self, blocks: Iterator[tuple[bytes, int]], sieve: Sieve) -> Iterator[tuple[Buffer, int]]:
        for block, at in blocks:
            pages, faults = sieve.sift(block, self.cpu)
            for reason, fault_at in faults:
                self.report_fault(at, fault_at, reason)
            yield pages, at

    def report_fault(self, at: int, fault_at: int, reason: str) -> None:
        """Report damage at a place of the block that begins at `at` of the file."""
        self.report(Damage(self.cpu, at if self.codec is not None else at + fault_at, reason))

    def _plain(self) -> Iterator[tuple[bytes, int]]:
        size = self.layout.page_size
        step = max(_BLOCK // size, 1) * size
        end = self.offset + self.size
        for at in range(self.offset, end, step):
            yield bytes(self.data[at : min(at + step, end)]), at
            replace(self, offset=at, size=min(step, end - at)).forget()

    def forget(self) -> None:
        """Let go of what is mapped of data that was read: it would count as memory of this process."""
        if self.codec is None and isinstance(self.data, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            start = -(-self.offset // mmap.PAGESIZE) * mmap.PAGESIZE
            end = self.offset + self.size
            if end - start >= mmap.PAGESIZE:
                self.data.madvise(mmap.MADV_DONTNEED, start, end - start)

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
        if self.picked is not None:
            for chunk in self.picked:
                try:
                    yield self.expand_chunk(codec, chunk), chunk.start - _CHUNK_HEAD
                except DecodeError as error:
                    self.report(Damage(self.cpu, chunk.start - _CHUNK_HEAD, error.reason))
            return
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
            data = bytes(block)
            pages = read_pages(data, self.layout)
            for _, head in pages.noted_heads():
                if head.fault:
                    self.report_fault(at, head.fault_at, head.fault)
            yield data, pages

    def listed(self) -> CpuData:
        """Return the data with its compressed chunks found; the same data where it is not compressed.

        More than a million of them are not listed: then `n_places` is 0.
        """
        if self.codec is None or self.picked is not None:
            return self
        chunks = tuple(self.chunks(_MAX_CHUNKS + 1))
        return self if len(chunks) > _MAX_CHUNKS else replace(self, picked=chunks)

    @property
    def n_places(self) -> int:
        """The number of pages, of chunks where the data is compressed and listed."""
        return self.size // self.layout.page_size if self.codec is None else len(self.picked or ())

    @property
    def n_bytes(self) -> int:
        """The bytes of the pages of listed data, once they are expanded."""
        return self.size if self.codec is None else sum(chunk.unpacked for chunk in self.picked or ())

    def place_from(self, time_ns: int) -> int:
        """Return the first place of listed data that begins at a time or later, by halving."""
        return bisect_left(range(self.n_places), time_ns, key=self._time_at)

    def narrowed(self, window: Window) -> CpuData:
        """Return the data without pages that cannot hold records of a window, as far as clocks allow to say.

        Pages of one CPU follow each other in time; the one before the first of the window is kept, as its
        records go on to the begin of the next.
        """
        data = self.listed()
        if window == ALL_TIMES or not data.n_places or (self.time_map and not self.time_map.is_affine):
            return self
        start = 0 if window.start == MIN_TIME else max(data.place_from(window.start) - 1, 0)
        stop = data.n_places if window.stop == MAX_TIME else max(data.place_from(window.stop), start)
        # Looking at one page maps those around it.
        self.forget()
        if data.picked is not None:
            return replace(data, picked=data.picked[start:stop])
        step, end = self.layout.page_size, self.offset + self.size
        first = self.offset + start * step
        last = end if stop == data.n_places else self.offset + stop * step
        return replace(self, offset=first, size=last - first)

    def sample_times(self, most: int) -> list[int]:
        """Return the times at which at most `most` places of listed data begin, in order, spread over it."""
        n_samples = min(self.n_places, most)
        places = (i * (self.n_places - 1) // max(n_samples - 1, 1) for i in range(n_samples))
        return sorted(time for time in map(self._time_at, places) if time != MAX_TIME)

    def _time_at(self, place: int) -> int:
        stamp = self._page_stamp(place) if self.codec is None else self._chunk_stamp(self.codec, place)
        return stamp if stamp == MAX_TIME else shown_time(self.time_map, stamp, self.cpu)

    def _page_stamp(self, index: int) -> int:
        at = self.offset + index * self.layout.page_size
        return self._stamp(self.data[at : at + 8])

    def _chunk_stamp(self, codec: Codec, index: int) -> int:
        """Return the stamp of the first page of a chunk; of a damaged one that of the next that is not."""
        for chunk in (self.picked or ())[index:]:
            with suppress(DecodeError):
                head = self.expand_chunk(codec, chunk)[:8]
                if len(head) == 8:
                    return self._stamp(head)
        return MAX_TIME

    def _stamp(self, head: Bytes) -> int:
        return signed_time(int.from_bytes(head, "big" if self.layout.is_big_endian else "little"))

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

    def sifted(
        self,
        window: Window = ALL_TIMES,
        programs: Mapping[int, FilterProgram | None] | None = None,
        cpus: Collection[int] | None = None,
    ) -> TraceBuffer:
        """Return the buffer with the chosen records only; `programs` are as `Sieve` takes them.

        `cpus` leaves others out as a whole: not for the rings of a process, whose records name their CPU.
        """
        kept: list[CpuData] = []
        sieves: list[Sieve] = []
        for cpu in (cpu for cpu in self.cpus if cpus is None or cpu.cpu in cpus):
            facts = cpu.layout, cpu.time_map, cpu.new_ids
            sieve = next((sieve for sieve in sieves if sieve.serves(*facts)), None)
            if sieve is None:
                layout, convert, new_ids = facts
                sieve = Sieve(layout, window, programs, convert, new_ids)
                sieves.append(sieve)
            is_whole = window == ALL_TIMES and programs is None and cpu.new_ids is None
            kept.append(cpu if is_whole else replace(cpu.narrowed(window), sieve=sieve))
        return replace(self, cpus=tuple(kept))

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
