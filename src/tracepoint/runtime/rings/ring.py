"""A ring buffer of one thread, in plain Python: the twin and specification of `csrc/ring.c`.

Records go into pages of 4096 bytes as the kernel's ring buffer lays them out
(kernel/trace/ring_buffer.c): a time stamp, the number of bytes that hold events, then events.  The
writer fills page after page; when `n_pages` are waiting, it takes the oldest (overwrite) or drops
what is new.  The reader takes whole pages out, also the one being written.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tracepoint.record.layout import PageLayout
from tracepoint.record.page import (
    CPU_MARK_SIZE,
    DELTA_MASK,
    STAMP_BITS,
    STAMP_MASK,
    U64,
    read_events,
)
from tracepoint.record.write import STAMP_EVENT_SIZE, EventWriter, event_size, page_bytes

LAYOUT = PageLayout()
PAGE_DATA = LAYOUT.data_size
MAX_PAYLOAD = PAGE_DATA - 8
MIN_PAGES = 2
MAX_PAGES = 65534

_EVENTS = EventWriter()

#: The number of the page that holds the event.
Token = int


@dataclass(slots=True)
class _Page:
    """One page: `end` bytes hold events, `commit` of them are committed."""

    stamp: int = 0
    data: bytearray = field(default_factory=lambda: bytearray(PAGE_DATA))
    end: int = 0
    commit: int = 0
    n_entries: int = 0
    cpu: int = -1


class Ring:
    """The ring of one thread, `n_pages` (2 to 65534) pages long.

    `overwrite`: the oldest page makes room, else new events are dropped.  Raises ValueError for another
    number of pages.
    """

    def __init__(self, n_pages: int, overwrite: bool = True) -> None:
        if not MIN_PAGES <= n_pages <= MAX_PAGES:
            raise ValueError(f"a ring has {MIN_PAGES} to {MAX_PAGES} pages")
        self._n_pages = n_pages
        self.overwrite = overwrite
        # Pages that wait for the reader, by number; the last of them is being written.
        self._pages = {0: _Page()}
        self._seq = 0
        self._page = self._pages[0]
        self._at = 0
        self._stamp = 0
        self._depth = 0
        self._commit_seq = 0
        self._uncommitted = [self._page]
        self._tail = 0
        # The reader's.
        self._held: _Page | None = None
        self._next_read = 0
        self._read_at = 0
        self._read_stamp = 0
        self._read_cpu = -1
        self._seen_overrun = 0
        self._n_written = self._overrun = self._dropped = self._commit_overrun = self._read = 0
        self._base = {"overrun": 0, "dropped": 0, "commit_overrun": 0, "read": 0}

    # Writing.

    def reserve(self, stamp: int, payload: bytes, cpu: int = -1) -> Token | None:
        """Put `payload` (up to 4072 bytes) at time `stamp` (ns or ticks, 64 bits) on `cpu` (-1: not known).

        Returns what `commit` takes, or None when it was dropped.
        """
        if len(payload) > MAX_PAYLOAD:
            self._dropped += 1
            return None
        size = event_size(len(payload))
        kind, cpu = self._shed(self._stamp_kind(stamp), size, cpu)
        if kind == "page" or self._at + self._room_before(kind, cpu) + size > PAGE_DATA:
            if not self._next_page():
                return None
            kind, cpu = self._shed(self._stamp_kind(stamp), size, cpu)
        before = self._stamp if self._at else stamp
        if self._at == 0:
            self._page.stamp = stamp
        if cpu not in (-1, self._page.cpu):
            before, stamp = self._mark_cpu(cpu, stamp)
        at, delta = self._at, (stamp - before) & U64
        event = self._stamp_event(kind, stamp, delta)
        event += _EVENTS.record(payload, delta if kind == "delta" else 0)
        self._page.data[at : at + len(event)] = event
        self._at = self._page.end = at + len(event)
        self._stamp = stamp
        self._depth += 1
        return self._seq

    def _room_before(self, kind: str, cpu: int) -> int:
        """The bytes before an event: its CPU when that changed, its time when it does not fit the header."""
        room = 0 if kind == "delta" else STAMP_EVENT_SIZE
        return room if cpu in (-1, self._page.cpu) else room + CPU_MARK_SIZE

    def _shed(self, kind: str, size: int, cpu: int) -> tuple[str, int]:
        """The longest events fill a page alone: without the CPU and, as the page has one, without a time."""
        if self._at == 0 and self._room_before(kind, cpu) + size > PAGE_DATA:
            cpu = -1
        if self._at == 0 and self._room_before(kind, cpu) + size > PAGE_DATA:
            kind = "delta"
        return kind, cpu

    def _mark_cpu(self, cpu: int, stamp: int) -> tuple[int, int]:
        """Write a mark; return the time of what was before the event, and the event's."""
        before = self._stamp
        if self._at == 0:
            before = self._page.stamp = (stamp - 1) & U64
        elif before == stamp:
            stamp = (stamp + 1) & U64
        self._page.data[self._at : self._at + CPU_MARK_SIZE] = _EVENTS.cpu_mark(cpu)
        self._at += CPU_MARK_SIZE
        self._page.cpu = cpu
        return (before + 1) & U64, stamp

    def commit(self, token: Token) -> None:
        """Make an event count; readers see it when no event begun before it is still open."""
        self._page_of(token).n_entries += 1
        self._n_written += 1
        self._depth -= 1
        if not self._depth:
            self._publish()

    def _stamp_kind(self, stamp: int) -> str:
        if self._at == 0:
            return "delta"
        delta = stamp - self._stamp
        if delta >= 0:
            if delta <= DELTA_MASK:
                return "delta"
            return "extend" if delta <= STAMP_MASK else "page"
        # An absolute stamp keeps the top bits of the one before; when they differ only a page can tell.
        return "absolute" if stamp >> STAMP_BITS == self._stamp >> STAMP_BITS else "page"

    @staticmethod
    def _stamp_event(kind: str, stamp: int, delta: int) -> bytes:
        if kind == "extend":
            return _EVENTS.extend(delta)
        return _EVENTS.stamp(stamp) if kind == "absolute" else b""

    def _next_page(self) -> bool:
        # What is left of the page stays unused: the kernel fills it with padding.
        self._at = PAGE_DATA
        oldest = self._seq + 1 - self._n_pages
        if oldest in self._pages:
            if oldest >= self._commit_seq and self._depth:
                self._commit_overrun += 1
                return False
            if not self.overwrite:
                self._dropped += 1
                return False
            self._overrun += self._pages.pop(oldest).n_entries
        self._seq += 1
        self._page = self._pages[self._seq] = _Page()
        self._uncommitted.append(self._page)
        self._at = 0
        return True

    def _page_of(self, token: Token) -> _Page:
        return self._uncommitted[token - self._commit_seq]

    def _publish(self) -> None:
        for page in self._uncommitted:
            page.commit = page.end
        self._uncommitted = [self._page]
        self._commit_seq = self._tail = self._seq

    # Reading.

    def _take_page(self) -> bool:
        """Take the oldest page that is shown, out of the writer's reach."""
        for seq in sorted(self._pages):
            if self._next_read <= seq <= self._tail:
                self._held = self._pages.pop(seq)
                self._next_read = seq + 1
                self._read_at = 0
                self._read_cpu = -1
                self._read_stamp = self._held.stamp
                return True
        return False

    def _page_to_read(self) -> tuple[_Page, int] | None:
        """Return a page with something to read, and how many events were lost before it."""
        lost = 0
        while True:
            held = self._held
            if held is not None:
                if self._read_at < held.commit:
                    return held, lost
                if self._next_read > self._tail:
                    return None
            if not self._take_page():
                return None
            lost = self._overrun - self._seen_overrun
            self._seen_overrun = self._overrun

    def _consume(self, page: _Page) -> None:
        rest = read_events(page.data, self._read_at, page.commit - self._read_at, self._read_stamp)
        self._read += len(rest.records)
        self._read_stamp = rest.end_stamp
        if rest.marks:
            self._read_cpu = rest.marks[-1][1]
        self._read_at = page.commit

    def _rest(self, page: _Page) -> tuple[int, bytes]:
        """The time and data of what was not read yet of the reader's page.

        The CPU that a mark in the other part named is marked again.
        """
        rest = bytes(page.data[self._read_at : page.commit])
        if self._read_cpu < 0 or self._read_at < CPU_MARK_SIZE:
            return self._read_stamp, rest
        return (self._read_stamp - 1) & U64, _EVENTS.cpu_mark(self._read_cpu) + rest

    def read(self) -> bytes | None:
        """Take the oldest unread events as one page, or None when there are none."""
        found = self._page_to_read()
        if found is None:
            return None
        page, lost = found
        made = page_bytes(LAYOUT, *self._rest(page), lost)
        self._consume(page)
        return made

    def peek(self) -> list[bytes]:
        """Return all pages that can be read, without taking them."""
        made = []
        if self._held is not None and self._read_at < self._held.commit:
            made.append(page_bytes(LAYOUT, *self._rest(self._held)))
        for seq in sorted(self._pages):
            page = self._pages[seq]
            if seq <= self._tail and page.commit:
                made.append(page_bytes(LAYOUT, page.stamp, bytes(page.data[: page.commit])))
        return made

    def clear(self) -> None:
        """Take everything out and reset the counts."""
        while (found := self._page_to_read()) is not None:
            self._consume(found[0])
        self._base = {
            "overrun": self._overrun,
            "dropped": self._dropped,
            "commit_overrun": self._commit_overrun,
            "read": self._read,
        }

    @property
    def n_bytes(self) -> int:
        """Bytes of the pages that it holds."""
        return LAYOUT.page_size * (len(self._pages) + (self._held is not None))

    def stats(self) -> dict[str, int]:
        """Return the counts that per_cpu/cpuN/stats shows, by name."""
        waiting = [p for s, p in sorted(self._pages.items()) if s <= self._tail]
        n_bytes = sum(p.commit for p in waiting)
        oldest = waiting[0].stamp if waiting else 0
        if self._held is not None and self._read_at < self._held.commit:
            n_bytes += self._held.commit - self._read_at
            oldest = self._read_stamp
        return {
            "entries": self._n_written - self._overrun - self._read,
            "overrun": self._overrun - self._base["overrun"],
            "commit_overrun": self._commit_overrun - self._base["commit_overrun"],
            "bytes": n_bytes,
            "dropped": self._dropped - self._base["dropped"],
            "read": self._read - self._base["read"],
            "nested": 0,
            "oldest_stamp": oldest,
        }
