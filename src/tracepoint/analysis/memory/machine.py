"""Allocations by time, each with its end where that was recorded."""

from __future__ import annotations

from array import array
from enum import IntEnum
from typing import TYPE_CHECKING

from tracepoint.analysis.growing import GrowingRows
from tracepoint.analysis.pairs import NO_ROW, Order, PairMachine
from tracepoint.analysis.spans import OPEN, CutTally
from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.analysis.coverage import Gap
    from tracepoint.analysis.growing import ClosedPart
    from tracepoint.analysis.pairs import Pairs

PAGE_BYTES = 4096
# include/linux/slab.h: ZERO_SIZE_PTR; what is not above it was never allocated.
_NOTHING = 16
# include/linux/mmzone.h: MAX_PAGE_ORDER of the configurations that have most.
_LARGEST_ORDER = 18
_NO_PAGE = (1 << 64) - 1


class Fate(IntEnum):
    """What became of an allocation.

    CUT: a loss hides whether it was freed.  REUSED: its address was given out again, so that it was freed by
    what has no event, such as a bulk free.  KEPT: nothing freed it while it was recorded.
    """

    FREED = 0
    CUT = 1
    REUSED = 2
    KEPT = 3


class AllocationRows(NamedTuple):
    """Allocations by time; times are in ns, `dur` is OPEN (-1) for one without an end.

    `site` is the address that it was called from, 0 for pages, whose events do not have it; `fate` is one of
    `Fate`.
    """

    ts: array[int]
    dur: array[int]
    cpu: array[int]
    tid: array[int]
    kind: array[int]
    site: array[int]
    asked: array[int]
    size: array[int]
    fate: array[int]


def no_allocations() -> AllocationRows:
    """Return no rows."""
    return AllocationRows(*(array(code) for code in "qqiibQQQb"))


class MemoryMachine:
    """Takes records by time; what no record can change any more is handed over on the way.

    `n` allocations were made, `n_failed` others failed, `n_orphans` ends have none; `n_parts` blocks of pages
    were freed in parts.  `n_of` counts fates, `cut` has those that are CUT.
    """

    def __init__(self, gaps: Mapping[int, Sequence[Gap]]) -> None:
        self.n = self.n_failed = self.n_orphans = self.n_parts = 0
        self.n_of = dict.fromkeys(Fate, 0)
        self.cut = CutTally()
        self._rows = GrowingRows(no_allocations())
        self._objects = PairMachine(Order.LAST, gaps=gaps)
        self._pages = PairMachine(Order.LAST, gaps=gaps)
        # Of the first page of each block that is not freed: its order.
        self._orders: dict[int, int] = {}

    def allocate(
        self, where: tuple[int, int, int], kind: int, pointer: int, what: tuple[int, int, int]
    ) -> None:
        """An object is allocated: `where` is time, CPU and task, `what` the caller, bytes asked and given."""
        if pointer <= _NOTHING:
            self.n_failed += not pointer
            return
        self._objects.begin(pointer, self._add(where, kind, what), where[0], where[1])

    def _add(self, where: tuple[int, int, int], kind: int, what: tuple[int, int, int]) -> int:
        ts, dur, cpu, tid, kinds, site, asked, size, fate = self._rows.columns
        ts.append(where[0])
        dur.append(OPEN)
        cpu.append(where[1])
        tid.append(where[2])
        kinds.append(kind)
        site.append(what[0])
        asked.append(what[1])
        size.append(what[2])
        fate.append(Fate.KEPT)
        return self._rows.last

    def free(self, ts: int, pointer: int) -> None:
        """An object is freed, by whichever way."""
        if pointer > _NOTHING:
            self._end(self._objects.end(pointer, NO_ROW, ts), ts)

    def allocate_pages(self, where: tuple[int, int, int], kind: int, frame: int, order: int) -> None:
        """A block of 2^order pages is allocated."""
        if frame == _NO_PAGE or order > _LARGEST_ORDER:
            self.n_failed += 1
            return
        size = PAGE_BYTES << order
        self._orders[frame] = order
        self._pages.begin(frame, self._add(where, kind, (0, size, size)), where[0], where[1])

    def free_pages(self, ts: int, frame: int, order: int) -> None:
        """A block of pages is freed: a part of one that was split ends only when its first page does."""
        known = self._orders.pop(frame, None)
        if known is None and self._is_part(frame):
            self.n_parts += 1
            return
        self.n_parts += known is not None and order < known
        self._end(self._pages.end(frame, NO_ROW, ts), ts)

    def _is_part(self, frame: int) -> bool:
        for order in range(1, _LARGEST_ORDER + 1):
            first = frame >> order << order
            if self._orders.get(first, -1) >= order and first != frame:
                return True
        return False

    def _end(self, number: int, ts: int) -> None:
        if number == NO_ROW:
            self.n_orphans += 1
            return
        rows, at = self._rows.columns, self._rows.place(number)
        rows.dur[at] = ts - rows.ts[at]
        rows.fate[at] = Fate.FREED

    def _settle(self, pairs: Pairs, other: Fate) -> None:
        """Keep why allocations have no end: a loss, or another reason."""
        rows, place = self._rows.columns, self._rows.place
        for number in pairs.opens:
            rows.fate[place(number)] = other
        places = list(map(place, pairs.cut))
        for at in places:
            rows.fate[at] = Fate.CUT
        self.cut.cut(map(rows.ts.__getitem__, places))
        self.n_of[Fate.FREED] += len(pairs.begins)
        self.n_of[Fate.CUT] += len(pairs.cut)
        self.n_of[other] += len(pairs.opens) - len(pairs.cut)

    def closed(self) -> ClosedPart[AllocationRows]:
        """Hand over the allocations that no record can change any more."""
        for pairs in (self._objects, self._pages):
            self._settle(pairs.closed(), Fate.REUSED)
        return self._counted(self._rows.close({*self._objects.open_rows, *self._pages.open_rows}))

    def finish(self, ts: int) -> ClosedPart[AllocationRows]:
        """Hand over the other allocations, at the time of the end of the trace."""
        for pairs in (self._objects, self._pages):
            self._settle(pairs.closed(), Fate.REUSED)
            self._settle(pairs.finish(ts), Fate.KEPT)
        return self._counted(self._rows.finish())

    def _counted(self, closed: ClosedPart[AllocationRows]) -> ClosedPart[AllocationRows]:
        self.n += len(closed)
        return closed
