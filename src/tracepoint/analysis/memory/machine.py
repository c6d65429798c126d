"""Allocations by time, each with its end where that was recorded."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from tracepoint.analysis.pairs import NO_ROW, Order, PairMachine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.analysis.coverage import Gap

OPEN = -1
PAGE_BYTES = 4096
# include/linux/slab.h: ZERO_SIZE_PTR; what is not above it was never allocated.
_NOTHING = 16
# include/linux/mmzone.h: MAX_PAGE_ORDER of the configurations that have most.
_LARGEST_ORDER = 18
_NO_PAGE = (1 << 64) - 1


class MemoryMachine:
    """Takes records by time; its columns have a row for each allocation, `dur` is -1 for one without an end.

    `site` is the address that it was called from, 0 for pages, whose events do not have it.
    """

    def __init__(self, gaps: Mapping[int, Sequence[Gap]]) -> None:
        self.ts, self.dur = array("q"), array("q")
        self.cpu, self.tid, self.kind = array("i"), array("i"), array("b")
        self.site, self.asked, self.size = array("Q"), array("Q"), array("Q")
        self.n_failed = self.n_orphans = self.n_parts = 0
        #: Allocations whose end a loss hides.
        self.cut: frozenset[int] = frozenset()
        #: The rows of others without an end, and of those among them whose address was given out again: what
        #: freed them has no event, such as a bulk free.
        self.opens: list[int] = []
        self.reused: list[int] = []
        # The row that has each address, and the negative number of each page.
        self._last: dict[int, int] = {}
        self._objects = PairMachine(Order.LAST, gaps=gaps)
        self._pages = PairMachine(Order.LAST, gaps=gaps)
        # Of the first page of each block that is not freed: its order.
        self._orders: dict[int, int] = {}

    def _add(self, ts: int, cpu: int, tid: int, kind: int) -> int:
        self.ts.append(ts)
        self.dur.append(OPEN)
        self.cpu.append(cpu)
        self.tid.append(tid)
        self.kind.append(kind)
        return len(self.ts) - 1

    def allocate(
        self, where: tuple[int, int, int], kind: int, pointer: int, what: tuple[int, int, int]
    ) -> None:
        """An object is allocated: `where` is time, CPU and task, `what` the caller, bytes asked and given."""
        if pointer <= _NOTHING:
            self.n_failed += not pointer
            return
        row = self._add(*where, kind)
        self.site.append(what[0])
        self.asked.append(what[1])
        self.size.append(what[2])
        self._last[pointer] = row
        self._objects.begin(pointer, row, where[0], where[1])

    def free(self, ts: int, pointer: int) -> None:
        """An object is freed, by whichever way."""
        if pointer > _NOTHING:
            self._end(self._objects.end(pointer, NO_ROW, ts), ts)

    def allocate_pages(self, where: tuple[int, int, int], kind: int, frame: int, order: int) -> None:
        """A block of 2^order pages is allocated."""
        if frame == _NO_PAGE or order > _LARGEST_ORDER:
            self.n_failed += 1
            return
        row = self._add(*where, kind)
        self.site.append(0)
        self.asked.append(PAGE_BYTES << order)
        self.size.append(PAGE_BYTES << order)
        self._orders[frame] = order
        self._last[-1 - frame] = row
        self._pages.begin(frame, row, where[0], where[1])

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

    def _end(self, at: int, ts: int) -> None:
        if at == NO_ROW:
            self.n_orphans += 1
        else:
            self.dur[at] = ts - self.ts[at]

    def finish(self, ts: int) -> None:
        """End at the time of the end of the trace."""
        found = [pairs.finish(ts) for pairs in (self._objects, self._pages)]
        cut = self.cut = frozenset(row for pairs in found for row in pairs.cut)
        self.opens = sorted(row for pairs in found for row in pairs.opens if row not in cut)
        last = set(self._last.values())
        self.reused = [row for row in self.opens if row not in last]
