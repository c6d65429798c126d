"""Values that hold until the next one: the idle state of a CPU, its frequency, a counter.

A loss hides changes: from where it begins to the next value it is not known which one it was.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracepoint.analysis.coverage import join_gaps

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tracepoint.analysis.coverage import Gap


def _numbers(code: str) -> Callable[[], array[int]]:
    return lambda: array(code)


@dataclass
class LevelRows:
    """For each value that a key had, in the order of their begins: from when, how long, in ns.

    `is_cut` is 1 where a loss hides when the value ended, `is_open` where it still held at the
    end of the trace.  `hidden` is for how long losses hide the value, by key.
    """

    key: array[int] = field(default_factory=_numbers("q"))
    ts: array[int] = field(default_factory=_numbers("q"))
    dur: array[int] = field(default_factory=_numbers("q"))
    value: array[int] = field(default_factory=_numbers("q"))
    is_cut: array[int] = field(default_factory=_numbers("b"))
    is_open: array[int] = field(default_factory=_numbers("b"))
    hidden: dict[int, int] = field(default_factory=dict)


class LevelMachine:
    """Makes rows of the values that keys have, from changes by time.

    With `has_own_gaps` a key is a CPU that records its own changes, and only its own losses hide them.

    >>> machine = LevelMachine()
    >>> machine.set(0, 10, 1200); machine.set(0, 30, 2400)
    >>> machine.finish(35).dur
    array('q', [20, 5])
    """

    def __init__(
        self, gaps: Mapping[int, Sequence[Gap]] | None = None, *, has_own_gaps: bool = False
    ) -> None:
        gaps = gaps or {}
        self._own = {cpu: join_gaps(own) for cpu, own in gaps.items()} if has_own_gaps else {}
        anywhere = [] if has_own_gaps else [gap for own in gaps.values() for gap in own]
        self._any = join_gaps(anywhere) if anywhere else None
        self._rows = LevelRows()
        self._row_of: dict[int, int] = {}

    def set(self, key: int, ts: int, value: int) -> None:
        """Take that a key has a value from a time on."""
        self._end(key, ts)
        rows = self._rows
        self._row_of[key] = len(rows.ts)
        for column, number in ((rows.key, key), (rows.ts, ts), (rows.dur, 0), (rows.value, value)):
            column.append(number)
        rows.is_cut.append(0)
        rows.is_open.append(0)

    def _end(self, key: int, ts: int) -> None:
        row = self._row_of.get(key)
        if row is None:
            return
        rows, stop = self._rows, ts
        finder = self._own.get(key, self._any)
        gap = finder.first_after(rows.ts[row]) if finder is not None else None
        if gap is not None and gap[0] < ts:
            stop, rows.is_cut[row] = max(gap[0], rows.ts[row]), 1
            rows.hidden[key] = rows.hidden.get(key, 0) + ts - stop
        rows.dur[row] = stop - rows.ts[row]

    def finish(self, ts: int) -> LevelRows:
        """Return all rows; at the end of the trace, `ts`, the last value of each key still holds."""
        rows = self._rows
        for key, row in self._row_of.items():
            self._end(key, ts)
            rows.is_open[row] = not rows.is_cut[row]
        return rows
