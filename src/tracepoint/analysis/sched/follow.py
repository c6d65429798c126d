"""The rows of threads and CPUs by time: what one did at a time, and who woke it."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import TYPE_CHECKING

from tracepoint.analysis.sched.rows import NONE, OPEN, RowFlag
from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracepoint.analysis.sched.rows import RunRows, SchedRows, StateRows

_WOKEN, _NEW, _CUT = int(RowFlag.WOKEN), int(RowFlag.NEW), int(RowFlag.CUT)


class WakeUp(NamedTuple):
    """Who made a thread runnable, at a time in ns; `in_interrupt`: an interrupt that stopped `waker` did."""

    waker: int
    ts: int
    in_interrupt: bool


def wake_up_of(flags: int, waker: int, ts: int, irq: int) -> WakeUp | None:
    """Return who began a row of states by a wake-up; None where nobody did, or it is not known."""
    return WakeUp(waker, ts, irq == 1) if flags & (_WOKEN | _NEW) and waker != NONE else None


class Timeline:
    """The rows of states by thread and of runs by CPU; `stop` is the end of the trace in ns."""

    def __init__(self, rows: SchedRows, stop: int) -> None:
        self.rows = rows
        self._stop = stop
        self._of_thread = _by_number(rows.states.utid)
        self._of_cpu = _by_number(rows.runs.cpu)

    def first(self, utid: int) -> int:
        """Return when a thread that has rows is first known to do something."""
        return self.rows.states.ts[self._of_thread[utid][0]]

    def last(self, utid: int) -> int:
        """Return the last row of a thread, NONE without any."""
        return self._of_thread.get(utid, (NONE,))[-1]

    def before(self, utid: int, time: int) -> int:
        """Return the last row of a thread that begins before a time, NONE without one."""
        return _before(self._of_thread.get(utid, ()), self.rows.states.ts, time)

    def stop_of(self, row: int) -> int:
        """Return when a row of states ends: the last one goes on, unless it is not known when it ended."""
        states = self.rows.states
        return self._end(states, row, is_last=self.last(states.utid[row]) == row)

    def _end(self, rows: StateRows | RunRows, row: int, *, is_last: bool) -> int:
        if rows.dur[row] != OPEN:
            return rows.ts[row] + rows.dur[row]
        return self._stop if is_last and not rows.flags[row] & _CUT else rows.ts[row]

    def after(self, row: int) -> int:
        """Return the row of the same thread that begins where a row ends, NONE where that is not known."""
        states = self.rows.states
        own = self._of_thread[states.utid[row]]
        place = bisect_left(own, row) + 1
        follows = place < len(own) and states.ts[own[place]] == self.stop_of(row)
        return own[place] if follows else NONE

    def wake_up(self, row: int) -> WakeUp | None:
        """Return who began a runnable row by a wake-up; None where nobody did, or it is not known."""
        states = self.rows.states
        if row == NONE:
            return None
        return wake_up_of(states.flags[row], states.waker[row], states.ts[row], states.irq[row])

    def runs_within(self, cpu: int, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Yield the threads that a CPU ran from `start` to `stop`, with the time in ns of each run."""
        runs, own = self.rows.runs, self._of_cpu.get(cpu, ())
        place = bisect_left(own, stop, key=runs.ts.__getitem__) - 1
        while place >= 0:
            row = own[place]
            end = min(self._end(runs, row, is_last=place == len(own) - 1), stop)
            if end > max(runs.ts[row], start):
                yield runs.utid[row], end - max(runs.ts[row], start)
            if runs.ts[row] <= start:
                return
            place -= 1


def _by_number(numbers: Sequence[int]) -> dict[int, array[int]]:
    """Return the rows of each number, in order, as arrays: of millions of rows that is a fifth of lists."""
    found: dict[int, array[int]] = {}
    for row, number in enumerate(numbers):
        own = found.get(number)
        if own is None:
            own = found[number] = array("q")
        own.append(row)
    return found


def _before(own: Sequence[int], times: Sequence[int], time: int) -> int:
    place = bisect_left(own, time, key=times.__getitem__) - 1
    return own[place] if place >= 0 else NONE
