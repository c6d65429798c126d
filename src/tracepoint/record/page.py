"""Sub-buffers (pages) of a ring buffer: where each record is and when it happened.

In: bytes as `trace_pipe_raw` gives them, as trace.dat keeps them and as a process's own rings hold them.
Out: for each record its time stamp, place and length.  A damaged page gives what could be read of it and a
reason.  `csrc/page.h` does the same; `tracepoint.record.pages` chooses.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.record.layout import PageLayout

    Buffer = bytes | bytearray | memoryview
    Place = tuple[int, int, int]

# Event types: include/linux/ring_buffer.h, enum ring_buffer_type.
DATA_MAX = 28
PADDING = 29
TIME_EXTEND = 30
TIME_STAMP = 31

DELTA_BITS = 27
DELTA_MASK = (1 << DELTA_BITS) - 1
STAMP_BITS = 59
STAMP_MASK = (1 << STAMP_BITS) - 1
U64 = (1 << 64) - 1

# The flags of `commit`, kernel/trace/ring_buffer.c: RB_MISSED_EVENTS, RB_MISSED_STORED.
MISSED_EVENTS = 1 << 31
MISSED_STORED = 1 << 30
SIZE_MASK = (1 << 27) - 1

LOST_UNKNOWN = -1
#: More is not a count that a kernel makes.
MOST_LOST = (1 << 63) - 1


def add_lost(one: int, other: int) -> int:
    """Return the sum of two losses; LOST_UNKNOWN when either is not known, or the sum is above MOST_LOST.

    >>> add_lost(2, 3), add_lost(2, LOST_UNKNOWN)
    (5, -1)
    """
    is_unknown = LOST_UNKNOWN in (one, other) or one + other > MOST_LOST
    return LOST_UNKNOWN if is_unknown else one + other


#: A padding event of this many bytes in a process's ring holds the number of the CPU; no other has this size.
CPU_MARK_SIZE = 12


@dataclass(slots=True)
class Page:
    """One page read.

    `stamp` is the absolute time of the page and `end_stamp` that of its last event, `records` are (time
    stamp, offset of the payload in the buffer, its length), `lost` is how many events were lost before the
    page (LOST_UNKNOWN: some), `marks` are (number of records before it, CPU) where a process's ring says on
    which CPU it goes on, and `fault` why the rest of the page was not read, at `fault_at`.
    """

    stamp: int
    size: int
    lost: int = 0
    records: list[Place] = field(default_factory=list)
    marks: list[tuple[int, int]] = field(default_factory=list)
    end_stamp: int = 0
    fault: str = ""
    fault_at: int = 0


def read_page(data: Buffer, at: int, layout: PageLayout) -> Page:
    """Read the page that begins at offset `at` of `data`; it must be there as a whole.

    The length of a payload is that of its slot, rounded up to 4 bytes: the kernel keeps no other.

    >>> from tracepoint.record.layout import PageLayout
    >>> page = bytes.fromhex("2b16c3be90b60300 0800000000000000 01000000 2f000103") + bytes(4072)
    >>> read_page(page, 0, PageLayout()).records
    [(1045157722134059, 20, 4)]
    """
    order = ">" if layout.is_big_endian else "<"
    long_code = order + ("Q" if layout.long_size == 8 else "I")
    stamp = struct.unpack_from(order + "Q", data, at)[0]
    commit = struct.unpack_from(long_code, data, at + layout.commit_offset)[0]
    size = commit & SIZE_MASK
    start = at + layout.data_offset
    if size > layout.data_size:
        fault = f"a page claims {size} bytes of data"
        return Page(stamp, 0, end_stamp=stamp, fault=fault, fault_at=at + layout.commit_offset)
    page = read_events(data, start, size, stamp, is_big_endian=layout.is_big_endian)
    page.lost = read_lost(data, at, layout)
    return page


def read_lost(data: Buffer, at: int, layout: PageLayout) -> int:
    """Return how many events the page at offset `at` says were lost before it (LOST_UNKNOWN: some).

    >>> from tracepoint.record.layout import PageLayout
    >>> page = bytes(8) + (0xC0000000).to_bytes(8, "little") + (7).to_bytes(8, "little") + bytes(4072)
    >>> read_lost(page, 0, PageLayout())
    7
    """
    long_code = (">" if layout.is_big_endian else "<") + ("Q" if layout.long_size == 8 else "I")
    commit = struct.unpack_from(long_code, data, at + layout.commit_offset)[0]
    size = commit & SIZE_MASK
    if not commit & MISSED_EVENTS or size > layout.data_size:
        return 0
    if not commit & MISSED_STORED or size + layout.long_size > layout.data_size:
        return LOST_UNKNOWN
    lost = int(struct.unpack_from(long_code, data, at + layout.data_offset + size)[0])
    return lost if lost <= MOST_LOST else LOST_UNKNOWN


def read_events(data: Buffer, start: int, size: int, stamp: int, *, is_big_endian: bool = False) -> Page:
    """Read `size` bytes of events from `start` on, a page or the rest of one; time begins at `stamp`."""
    page = Page(stamp, size)
    words = struct.unpack_from(f"{'>' if is_big_endian else '<'}{size // 4}I", data, start)
    left = _walk(words, page, start, is_big_endian=is_big_endian)
    if left >= 0:
        page.fault, page.fault_at = "an event reaches past the end of the data", start + 4 * left
    elif size % 4:
        page.fault, page.fault_at = "the data does not end with a whole word", start + size
    if page.end_stamp > U64:
        page.end_stamp &= U64
        page.records = [(t & U64, offset, length) for t, offset, length in page.records]
    return page


def _walk(words: tuple[int, ...], page: Page, start: int, *, is_big_endian: bool) -> int:
    """Collect the records; return the index of the word where an event is cut off, or -1.

    kernel/trace/ring_buffer.c: rb_update_write_stamp(), rb_advance_reader().
    """
    kind_shift, delta_shift = (27, 0) if is_big_endian else (0, 5)
    add = page.records.append
    stamp = page.stamp
    # Indices count words, offsets bytes: the payload of an event at word i is at `payload + 4 * i`.
    payload = start + 4
    at, end = 0, len(words)
    while at < end:
        word = words[at]
        kind = word >> kind_shift & 31
        delta = word >> delta_shift & DELTA_MASK
        if 0 < kind <= DATA_MAX:
            after = at + kind + 1
            if after <= end:
                stamp += delta
                add((stamp, payload + 4 * at, 4 * kind))
        elif kind == PADDING and not delta:
            at = end
            break
        elif at + 2 > end:
            break
        elif kind == TIME_EXTEND:
            after = at + 2
            stamp += (words[at + 1] << DELTA_BITS) + delta
        elif kind == TIME_STAMP:
            after = at + 2
            stamp = stamp & ~STAMP_MASK | (words[at + 1] << DELTA_BITS) + delta & STAMP_MASK
        else:
            after = _take_sized(page, words, at, payload, stamp + delta if kind == 0 else -1)
            stamp += delta if after <= end else 0
        if after > end:
            break
        at = after
    page.end_stamp = stamp
    return at if at < end else -1


def _take_sized(page: Page, words: tuple[int, ...], at: int, payload: int, stamp: int) -> int:
    """Take an event whose second word is its length, padding if `stamp` is -1; return the word after it."""
    array = words[at + 1]
    after = at + 1 + (array + 3 >> 2)
    if array < 4 or after > len(words):
        return len(words) + 1
    if stamp >= 0:
        page.records.append((stamp, payload + 4 * at + 4, array - 4))
    elif 4 + array == CPU_MARK_SIZE:
        cpu = words[at + 2]
        page.marks.append((len(page.records), cpu - (cpu >> 31 << 32)))
    return after


def walk_pages(data: Buffer, layout: PageLayout) -> Iterator[Page]:
    """Yield every page of a buffer of whole pages; a rest shorter than a page gives a fault of its own."""
    size = layout.page_size
    whole = len(data) // size * size
    for at in range(0, whole, size):
        yield read_page(data, at, layout)
    if whole < len(data):
        yield Page(
            0, 0, fault=f"{len(data) - whole} bytes are left over after the last whole page", fault_at=whole
        )
