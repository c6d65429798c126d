"""Swapping by time: pages and their slots, reclaim and who does it, pages of files that come back."""

from __future__ import annotations

from array import array
from enum import IntFlag
from typing import TYPE_CHECKING

from tracepoint.analysis.coverage import join_gaps
from tracepoint.analysis.pairs import NO_ROW, Order, PairMachine
from tracepoint.analysis.swap.needs import RECLAIM
from tracepoint.tracefile.sieve import MIN_TIME

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.analysis.coverage import Gap

UNKNOWN = -1
_MOST = (1 << 63) - 1
# include/linux/mm_types_task.h: MM_SWAPENTS.
_SWAP_ENTRIES = 2


class WriteFlag(IntFlag):
    """How reclaim writes a page out: RECLAIM_WB_* in include/trace/events/vmscan.h."""

    ANON = 1
    FILE = 2
    SYNC = 4
    ASYNC = 8
    MIXED = 16

    @classmethod
    def text(cls, flags: int) -> str:
        """Return flags as the kernel shows them.

        >>> WriteFlag.text(9)
        'ANON|ASYNC'
        """
        names = [flag.name for flag in (cls.ANON, cls.FILE, cls.MIXED, cls.SYNC, cls.ASYNC) if flags & flag]
        return "|".join(name for name in names if name) or "none"


class Moves:
    """Pages that were moved: a row for each event."""

    def __init__(self) -> None:
        self.ts, self.away = array("q"), array("q")
        self.cpu, self.tid, self.n_pages, self.kind = array("i"), array("i"), array("q"), array("q")

    def add(self, ts: int, cpu: int, tid: int, kind: int = UNKNOWN, n_pages: int = 1) -> None:
        """Add a row; `kind` is what the event says of it."""
        self.ts.append(ts)
        self.cpu.append(cpu)
        self.tid.append(tid)
        self.kind.append(kind)
        self.n_pages.append(min(n_pages, _MOST))
        self.away.append(UNKNOWN)


class Reclaims:
    """Times of reclaim: `dur` is -1 for one without an end."""

    def __init__(self, gaps: Mapping[int, Sequence[Gap]]) -> None:
        self.ts, self.dur, self.n_freed = array("q"), array("q"), array("q")
        self.cpu, self.tid = array("i"), array("i")
        self.kind: list[str] = []
        #: When those began whose end a loss hides.
        self.cut: list[int] = []
        # A kswapd that begins again before it sleeps is still awake.
        self._pairs = {
            kind: PairMachine(Order.FIRST if kind == "kswapd" else Order.LAST, gaps=gaps) for kind in RECLAIM
        }

    def begin(self, kind: str, ts: int, cpu: int, tid: int) -> None:
        """A task begins to reclaim."""
        if not self._pairs[kind].begin(tid, len(self.ts), ts, cpu):
            return
        self.ts.append(ts)
        self.dur.append(UNKNOWN)
        self.n_freed.append(UNKNOWN)
        self.cpu.append(cpu)
        self.tid.append(tid)
        self.kind.append(kind)

    def end(self, kind: str, ts: int, tid: int, n_freed: int) -> None:
        """A task ends to reclaim."""
        at = self._pairs[kind].end(tid, NO_ROW, ts)
        if at != NO_ROW:
            self.dur[at], self.n_freed[at] = ts - self.ts[at], min(n_freed, _MOST)

    def finish(self, ts: int) -> None:
        """End at the time of the end of the trace."""
        self.cut = [self.ts[row] for pairs in self._pairs.values() for row in pairs.finish(ts).cut]


class SwapMachine:
    """Takes records of swapping by time."""

    def __init__(self, gaps: Mapping[int, Sequence[Gap]]) -> None:
        self.ins, self.outs, self.writes = Moves(), Moves(), Moves()
        self.reclaims = Reclaims(gaps)
        self.n_scanned = self.n_reclaimed = 0
        #: How many pages left the page cache between the end of one and its return.
        self.distances = array("q")
        #: Pages that came back, of slots and of files, of which a loss may hide when they left last.
        self.n_unsure_slots = self.n_unsure_files = 0
        #: How much the sizes of what is swapped out grew and shrank, in bytes.
        self.grown = self.shrunk = 0
        self.n_evicted = 0
        self._gaps = join_gaps(gap for own in gaps.values() for gap in own)
        # Of each page of a file: when it left, and how many had then.
        self._evicted: dict[tuple[int, int, int], tuple[int, int]] = {}
        self._slots: dict[int, int] = {}
        self._sizes: dict[int, int] = {}

    def swap_in(self, ts: int, cpu: int, tid: int, slot: int | None, is_major: int) -> None:
        """A page comes back from a slot of a swap area."""
        self.ins.add(ts, cpu, tid, is_major)
        if slot is None:
            return
        left = self._slots.get(slot, MIN_TIME)
        if self._gaps.is_between(left, ts):
            self.n_unsure_slots += 1
        elif left != MIN_TIME:
            self.ins.away[-1] = ts - left

    def swap_out(self, ts: int, cpu: int, tid: int, slot: int | None, n_pages: int) -> None:
        """Pages get slots, one after the other."""
        self.outs.add(ts, cpu, tid, n_pages=n_pages)
        # A number from a damaged record must not take all memory.
        if slot is not None:
            self._slots.update((slot + n, ts) for n in range(min(n_pages, 1 << 10)))

    def evict(self, ts: int, key: tuple[int, int, int], n_pages: int) -> None:
        """A page of a file leaves the page cache: reclaimed, or the file was cut."""
        self.n_evicted += n_pages
        self._evicted[key] = ts, self.n_evicted

    def cache(self, ts: int, key: tuple[int, int, int]) -> None:
        """A page of a file is in the page cache."""
        left, before = self._evicted.pop(key, (MIN_TIME, 0))
        if left == MIN_TIME:
            return
        if self._gaps.is_between(left, ts):
            self.n_unsure_files += 1
        else:
            self.distances.append(self.n_evicted - before)

    def resize(self, space: int, member: int, size: int) -> None:
        """An address space has so many bytes of something."""
        if member != _SWAP_ENTRIES:
            return
        before = self._sizes.get(space, size)
        self._sizes[space] = size
        self.grown += max(size - before, 0)
        self.shrunk += max(before - size, 0)
