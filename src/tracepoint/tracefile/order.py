"""The order of a CPU's pages in time: whether they have it, and reading those that do not.

The kernel writes the pages of a CPU one after the other, and a search for a time relies on that.  They go
back where the clock was set back while recording, or where a file was put together in another order.
"""

from __future__ import annotations

import sys
from array import array
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from tracepoint.named import NamedTuple
from tracepoint.record.pages import read_pages
from tracepoint.tracefile.cpudata import Chunk
from tracepoint.tracefile.sieve import ALL_TIMES, MAX_TIME, MIN_TIME, shown_time, signed_time

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.record.layout import PageLayout
    from tracepoint.record.page import Buffer
    from tracepoint.tracefile.cpudata import CpuData
    from tracepoint.tracefile.sieve import Window

_BLOCK = 1 << 20
# Places that are looked at beside those of a window: some on both sides of it, some spread over the rest.
_NEAR_PAGES, _PAGE_SAMPLES = 16, 256
_NEAR_CHUNKS, _CHUNK_SAMPLES = 1, 32
# Merging looks at each of them for every record.
_MAX_STRANDS = 64


def in_order(cpu: CpuData) -> tuple[CpuData, ...]:
    """Return the data as parts whose pages are in the order of time, one where they are so already.

    The heads of all pages are looked at; pages that go back in time are reported.
    """
    if cpu.is_in_order:
        return (cpu,)
    return _strands(cpu) if _goes_back(cpu) else (replace(cpu, is_in_order=True),)


def narrowed(cpu: CpuData, window: Window) -> tuple[CpuData, ...]:
    """Return the data without pages that cannot hold records of a window, as parts as of `in_order`.

    Looked at are the heads of the pages that are kept, of 16 on each side and of 256 that are spread over all
    (of compressed data: all kept chunks, one on each side, and 32).  Where none goes back in time, the
    others are taken to be in order too; else all pages of the CPU are read.
    """
    if window == ALL_TIMES:
        return (cpu,)
    data = cpu.listed()
    places = data.places_of(window)
    if not cpu.is_in_order and (samples_go_back(data, places) or _goes_back(_near(data, places))):
        return tuple(part.at_places(part.places_of(window)) for part in _strands(cpu))
    return (replace(data.at_places(places), is_in_order=True),)


def samples_go_back(data: CpuData, among: range = range(0)) -> bool:
    """Return whether places of listed data, spread over it and with the ends of `among`, go back in time."""
    ends = {place for place in (among.start, among.stop - 1) if 0 <= place < data.n_places}
    places = data.sample_places(_PAGE_SAMPLES if data.is_plain else _CHUNK_SAMPLES)
    times = [data.time_at(place) for place in sorted({*places, *ends})]
    return times != sorted(times)


def _near(data: CpuData, places: range) -> CpuData:
    """Return places and some on both sides."""
    n_more = _NEAR_PAGES if data.is_plain else _NEAR_CHUNKS
    return data.at_places(range(max(places.start - n_more, 0), min(places.stop + n_more, data.n_places)))


class PageOrder:
    """Whether pages that are seen one after the other begin in the order of time."""

    def __init__(self, layout: PageLayout) -> None:
        self._layout = layout
        self.first, self.last = MAX_TIME, MIN_TIME
        self.goes_back = False

    def see(self, block: Buffer) -> None:
        """Look at the heads of the pages of a block."""
        if stamps := stamps_of(block, self._layout):
            self.goes_back |= stamps[0] < self.last or stamps != sorted(stamps)
            self.first, self.last = min(self.first, stamps[0]), stamps[-1]


def _goes_back(cpu: CpuData) -> bool:
    """Return whether a page begins before the one before it."""
    seen = PageOrder(cpu.layout)
    for block, _ in replace(cpu, sieve=None).blocks_at():
        seen.see(block)
    return seen.goes_back


def stamps_of(data: Buffer, layout: PageLayout) -> list[int]:
    """Return the stamps of the whole pages of a buffer, as signed numbers.

    >>> from tracepoint.record.layout import PageLayout
    >>> stamps_of((5).to_bytes(4096, "little") + (3).to_bytes(4096, "little"), PageLayout())
    [5, 3]
    """
    size, order = layout.page_size, "big" if layout.is_big_endian else "little"
    n_pages = len(data) // size
    if size % 8:
        places = range(0, n_pages * size, size)
        return [signed_time(int.from_bytes(data[at : at + 8], order)) for at in places]  # type: ignore[arg-type]
    with memoryview(data) as view, view[: n_pages * size] as whole, whole.cast("q") as words:
        found = words[:: size // 8].tolist()
    if order != sys.byteorder:
        swapped = array("q", found)
        swapped.byteswap()
        found = swapped.tolist()
    return found


class _Page(NamedTuple):
    """A page: its first and last time, its number in the file, and where it is."""

    start: int
    end: int
    number: int
    chunk: Chunk


def _strands(cpu: CpuData) -> tuple[CpuData, ...]:
    """Take the pages of a CPU apart into parts that are each in the order of time, as few as they can be."""
    strands: list[list[_Page]] = []
    is_tangled = False
    for page in sorted(_pages(cpu), key=lambda page: (page.start, page.number)):
        free = [strand for strand in strands if strand[-1].end <= page.start]
        after = next((strand for strand in free if strand[-1].number == page.number - 1), None)
        if free:
            (after or free[0]).append(page)
        elif len(strands) < _MAX_STRANDS:
            strands.append([page])
        else:
            is_tangled = True
            min(strands, key=lambda strand: strand[-1].end).append(page)
    if is_tangled:
        reason = f"more than {_MAX_STRANDS} pages overlap in time: records are not in its order"
        cpu.report_fault(cpu.offset, 0, reason)
    return tuple(replace(cpu, picked=_joined(strand), is_in_order=True) for strand in strands)


def _joined(pages: list[_Page]) -> tuple[Chunk, ...]:
    """Return the pieces that pages are in: those that follow each other in the file are one."""
    found: list[Chunk] = []
    for page in pages:
        piece, last = page.chunk, found[-1] if found else None
        if last is None or last.n_bytes + piece.n_bytes > _BLOCK:
            found.append(piece)
        elif piece.n_kept is None and last.start + last.packed == piece.start:
            n_bytes = last.packed + piece.packed
            found[-1] = Chunk(last.start, n_bytes, n_bytes)
        elif (
            piece.n_kept is not None and piece.start == last.start and last.skip + last.n_bytes == piece.skip
        ):
            found[-1] = last._replace(n_kept=last.n_bytes + piece.n_kept)
        else:
            found.append(piece)
    return tuple(found)


def _pages(cpu: CpuData) -> Iterator[_Page]:
    """Yield the pages in the order of the file, and report damage; those that say nothing are left out.

    A page that was never written is all zeros: it does not go back in time.
    """
    last, number, is_back = MIN_TIME, 0, False
    for chunk, block, at in _pieces(cpu):
        pages = read_pages(block, cpu.layout)
        n_before = 0
        for index, head in enumerate(pages.heads):
            if head.fault:
                cpu.report_fault(at, head.fault_at, head.fault)
            place = index * cpu.layout.page_size
            if place + cpu.layout.page_size > len(block):
                continue
            stamps = pages.stamps[n_before : n_before + head.n_records].tolist()
            n_before += head.n_records
            number += 1
            if not (head.size or head.lost):
                continue
            start = signed_time(head.stamp)
            end = max(map(signed_time, chain((head.stamp,), stamps)))
            if start < last and not is_back:
                is_back = True
                _report(cpu, at, place, last, start)
            last = start
            yield _Page(start, end, number, _page_chunk(cpu, chunk, place))


def _report(cpu: CpuData, at: int, place: int, before: int, stamp: int) -> None:
    before, stamp = (shown_time(cpu.time_map, time, cpu.cpu) for time in (before, stamp))
    reason = f"pages go back in time, from {before / 1e9:.9f} to {stamp / 1e9:.9f} s"
    cpu.report_fault(at, place, reason)


def _pieces(cpu: CpuData) -> Iterator[tuple[Chunk, bytes, int]]:
    """Yield the chunks of data with what they become and their places in the file."""
    raw = replace(cpu, sieve=None).listed()
    if raw.is_plain:
        for block, at in raw.blocks_at():
            yield Chunk(at, len(block), len(block)), bytes(block), at
        return
    for chunk in raw.chunks(sys.maxsize) if raw.picked is None else raw.picked:
        for block, at in replace(raw, picked=(chunk,)).blocks_at():
            yield chunk, bytes(block), at


def _page_chunk(cpu: CpuData, chunk: Chunk, place: int) -> Chunk:
    """Return the chunk with the page at an offset in it only."""
    size = cpu.layout.page_size
    if cpu.codec is None:
        return Chunk(chunk.start + place, size, size)
    return chunk._replace(skip=chunk.skip + place, n_kept=size)
