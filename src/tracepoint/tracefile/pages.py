"""Sub-buffers (pages) of the kernel's ring buffer: where each record stands and when it happened.

In: bytes as `trace_pipe_raw` gives them and trace.dat keeps them, and the text of
`events/header_page`, which tells the layout.  Out: for each record its time stamp, place and
length.  A damaged page gives what could be read of it and a reason.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracepoint.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Buffer = bytes | bytearray | memoryview
    Place = tuple[int, int, int]

# Event types: include/linux/ring_buffer.h, enum ring_buffer_type.
DATA_MAX = 28
PADDING = 29
TIME_EXTEND = 30
TIME_STAMP = 31

DELTA_BITS = 27
DELTA_MASK = (1 << DELTA_BITS) - 1
STAMP_MASK = (1 << 59) - 1
U64 = (1 << 64) - 1

# The flags of `commit`, kernel/trace/ring_buffer.c: RB_MISSED_EVENTS, RB_MISSED_STORED.
MISSED_EVENTS = 1 << 31
MISSED_STORED = 1 << 30
SIZE_MASK = (1 << 27) - 1

LOST_UNKNOWN = -1
MAX_PAGE = 1 << 27

_MEMBER = re.compile(
    r"field:[^;]*?\b(?P<name>\w+);\s*offset:(?P<offset>\d{1,9});\s*size:(?P<size>\d{1,9});", re.ASCII
)
_TYPE_LEN = re.compile(r"type_len\s*:\s*5 bits", re.ASCII)


@dataclass(frozen=True, slots=True)
class PageLayout:
    """Where the parts of a page stand, in bytes; the default is that of 64-bit x86.

    `long_size` (4 or 8) is the width of `commit` and of a stored count of lost events.
    """

    data_offset: int = 16
    data_size: int = 4080
    commit_offset: int = 8
    long_size: int = 8
    is_big_endian: bool = False

    @property
    def page_size(self) -> int:
        """The bytes of a whole page."""
        return self.data_offset + self.data_size


def read_page_layout(text: str, *, is_big_endian: bool = False) -> PageLayout:
    r"""Read the text of `events/header_page`.

    Raises DecodeError when members are missing or contradict each other.

    >>> read_page_layout(
    ...     "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
    ...     "\tfield: local_t commit;\toffset:8;\tsize:4;\tsigned:1;\n"
    ...     "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
    ...     "\tfield: char data;\toffset:12;\tsize:4084;\tsigned:0;\n"
    ... ).page_size
    4096
    """
    members = {m["name"]: (int(m["offset"]), int(m["size"])) for m in _MEMBER.finditer(text)}
    if "timestamp" not in members or "commit" not in members or "data" not in members:
        raise DecodeError("header_page lacks timestamp, commit or data")
    commit, width = members["commit"]
    data, size = members["data"]
    if members["timestamp"] != (0, 8) or width not in (4, 8):
        raise DecodeError("header_page describes a time stamp or commit that no kernel has")
    if commit < 8 or commit + width > data or data % 4 or data > 64 or not 4 <= size <= MAX_PAGE:
        raise DecodeError("header_page describes parts that overlap or a page that no kernel has")
    return PageLayout(data, size, commit, width, is_big_endian)


def check_header_event(text: str) -> None:
    """Raise DecodeError when `events/header_event` describes events as before Linux 2.6.31."""
    if text.strip() and not _TYPE_LEN.search(text):
        raise DecodeError("header_event describes events that are not laid out as 5 bits of type_len")


@dataclass(frozen=True, slots=True)
class Damage:
    """A part that could not be read: of which CPU, at which offset in bytes, and why."""

    cpu: int | None
    offset: int
    reason: str


@dataclass(slots=True)
class Page:
    """One page read.

    `stamp` is the absolute time of the page, `records` are (time stamp, offset of the payload in
    the buffer, its length), `lost` is how many events were lost before the page (LOST_UNKNOWN:
    some), `fault` why the rest of the page was not read, at `fault_at`.
    """

    stamp: int
    size: int
    lost: int = 0
    records: list[Place] = field(default_factory=list)
    fault: str = ""
    fault_at: int = 0


def read_page(data: Buffer, at: int, layout: PageLayout) -> Page:
    """Read the page that begins at offset `at` of `data`; it must be there as a whole.

    The length of a payload is that of its slot, rounded up to 4 bytes: the kernel keeps no other.

    >>> page = bytes.fromhex("2b16c3be90b60300 0800000000000000 01000000 2f000103") + bytes(4072)
    >>> read_page(page, 0, PageLayout()).records
    [(1045157722134059, 20, 4)]
    """
    order = ">" if layout.is_big_endian else "<"
    stamp, commit = struct.unpack_from(order + "Q", data, at)[0], _commit(data, at, layout, order)
    size = commit & SIZE_MASK
    page = Page(stamp, size)
    if size > layout.data_size:
        page.fault, page.fault_at = f"a page claims {size} bytes of data", at + layout.commit_offset
        page.size = 0
        return page
    start = at + layout.data_offset
    if commit & MISSED_EVENTS:
        page.lost = LOST_UNKNOWN
        if commit & MISSED_STORED and size + layout.long_size <= layout.data_size:
            code = "Q" if layout.long_size == 8 else "I"
            page.lost = struct.unpack_from(order + code, data, start + size)[0]
    words = struct.unpack_from(f"{order}{size // 4}I", data, start)
    left = _walk(words, page, start, layout)
    if left >= 0 and not page.fault:
        page.fault = "an event reaches behind the end of the data"
        page.fault_at = start + 4 * left
    elif size % 4 and not page.fault:
        page.fault, page.fault_at = "the data does not end with a whole word", start + size
    if page.records and page.records[-1][0] > U64:
        page.records = [(t & U64, offset, length) for t, offset, length in page.records]
    return page


def _commit(data: Buffer, at: int, layout: PageLayout, order: str) -> int:
    code = "Q" if layout.long_size == 8 else "I"
    commit: int = struct.unpack_from(order + code, data, at + layout.commit_offset)[0]
    return commit


def _walk(words: tuple[int, ...], page: Page, start: int, layout: PageLayout) -> int:
    """Collect the records; return the index of the word where an event is cut off, or -1.

    kernel/trace/ring_buffer.c: rb_update_write_stamp(), rb_advance_reader().
    """
    kind_shift, delta_shift = (27, 0) if layout.is_big_endian else (0, 5)
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
            if after > end:
                return at
            stamp += delta
            add((stamp, payload + 4 * at, 4 * kind))
            at = after
            continue
        if kind == PADDING and not delta:
            return -1
        if at + 2 > end:
            return at
        array = words[at + 1]
        if kind == TIME_EXTEND:
            stamp = stamp + (array << DELTA_BITS) + delta & U64
            at += 2
        elif kind == TIME_STAMP:
            stamp = stamp & ~STAMP_MASK | (array << DELTA_BITS) + delta & STAMP_MASK
            at += 2
        else:
            after = at + 1 + (array + 3 >> 2)
            if array < 4 or after > end:
                return at
            stamp += delta
            if kind != PADDING:
                add((stamp, payload + 4 * at + 4, array - 4))
            at = after
    return -1


def walk_pages(data: Buffer, layout: PageLayout, start: int = 0, end: int | None = None) -> Iterator[Page]:
    """Yield every page of a buffer of whole pages; a rest shorter than a page gives a fault of its own."""
    size = layout.page_size
    end = len(data) if end is None else end
    at = start
    while at + size <= end:
        yield read_page(data, at, layout)
        at += size
    if at < end:
        yield Page(0, 0, fault=f"{end - at} bytes are left over behind the last whole page", fault_at=at)


class PageWriter:
    """Lays records out as pages: the twin of `read_page`, for records that are already known.

    `add` takes records in the order of time; `pages` gives what was written.  It makes the
    choices of the kernel: no event of 12 bytes, a time extend where 27 bits do not hold a delta,
    and `is_aligned` for architectures that need 8-byte aligned data.
    """

    def __init__(self, layout: PageLayout, *, is_aligned: bool = False) -> None:
        self._layout = layout
        self._order = ">" if layout.is_big_endian else "<"
        self._is_aligned = is_aligned
        self._done: list[bytes] = []
        self._data = bytearray()
        self._stamp = self._now = 0
        self._lost = self._lost_before = 0

    def add(self, stamp: int, payload: bytes) -> None:
        """Add one record at an absolute time of 64 bits; raises ValueError when no page can hold it."""
        kind, body = self._event(payload)
        size = 4 + len(body)
        if size + 8 > self._layout.data_size:
            raise ValueError(f"a record of {len(payload)} bytes does not fit into a page")
        delta = stamp - self._now
        if self._data and not 0 <= delta <= DELTA_MASK:
            self._stamp_event(stamp)
            delta = 0
        if self._data and len(self._data) + size > self._layout.data_size:
            self.flush()
        if not self._data:
            self._stamp, delta = stamp, 0
        self._data += self._word(kind, delta) + body
        self._now = stamp

    def lose(self, n_events: int) -> None:
        """Say that events were lost here (LOST_UNKNOWN: not known how many); ends the page."""
        self.flush()
        is_known = LOST_UNKNOWN not in (n_events, self._lost_before)
        self._lost_before = self._lost_before + n_events if is_known else LOST_UNKNOWN

    def discard(self, n_bytes: int) -> None:
        """Leave a discarded event of 4 + `n_bytes` bytes (a multiple of 4, at least 4) in the page."""
        if not self._data or len(self._data) + 4 + n_bytes > self._layout.data_size:
            return
        # A delta of 0 would say that the rest of the page is unused: rb_event_discard().
        self._data += self._word(PADDING, 1) + struct.pack(self._order + "I", n_bytes) + bytes(n_bytes - 4)
        self._now += 1

    def flush(self) -> None:
        """End the page that is being written."""
        if not self._data:
            return
        layout, data = self._layout, bytes(self._data)
        commit = len(data)
        if self._lost_before:
            commit |= MISSED_EVENTS
            code = "Q" if layout.long_size == 8 else "I"
            if self._lost_before > 0 and len(data) + layout.long_size <= layout.data_size:
                commit |= MISSED_STORED
                data += struct.pack(self._order + code, self._lost_before)
            if layout.long_size == 8:
                commit |= U64 & ~0xFFFFFFFF
        head = struct.pack(self._order + "Q", self._stamp).ljust(layout.commit_offset, b"\0")
        head += struct.pack(self._order + ("Q" if layout.long_size == 8 else "I"), commit)
        page = head.ljust(layout.data_offset, b"\0") + data
        self._done.append(page.ljust(layout.page_size, b"\0"))
        self._data.clear()
        self._lost_before = 0

    def pages(self) -> bytes:
        """End the page that is being written and return all of them."""
        self.flush()
        return b"".join(self._done)

    def _event(self, payload: bytes) -> tuple[int, bytes]:
        """Return an event's type_len and what follows its first word."""
        size = max((len(payload) + 3) & ~3, 4)
        if self._is_aligned:
            size = (size + 7) & ~7
        if size > 4 * DATA_MAX or self._is_aligned:
            return 0, struct.pack(self._order + "I", size + 4) + payload.ljust(size, b"\0")
        size = 12 if size == 8 else size
        return size // 4, payload.ljust(size, b"\0")

    def _word(self, kind: int, delta: int) -> bytes:
        if self._layout.is_big_endian:
            return struct.pack(">I", kind << 27 | delta)
        return struct.pack("<I", kind | delta << 5)

    def _stamp_event(self, stamp: int) -> None:
        """Add a time extend, an absolute stamp where time went back, or begin a new page."""
        delta = stamp - self._now
        kind, value = (TIME_EXTEND, delta) if delta >= 0 else (TIME_STAMP, stamp & STAMP_MASK)
        fits = delta <= STAMP_MASK and (delta >= 0 or stamp >> 59 == self._now >> 59)
        if not fits or len(self._data) + 8 > self._layout.data_size:
            self.flush()
            return
        self._data += self._word(kind, value & DELTA_MASK)
        self._data += struct.pack(self._order + "I", value >> DELTA_BITS)
        self._now = stamp


def write_pages(records: Iterable[tuple[int, bytes]], layout: PageLayout) -> bytes:
    r"""Lay (time stamp, payload) pairs out as pages; raises ValueError when a payload is too long.

    >>> layout = PageLayout()
    >>> data = write_pages([(5, b"abcd"), (1 << 40, b"efghijklm")], layout)
    >>> [data[o:o + n] for _, o, n in read_page(data, 0, layout).records]
    [b'abcd', b'efghijklm\x00\x00\x00']
    """
    writer = PageWriter(layout)
    for stamp, payload in records:
        writer.add(stamp, payload)
    return writer.pages()
