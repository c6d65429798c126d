"""Values that hold until the next one: the idle state of a CPU, its frequency, a counter.

A loss hides changes: from where it begins to the next value it is not known which one it was.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from tracepoint.analysis.coverage import join_gaps
from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from tracepoint.analysis.coverage import Gap
    from tracepoint.analysis.growing import GrowingRows


class LevelRows(NamedTuple):
    """For each value that a key of a kind had, in the order of their begins: from when, how long, in ns.

    `is_cut` is 1 where a loss hides when the value ended, `is_open` where it still held at the end of the
    trace.
    """

    kind: array[int]
    key: array[int]
    ts: array[int]
    dur: array[int]
    value: array[int]
    is_cut: array[int]
    is_open: array[int]


def no_levels() -> LevelRows:
    """Return no rows."""
    return LevelRows(*(array(code) for code in "bqqqqbb"))


class LevelMachine:
    """Makes rows of the values that keys have, from changes by time, and adds them to those of other kinds.

    With `has_own_gaps` a key is a CPU that records its own changes, and only its own losses hide them.
    `hidden` is for how long losses hide the value, by key.

    >>> from tracepoint.analysis.growing import GrowingRows
    >>> rows = GrowingRows(no_levels())
    >>> machine = LevelMachine(rows)
    >>> machine.set(0, 10, 1200); machine.set(0, 30, 2400)
    >>> machine.finish(35)
    >>> rows.columns.dur
    array('q', [20, 5])
    """

    def __init__(
        self,
        rows: GrowingRows[LevelRows],
        gaps: Mapping[int, Sequence[Gap]] | None = None,
        *,
        kind: int = 0,
        has_own_gaps: bool = False,
    ) -> None:
        gaps = gaps or {}
        self._own = {cpu: join_gaps(own) for cpu, own in gaps.items()} if has_own_gaps else {}
        anywhere = [] if has_own_gaps else [gap for own in gaps.values() for gap in own]
        self._any = join_gaps(anywhere) if anywhere else None
        self._rows = rows
        self._kind = kind
        self._row_of: dict[int, int] = {}
        self.hidden: dict[int, int] = {}
        self.n = 0

    @property
    def open_rows(self) -> Collection[int]:
        """The numbers of the rows of values that still hold."""
        return self._row_of.values()

    def hidden_from(self, key: int, ts: int) -> int | None:
        """Return when losses begin to hide the value that a key has from a time on; None: never."""
        finder = self._own.get(key, self._any)
        gap = finder.first_after(ts) if finder is not None else None
        return None if gap is None else gap[0]

    def set(self, key: int, ts: int, value: int) -> None:
        """Take that a key has a value from a time on."""
        self._end(key, ts)
        rows = self._rows.columns
        rows.kind.append(self._kind)
        rows.key.append(key)
        rows.ts.append(ts)
        rows.dur.append(0)
        rows.value.append(value)
        rows.is_cut.append(0)
        rows.is_open.append(0)
        self._row_of[key] = self._rows.last
        self.n += 1

    def _end(self, key: int, ts: int) -> None:
        number = self._row_of.get(key)
        if number is None:
            return
        rows, at, stop = self._rows.columns, self._rows.place(number), ts
        hidden = self.hidden_from(key, rows.ts[at])
        if hidden is not None and hidden < ts:
            stop, rows.is_cut[at] = max(hidden, rows.ts[at]), 1
            self.hidden[key] = self.hidden.get(key, 0) + ts - stop
        rows.dur[at] = stop - rows.ts[at]

    def finish(self, ts: int) -> None:
        """End at the time of the end of the trace, at which the last value of each key still holds."""
        rows = self._rows.columns
        for key, number in self._row_of.items():
            self._end(key, ts)
            at = self._rows.place(number)
            rows.is_open[at] = not rows.is_cut[at]
