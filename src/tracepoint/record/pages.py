"""All records of many pages, as columns: with the C reader if it was built, else with its twin."""

from __future__ import annotations

from array import array
from itertools import islice
from typing import TYPE_CHECKING

from tracepoint.named import NamedTuple
from tracepoint.record.decode import DECODE
from tracepoint.record.layout import PageLayout
from tracepoint.record.page import add_lost, walk_pages
from tracepoint.record.raw import RawRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tracepoint.record.page import Buffer

    Marks = tuple[tuple[int, int], ...]

_RING_LAYOUT = PageLayout()


class PageHead(NamedTuple):
    """What a page says beside its records: `n_records` of them are its own; see `Page` for the rest."""

    stamp: int
    size: int
    lost: int
    n_records: int
    marks: Marks
    fault: str
    fault_at: int


class Pages(NamedTuple):
    """The records of pages, in the order they were written.

    `stamps` (uint64, the clock's unit), `offsets` (uint64) of the payloads in the buffer and their `lengths`
    (uint32), both in bytes, are memoryviews of one item a record; `all_heads` has the values of `heads`, and
    `noted` names those pages before which records were lost, with marks or with a fault: the number of the
    first record of each, and its own.
    """

    stamps: memoryview
    offsets: memoryview
    lengths: memoryview
    all_heads: Sequence[tuple[int, int, int, int, Marks, str, int]]
    noted: list[tuple[int, int]]

    @property
    def heads(self) -> list[PageHead]:
        """One for each page, and one with a fault for what is left over after the last whole page."""
        return [PageHead._make(head) for head in self.all_heads]

    def noted_heads(self) -> Iterator[tuple[int, PageHead]]:
        """Yield the pages that `noted` names with the number of the first record of each."""
        return ((first, PageHead._make(self.all_heads[index])) for first, index in self.noted)


def read_pages(data: Buffer, layout: PageLayout) -> Pages:
    """Read a buffer of whole pages.

    >>> from tracepoint.record.layout import PageLayout
    >>> page = bytes.fromhex("2b16c3be90b60300 0800000000000000 01000000 2f000103") + bytes(4072)
    >>> read_pages(page, PageLayout()).stamps.tolist()
    [1045157722134059]
    """
    if DECODE is None:
        return read_pages_slowly(data, layout)
    stamps, offsets, lengths, heads, noted = DECODE.read_pages(
        data,
        layout.data_offset,
        layout.data_size,
        layout.commit_offset,
        layout.long_size,
        layout.is_big_endian,
    )
    return Pages(
        memoryview(stamps).cast("Q"),
        memoryview(offsets).cast("Q"),
        memoryview(lengths).cast("I"),
        heads,
        noted,
    )


def records_of(
    blocks: Iterable[tuple[bytes, Pages]], cpu: int = 0, *, with_losses: bool = False
) -> Iterator[RawRecord]:
    """Yield the records of buffers and their pages, with what was lost before each.

    `cpu` is theirs, except where a process's ring names another.  A loss on a page without data is before
    none of them: `with_losses` yields one without bytes for it.
    """
    lost = 0
    for data, pages in blocks:
        places = zip(pages.stamps, pages.offsets, pages.lengths, strict=True)
        for head in pages.heads:
            if head.lost and not head.size:
                if with_losses:
                    yield RawRecord(head.stamp, cpu, b"", head.lost)
                continue
            lost = add_lost(lost, head.lost)
            where, marks = cpu, dict(head.marks)
            for index, (stamp, at, length) in enumerate(islice(places, head.n_records)):
                if index in marks:
                    where = max(marks[index], 0)
                yield RawRecord(stamp, where, data[at : at + length], lost)
                lost = 0


def ring_records(pages: Iterable[bytes]) -> Iterator[RawRecord]:
    """Yield the records of the pages of a process's ring, with what was lost before each."""
    return records_of((page, read_pages(page, _RING_LAYOUT)) for page in pages)


def read_pages_slowly(data: Buffer, layout: PageLayout) -> Pages:
    """Read a buffer of whole pages in Python: what the C reader must give."""
    stamps, offsets, lengths, heads = array("Q"), array("Q"), array("I"), []
    noted = []
    for index, page in enumerate(walk_pages(data, layout)):
        if page.lost or page.marks or page.fault:
            noted.append((len(stamps), index))
        for stamp, offset, length in page.records:
            stamps.append(stamp)
            offsets.append(offset)
            lengths.append(length)
        marks = tuple(page.marks)
        heads.append(
            PageHead(page.stamp, page.size, page.lost, len(page.records), marks, page.fault, page.fault_at)
        )
    return Pages(memoryview(stamps), memoryview(offsets), memoryview(lengths), heads, noted)
