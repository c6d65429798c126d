"""The data of one CPU of a ring buffer, read block by block."""

from __future__ import annotations

import struct
from bisect import bisect_left
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING

from tracepoint.errors import DecodeError
from tracepoint.named import NamedTuple
from tracepoint.record.pages import read_pages, records_of
from tracepoint.tracefile.compression import MAX_CHUNK
from tracepoint.tracefile.cursor import Cursor
from tracepoint.tracefile.damage import Damage
from tracepoint.tracefile.filebytes import FileBytes, read_at, read_whole, shorter_by
from tracepoint.tracefile.sieve import ALL_TIMES, MAX_TIME, MIN_TIME, Sieve, shown_time, signed_time

if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable, Iterator

    from tracepoint.record.layout import PageLayout
    from tracepoint.record.page import Buffer
    from tracepoint.record.pages import Pages
    from tracepoint.record.raw import RawRecord
    from tracepoint.tracefile.compression import Decompressor
    from tracepoint.tracefile.filebytes import Bytes
    from tracepoint.tracefile.sieve import Window
    from tracepoint.tracefile.timing import TimeMap

    Report = Callable[[Damage], None]

# Less is not in the cache for longer, and two threads ask for the GIL more often.
_BLOCK = 1 << 20
_COUNT_SIZE = 4
_MAX_CHUNKS = 1_000_000
# The sizes before the data of a chunk.
_CHUNK_HEAD = 8
_LITTLE_SIZES, _BIG_SIZES = struct.Struct("<II"), struct.Struct(">II")


class Chunk(NamedTuple):
    """Where the compressed bytes of a chunk begin in the file, how many they are and become.

    Of what they become, `n_kept` bytes from `skip` on are read, None: all.  Data that is not compressed has
    as many bytes before as after.
    """

    start: int
    packed: int
    unpacked: int
    skip: int = 0
    n_kept: int | None = None

    @property
    def n_bytes(self) -> int:
        """The bytes that are read of what the chunk becomes."""
        return self.unpacked if self.n_kept is None else self.n_kept


@dataclass(frozen=True, slots=True)
class CpuData:
    """The data of one CPU: `size` bytes of the file at `offset`, in pages of `layout`.

    `picked` are the chunks to read, None for all; `sieve` leaves the chosen records; `new_ids` (one uint16
    for each id) are what it writes in place of the records' ids.  `is_in_order` says that the pages were
    found to follow each other in time; `watch` gets the blocks of chunks before `sieve` does.
    """

    cpu: int
    offset: int
    size: int
    layout: PageLayout
    data: Bytes = field(repr=False)
    codec: Decompressor | None = field(default=None, repr=False)
    report: Report = field(default=lambda _: None, repr=False)
    time_map: TimeMap | None = field(default=None, repr=False)
    picked: tuple[Chunk, ...] | None = field(default=None, repr=False)
    sieve: Sieve | None = field(default=None, repr=False)
    new_ids: array[int] | None = field(default=None, repr=False)
    is_in_order: bool = field(default=False, repr=False)
    watch: Callable[[Buffer], None] | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return f"<CpuData of CPU {self.cpu}, {self.size:,} bytes at offset {self.offset:#x}>"

    def blocks(self) -> Iterator[bytes]:
        """Yield the data, whole pages at a time; what is not available is reported."""
        return (bytes(block) for block, _ in self.blocks_at())

    def blocks_at(self) -> Iterator[tuple[Buffer, int]]:
        """Yield blocks and their places in the file (a compressed one: where its chunk begins)."""
        blocks = self._plain() if self.is_plain else self._expanded()
        yield from blocks if self.sieve is None else self._sifted(blocks, self.sieve)

    @property
    def is_plain(self) -> bool:
        """Whether the pages are read as they stand in the file, one after the other."""
        return self.codec is None and self.picked is None

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
            stop = min(at + step, end)
            block = read_at(self.data, at, stop)
            yield block, at
            if len(block) < stop - at:
                self.report_end(at + len(block))
                return

    @property
    def file(self) -> FileBytes | None:
        """The file where the pages stand as they are read; None where they do not."""
        return self.data if self.is_plain and isinstance(self.data, FileBytes) else None

    def report_end(self, at: int) -> None:
        """Report that the file ends before the data, at a place where it did not when it was opened."""
        self.report(Damage(self.cpu, at, shorter_by(self.offset + self.size - at)))

    def _cursor(self) -> Cursor:
        # trace-cmd does not count the number of chunks itself in the size.
        end = min(self.offset + self.size + _COUNT_SIZE, len(self.data))
        return Cursor(self.data, self.offset, end, big=self.layout.is_big_endian)

    @staticmethod
    def _walk_chunks(cursor: Cursor) -> Iterator[Chunk]:
        """Yield the chunks, which are whole; raises DecodeError for the first that is not."""
        unpack = (_BIG_SIZES if cursor.is_big_endian else _LITTLE_SIZES).unpack
        for _ in range(cursor.u32()):
            at = cursor.at + _CHUNK_HEAD
            if at > cursor.end:
                cursor.skip(_CHUNK_HEAD, "the sizes of a chunk")
            # The next ones are far away: what stands between is not read.
            packed, unpacked = unpack(read_whole(cursor.data, cursor.at, at))
            cursor.at = at
            if unpacked > MAX_CHUNK:
                raise cursor.error(f"a chunk that grows to {unpacked} bytes")
            yield Chunk(cursor.skip(packed, "a chunk"), packed, unpacked)

    def _seen(self, chunk: Chunk) -> bytes:
        block = self.expand_chunk(chunk)
        if self.watch is not None:
            self.watch(block)
        return block

    def _place_of(self, chunk: Chunk) -> int:
        return chunk.start if self.codec is None else chunk.start - _CHUNK_HEAD

    def _expanded(self) -> Iterator[tuple[bytes, int]]:
        if self.picked is not None:
            for chunk in self.picked:
                try:
                    yield self._seen(chunk), self._place_of(chunk)
                except DecodeError as error:
                    self.report(Damage(self.cpu, self._place_of(chunk), error.reason))
            return
        cursor = self._cursor()
        try:
            for chunk in self._walk_chunks(cursor):
                yield self._seen(chunk), self._place_of(chunk)
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

    def expand_chunk(self, chunk: Chunk) -> bytes:
        """Return what is read of a chunk; raises DecodeError for a damaged one."""
        data = read_whole(self.data, chunk.start, chunk.start + chunk.packed)
        if self.codec is not None:
            data = self.codec.expand(data, chunk.unpacked)
        return data if chunk.n_kept is None else data[chunk.skip : chunk.skip + chunk.n_kept]

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
        """The number of pages, of chunks where the data has them and they are listed."""
        return self.size // self.layout.page_size if self.is_plain else len(self.picked or ())

    @property
    def n_bytes(self) -> int:
        """The bytes of the pages of listed data, once they are expanded."""
        return self.size if self.is_plain else sum(chunk.n_bytes for chunk in self.picked or ())

    def place_from(self, time_ns: int) -> int:
        """Return the first place of listed data that begins at a time or later, by halving."""
        return bisect_left(range(self.n_places), time_ns, key=self.time_at)

    def places_of(self, window: Window) -> range:
        """Return the places of listed data in order that can hold records of a window.

        The one before the first of the window is among them: its records go on to the begin of the next.
        They are all where clocks do not say.
        """
        if window == ALL_TIMES or (self.time_map is not None and not self.time_map.is_affine):
            return range(self.n_places)
        start = 0 if window.start == MIN_TIME else max(self.place_from(window.start) - 1, 0)
        stop = self.n_places if window.stop == MAX_TIME else max(self.place_from(window.stop), start)
        return range(start, stop)

    def at_places(self, places: range) -> CpuData:
        """Return listed data with some of its places only."""
        if not self.n_places:
            return self
        if self.picked is not None:
            return replace(self, picked=self.picked[places.start : places.stop])
        step, end = self.layout.page_size, self.offset + self.size
        first = self.offset + places.start * step
        last = end if places.stop >= self.n_places else self.offset + places.stop * step
        return replace(self, offset=first, size=max(last - first, 0))

    def sample_places(self, most: int) -> list[int]:
        """Return at most `most` places of listed data, spread over it, the first and the last among them."""
        n_samples = min(self.n_places, most)
        return [i * (self.n_places - 1) // max(n_samples - 1, 1) for i in range(n_samples)]

    def sample_times(self, most: int) -> list[int]:
        """Return the times at which at most `most` places of listed data begin, in order, spread over it."""
        return sorted(time for time in map(self.time_at, self.sample_places(most)) if time != MAX_TIME)

    def time_at(self, place: int) -> int:
        """Return the time at which a place of listed data begins; MAX_TIME where that cannot be read."""
        stamp = self._page_stamp(place) if self.is_plain else self._chunk_stamp(place)
        return stamp if stamp == MAX_TIME else shown_time(self.time_map, stamp, self.cpu)

    def _page_stamp(self, index: int) -> int:
        at = self.offset + index * self.layout.page_size
        head = read_at(self.data, at, at + 8)
        return self._stamp(head) if len(head) == 8 else MAX_TIME

    def _chunk_stamp(self, index: int) -> int:
        """Return the stamp of the first page of a chunk; of a damaged one that of the next that is not."""
        for chunk in (self.picked or ())[index:]:
            with suppress(DecodeError):
                head = self.expand_chunk(chunk)[:8]
                if len(head) == 8:
                    return self._stamp(head)
        return MAX_TIME

    def _stamp(self, head: Bytes) -> int:
        return signed_time(int.from_bytes(head, "big" if self.layout.is_big_endian else "little"))

    def records(self, *, with_losses: bool = False) -> Iterator[RawRecord]:
        """Yield the records in the order they were written; `with_losses` is as of `records_of`."""
        records = records_of(self.pages(), self.cpu, with_losses=with_losses)
        if self.time_map is None:
            return records
        convert, cpu = self.time_map, self.cpu
        return (record._replace(timestamp=convert(record.timestamp, cpu)) for record in records)
