"""Which interrupt another one interrupted, and the time that interrupts took of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.analysis.irq.rows import NO_PARENT, UNPLACED
from tracepoint.analysis.spans import OPEN

if TYPE_CHECKING:
    from collections.abc import Collection

    from tracepoint.analysis.growing import GrowingRows
    from tracepoint.analysis.irq.rows import IrqRows

# A begin without an end may be waited for as long as so many interrupts of its CPU.
_MAX_WAITING = 1 << 16


class Nesting:
    """Places interrupts and softirqs in those of their CPU that are not over, by their begin.

    What begins after one that may still end waits for it.  `given_up` are the numbers of those that were
    waited for too long: they have no end.  `soft` is the number of the kind of softirqs.
    """

    def __init__(self, rows: GrowingRows[IrqRows], soft: int) -> None:
        self._rows = rows
        self._soft = soft
        self.given_up: set[int] = set()
        # Of each CPU the interrupts and softirqs that are not over: when they end, and their number.
        self._active: dict[int, list[tuple[int, int]]] = {}

    def place(self, still_open: Collection[int]) -> set[int]:
        """Place what can be placed; return the numbers of rows that others may change, with the open ones."""
        columns, numbers = self._rows.columns, self._rows.numbers
        # Of each CPU the first one that may still end, and how many wait for it.
        waiting: dict[int, list[int]] = {}
        for at, parent in enumerate(columns.parent):
            if parent != UNPLACED:
                continue
            after = waiting.get(columns.cpu[at])
            if after is not None:
                after.append(numbers[at])
            elif numbers[at] in still_open and numbers[at] not in self.given_up:
                waiting[columns.cpu[at]] = [numbers[at]]
            else:
                self._place(at, numbers[at])
        held = {*still_open} - self.given_up
        for cpu, own in self._active.items():
            first = waiting.get(cpu)
            # Whatever begins later finds those over that end up to then.
            limit = None if first is None else columns.ts[self._rows.place(first[0])]
            while own and (limit is None or own[-1][0] <= limit):
                own.pop()
            held.update(number for _, number in own)
        for after in waiting.values():
            held.update(after)
            if len(after) > _MAX_WAITING:
                self.given_up.add(after[0])
        return held

    def _place(self, at: int, number: int) -> None:
        rows, columns = self._rows, self._rows.columns
        ts, dur = columns.ts[at], columns.dur[at]
        own = self._active.setdefault(columns.cpu[at], [])
        while own and own[-1][0] <= ts:
            own.pop()
        columns.parent[at] = next(
            (
                columns.id[place]
                for place in (rows.place(outer) for _, outer in reversed(own))
                if columns.kind[place] != self._soft
            ),
            NO_PARENT,
        )
        if dur == OPEN:
            return
        if columns.kind[at] != self._soft and own:
            # The next one outside: what that is in has lost its time already.
            columns.net[rows.place(own[-1][1])] -= dur
        own.append((ts + dur, number))
