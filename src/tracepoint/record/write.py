"""Laying records out as pages: the events of a page, and pages of records that are already known."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from tracepoint.record.page import (
    CPU_MARK_SIZE,
    DATA_MAX,
    DELTA_BITS,
    DELTA_MASK,
    LOST_UNKNOWN,
    MISSED_EVENTS,
    MISSED_STORED,
    PADDING,
    STAMP_BITS,
    STAMP_MASK,
    TIME_EXTEND,
    TIME_STAMP,
    U64,
    add_lost,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tracepoint.record.layout import PageLayout

STAMP_EVENT_SIZE = 8


def event_size(length: int) -> int:
    """Return the bytes that a payload of `length` bytes takes, with its header.

    12 is never used, so that an event can become padding: rb_calculate_event_length().

    >>> event_size(0), event_size(4), event_size(8), event_size(112), event_size(113)
    (8, 8, 16, 116, 124)
    """
    size = max((length + 3) & ~3, 4)
    if size > 4 * DATA_MAX:
        return size + 8
    return 16 if size == 8 else size + 4


def head_size(size: int) -> int:
    """Return how many of an event's `size` bytes come before its payload."""
    return 8 if size - 4 > 4 * DATA_MAX else 4


class EventWriter:
    """Makes the events of a page in a byte order."""

    def __init__(self, *, is_big_endian: bool = False) -> None:
        self._word = struct.Struct(">I" if is_big_endian else "<I").pack
        self._shifts = (27, 0) if is_big_endian else (0, 5)

    def _head(self, kind: int, delta: int) -> bytes:
        kind_shift, delta_shift = self._shifts
        return self._word(kind << kind_shift | delta << delta_shift)

    def record(self, payload: bytes, delta: int) -> bytes:
        """Return the event of a record; `delta` has at most 27 bits."""
        size = event_size(len(payload))
        if head_size(size) == 8:
            return (self._head(0, delta) + self._word(size - 4) + payload).ljust(size, b"\0")
        return (self._head((size - 4) // 4, delta) + payload).ljust(size, b"\0")

    def padding(self, delta: int, size: int) -> bytes:
        """Return the first 8 of the `size` bytes of an event that was taken back.

        A delta of 0 would say that the rest of the page is unused: rb_event_discard().
        """
        return self._head(PADDING, delta or 1) + self._word(size - 4)

    def cpu_mark(self, cpu: int) -> bytes:
        """Return the padding that names the CPU, one unit of time after what was before."""
        return self.padding(1, CPU_MARK_SIZE) + self._word(cpu & 0xFFFFFFFF)

    def extend(self, delta: int) -> bytes:
        """Return a time extend: `delta` of at most 59 bits more."""
        return self._head(TIME_EXTEND, delta & DELTA_MASK) + self._word(delta >> DELTA_BITS)

    def stamp(self, stamp: int) -> bytes:
        """Return an absolute time, of which 59 bits are kept."""
        low = stamp & STAMP_MASK
        return self._head(TIME_STAMP, low & DELTA_MASK) + self._word(low >> DELTA_BITS)


def page_bytes(layout: PageLayout, stamp: int, data: bytes, lost: int = 0) -> bytes:
    """Return a whole page of `data`, events; `lost` before it, LOST_UNKNOWN if it is not known how many.

    Bit 31 is added to the long as a negative int, hence the ones above it: ring_buffer_read_page().
    """
    order = ">" if layout.is_big_endian else "<"
    long_code = order + ("Q" if layout.long_size == 8 else "I")
    commit = len(data)
    if lost:
        commit |= MISSED_EVENTS
        if lost > 0 and len(data) + layout.long_size <= layout.data_size:
            commit |= MISSED_STORED
            data += struct.pack(long_code, lost)
        if layout.long_size == 8:
            commit |= U64 & ~0xFFFFFFFF
    head = struct.pack(order + "Q", stamp).ljust(layout.commit_offset, b"\0") + struct.pack(long_code, commit)
    return (head.ljust(layout.data_offset, b"\0") + data).ljust(layout.page_size, b"\0")


class PageWriter:
    """Lays records out as pages, for records that are already known.

    `add` takes records in the order of time; `pages` gives what was written.  It makes the choices of the
    kernel: no event of 12 bytes, and a time extend where 27 bits do not hold a delta.
    """

    def __init__(self, layout: PageLayout) -> None:
        self._layout = layout
        self._events = EventWriter(is_big_endian=layout.is_big_endian)
        self._done: list[bytes] = []
        self._data = bytearray()
        self._stamp = self._now = 0
        self._lost_before = 0
        self._cpu: int | None = None

    def add(self, stamp: int, payload: bytes, cpu: int | None = None) -> None:
        """Add one record at an absolute time of 64 bits; raises ValueError when no page can hold it.

        `cpu` is given where it is not the CPU of the pages.
        """
        size = event_size(len(payload))
        if size + (STAMP_EVENT_SIZE if cpu is None else CPU_MARK_SIZE) > self._layout.data_size:
            raise ValueError(f"a record of {len(payload)} bytes does not fit into a page")
        if cpu != self._cpu:
            self._mark(cpu)
        delta = stamp - self._now
        if self._data and not 0 <= delta <= DELTA_MASK:
            self._move_to(stamp)
            delta = 0
        if self._data and len(self._data) + size > self._room:
            self.flush()
        if not self._data:
            self._stamp, delta = stamp, 0
            if cpu is not None:
                self._stamp = stamp - 1 & U64
                self._data += self._events.cpu_mark(cpu)
        self._data += self._events.record(payload, delta)
        self._now, self._cpu = stamp, cpu

    @property
    def _room(self) -> int:
        """The bytes for events of this page: a number of lost events stands after them."""
        return self._layout.data_size - (self._layout.long_size if self._lost_before > 0 else 0)

    def _mark(self, cpu: int | None) -> None:
        """Go on with records of another CPU; a new page is one of the pages' own."""
        if cpu is None or len(self._data) + CPU_MARK_SIZE > self._room:
            self.flush()
        elif self._data:
            self._data += self._events.cpu_mark(cpu)
            self._now += 1

    def lose(self, n_events: int) -> None:
        """Say that events were lost here (LOST_UNKNOWN: not known how many); ends the page."""
        self.flush()
        self._lost_before = self._held(add_lost(self._lost_before, n_events))

    def lose_apart(self, stamp: int, n_events: int) -> None:
        """Say that events were lost before a time, and not before the next record: on a page without data."""
        self.flush()
        self._done.append(page_bytes(self._layout, stamp, b"", self._held(n_events)))

    def _held(self, n_events: int) -> int:
        """Return a loss as a page holds it: a number that does not fit is not known either."""
        return LOST_UNKNOWN if n_events >> 8 * self._layout.long_size else n_events

    def flush(self) -> None:
        """End the page that is being written."""
        if self._data:
            self._end_page()

    def _end_page(self) -> None:
        self._done.append(page_bytes(self._layout, self._stamp, bytes(self._data), self._lost_before))
        self._data.clear()
        self._lost_before = 0
        self._cpu = None

    def take(self) -> bytes:
        """Return the pages that have ended, and keep them no longer."""
        done = b"".join(self._done)
        self._done.clear()
        return done

    def pages(self) -> bytes:
        """End the page that is being written and return all; losses after it have a page of their own."""
        self.flush()
        if self._lost_before:
            self._stamp = self._now
            self._end_page()
        return b"".join(self._done)

    def _move_to(self, stamp: int) -> None:
        """Add a time extend, an absolute stamp where time went back, or begin a new page."""
        delta = stamp - self._now
        fits = 0 <= delta <= STAMP_MASK or (delta < 0 and stamp >> STAMP_BITS == self._now >> STAMP_BITS)
        if not fits or len(self._data) + STAMP_EVENT_SIZE > self._room:
            self.flush()
            return
        self._data += self._events.extend(delta) if delta >= 0 else self._events.stamp(stamp)
        self._now = stamp


def write_pages(records: Iterable[tuple[int, bytes]], layout: PageLayout) -> bytes:
    r"""Lay (time stamp, payload) pairs out as pages; raises ValueError when a payload is too long.

    >>> from tracepoint.record.layout import PageLayout
    >>> from tracepoint.record.page import read_page
    >>> layout = PageLayout()
    >>> data = write_pages([(5, b"abcd"), (1 << 40, b"efghijklm")], layout)
    >>> [data[o:o + n] for _, o, n in read_page(data, 0, layout).records]
    [b'abcd', b'efghijklm\x00\x00\x00']
    """
    writer = PageWriter(layout)
    for stamp, payload in records:
        writer.add(stamp, payload)
    return writer.pages()
