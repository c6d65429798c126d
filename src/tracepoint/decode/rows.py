"""The records of chosen events in pages, by time over all CPUs: what `collect.c` and `merge.c` must give."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal

from tracepoint.decode.found import NO_ID, Found, HeadFacts
from tracepoint.named import NamedTuple
from tracepoint.record.page import walk_pages
from tracepoint.tracefile.sieve import MAX_TIME, MIN_TIME, signed_time

if TYPE_CHECKING:
    from array import array
    from collections.abc import Container, Iterable, Iterator

    from tracepoint.record.layout import PageLayout
    from tracepoint.record.page import Buffer
    from tracepoint.tracefile.sieve import Sieve


class Row(NamedTuple):
    """One record: its time in ns, its CPU and its bytes."""

    stamp: int
    cpu: int
    data: bytes


def _walk(data: Buffer, layout: PageLayout, cpu: int) -> Iterator[tuple[int, int, bytes]]:
    for page in walk_pages(data, layout):
        where, marks = cpu, dict(page.marks)
        for index, (stamp, at, length) in enumerate(page.records):
            where = max(marks.get(index, where), 0)
            yield signed_time(stamp), where, bytes(data[at : at + length])


def count_pages_slowly(data: Buffer, layout: PageLayout, counts: array[int]) -> Found:
    """Count the records of a buffer of whole pages in `counts`, one item for each id and NO_ID the last."""
    first, last, goes_back = MAX_TIME, MIN_TIME, False
    for stamp, _, record in _walk(data, layout, 0):
        counts[id_of(record, is_big_endian=layout.is_big_endian)] += 1
        goes_back |= stamp < last
        first, last = min(first, stamp), max(last, stamp)
    pages = (page for page in walk_pages(data, layout) if page.fault or page.lost)
    heads = [HeadFacts(page.stamp, page.lost, page.fault, page.fault_at) for page in pages]
    return Found(heads, first, last, goes_back)


def count_tasks_slowly(data: Buffer, layout: PageLayout, pid_at: int) -> dict[int, int]:
    """Count the records of each task in a buffer of whole pages: its id is the int32 at `pid_at`."""
    order: Literal["big", "little"] = "big" if layout.is_big_endian else "little"
    pids = (
        int.from_bytes(record[pid_at : pid_at + 4], order, signed=True)
        for _, _, record in _walk(data, layout, 0)
        if len(record) >= pid_at + 4
    )
    return dict(Counter(pids))


def id_of(record: bytes, *, is_big_endian: bool) -> int:
    """Return the number of a record's event, NO_ID where it is too short to say it."""
    return int.from_bytes(record[:2], "big" if is_big_endian else "little") if len(record) >= 2 else NO_ID


def collect_slowly(
    data: Buffer, layout: PageLayout, cpu: int, ids: Container[int], sieve: Sieve | None = None
) -> Iterator[tuple[int, Row]]:
    """Yield the records of chosen events with their ids; of a sieve what it keeps."""
    for stamp, where, found in _walk(data, layout, cpu):
        record = found if sieve is None else sieve.kept(stamp & (1 << 64) - 1, where, found)
        if record is None:
            continue
        number = id_of(record, is_big_endian=layout.is_big_endian)
        if number in ids:
            yield number, Row(stamp, where, record)


def merge_slowly(rows: Iterable[Row]) -> list[Row]:
    """Return rows, given CPU by CPU, by time; of equal times what was given first comes first."""
    return sorted(rows, key=lambda row: row.stamp)
