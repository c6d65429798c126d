"""Swapping by time: pages and their slots, reclaim and who does it, pages of files that come back."""

from __future__ import annotations

from array import array
from enum import IntFlag
from typing import TYPE_CHECKING

from tracepoint.analysis.coverage import join_gaps
from tracepoint.analysis.growing import GrowingRows
from tracepoint.analysis.pairs import NO_ROW, Order, PairMachine
from tracepoint.analysis.spans import SpanTally
from tracepoint.analysis.swap.needs import RECLAIM
from tracepoint.named import NamedTuple
from tracepoint.tracefile.sieve import MIN_TIME

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.analysis.coverage import Gap
    from tracepoint.analysis.growing import ClosedPart
    from tracepoint.analysis.pairs import Pairs

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
    """Pages that were moved: how many records and how many pages, by task, CPU and what the event says."""

    def __init__(self) -> None:
        self.counts: dict[tuple[int, int, int], list[int]] = {}

    def add(self, cpu: int, tid: int, kind: int = UNKNOWN, n_pages: int = 1) -> None:
        """Add a record; `kind` is what the event says of it."""
        own = self.counts.get((tid, cpu, kind))
        if own is None:
            own = self.counts[tid, cpu, kind] = [0, 0]
        own[0] += 1
        own[1] += min(n_pages, _MOST)


class ReclaimRows(NamedTuple):
    """Times of reclaim in ns (`dur`: UNKNOWN without an end), by the number of their kind in RECLAIM.

    `n_freed` are pages, UNKNOWN where that is not recorded; `is_cut` says that a loss hides the end.
    """

    ts: array[int]
    dur: array[int]
    cpu: array[int]
    tid: array[int]
    n_freed: array[int]
    kind: array[int]
    is_cut: array[int]


def no_reclaims() -> ReclaimRows:
    """Return no rows."""
    return ReclaimRows(*(array(code) for code in "qqiqqbb"))


class Reclaims:
    """Takes begins and ends of reclaim by time; what no record can change is handed over on the way."""

    def __init__(self, gaps: Mapping[int, Sequence[Gap]]) -> None:
        self._rows = GrowingRows(no_reclaims())
        # A kswapd that begins again before it sleeps is still awake.
        self._pairs = {
            kind: PairMachine(Order.FIRST if kind == "kswapd" else Order.LAST, gaps=gaps) for kind in RECLAIM
        }
        self._numbers = {kind: number for number, kind in enumerate(RECLAIM)}
        #: How many there are, and of how many a loss hides the end.
        self.tally = SpanTally()

    def begin(self, kind: str, ts: int, cpu: int, tid: int) -> None:
        """A task begins to reclaim."""
        if not self._pairs[kind].begin(tid, self._rows.last + 1, ts, cpu):
            return
        rows = self._rows.columns
        rows.ts.append(ts)
        rows.dur.append(UNKNOWN)
        rows.cpu.append(cpu)
        rows.tid.append(tid)
        rows.n_freed.append(UNKNOWN)
        rows.kind.append(self._numbers[kind])
        rows.is_cut.append(0)

    def end(self, kind: str, ts: int, tid: int, n_freed: int) -> None:
        """A task ends to reclaim."""
        number = self._pairs[kind].end(tid, NO_ROW, ts)
        if number != NO_ROW:
            rows, at = self._rows.columns, self._rows.place(number)
            rows.dur[at], rows.n_freed[at] = ts - rows.ts[at], min(n_freed, _MOST)

    def closed(self) -> ClosedPart[ReclaimRows]:
        """Hand over the times that no record can change any more."""
        for pairs in self._pairs.values():
            self._settle(pairs.closed())
        return self._given(self._rows.close({row for own in self._pairs.values() for row in own.open_rows}))

    def finish(self, ts: int) -> ClosedPart[ReclaimRows]:
        """Hand over the other times, at the time of the end of the trace."""
        for pairs in self._pairs.values():
            self._settle(pairs.finish(ts))
        return self._given(self._rows.finish())

    def _settle(self, pairs: Pairs) -> None:
        self._rows.mark(self._rows.columns.is_cut, pairs.cut)

    def _given(self, part: ClosedPart[ReclaimRows]) -> ClosedPart[ReclaimRows]:
        self.tally.add(part.rows.ts, part.rows.dur, part.rows.is_cut)
        return part


class SwapMachine:
    """Takes records of swapping by time."""

    def __init__(self, gaps: Mapping[int, Sequence[Gap]]) -> None:
        self.ins, self.outs, self.writes = Moves(), Moves(), Moves()
        self.reclaims = Reclaims(gaps)
        self.n_scanned = self.n_reclaimed = 0
        # How many pages left the page cache between the end of one and its return, and by task and CPU how
        # long pages were in a swap area: what was not handed over.
        self._distances = array("q")
        self._away: dict[tuple[int, int], array[int]] = {}
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

    def closed(self) -> tuple[dict[tuple[int, int], array[int]], array[int]]:
        """Hand over how long pages were away by task and CPU, and the distances of files: none is kept."""
        found = self._away, self._distances
        self._away, self._distances = {}, array("q")
        return found

    def swap_in(self, ts: int, cpu: int, tid: int, slot: int | None, is_major: int) -> None:
        """A page comes back from a slot of a swap area."""
        self.ins.add(cpu, tid, is_major)
        if slot is None:
            return
        left = self._slots.get(slot, MIN_TIME)
        if self._gaps.is_between(left, ts):
            self.n_unsure_slots += 1
        elif left != MIN_TIME:
            self._away.setdefault((tid, cpu), array("q")).append(ts - left)

    def swap_out(self, ts: int, cpu: int, tid: int, slot: int | None, n_pages: int) -> None:
        """Pages get slots, one after the other."""
        self.outs.add(cpu, tid, n_pages=n_pages)
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
            self._distances.append(min(self.n_evicted - before, _MOST))

    def resize(self, space: int, member: int, size: int) -> None:
        """An address space has so many bytes of something."""
        if member != _SWAP_ENTRIES:
            return
        before = self._sizes.get(space, size)
        self._sizes[space] = size
        self.grown += max(size - before, 0)
        self.shrunk += max(before - size, 0)
