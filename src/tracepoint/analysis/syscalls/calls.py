"""Entries and exits of tasks as calls, with the kernel's exceptions.

kernel/entry/common.c: syscall_enter_from_user_mode() and syscall_exit_to_user_mode_work().  A task has one
call at a time.  exit and exit_group have no exit; rt_sigreturn puts the registers of the interrupted code in
place, so its exit has the number -1; the child of a fork has an exit and no entry; a call that a signal
interrupts may be entered again.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from enum import Enum, IntEnum, auto
from typing import TYPE_CHECKING

from tracepoint.analysis.coverage import join_gaps
from tracepoint.analysis.growing import ClosedPart, GrowingRows
from tracepoint.analysis.pairs import NO_ROW, Order, PairMachine
from tracepoint.analysis.spans import OPEN
from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.analysis.coverage import Gap
    from tracepoint.analysis.pairs import Pairs

_REPLACED = -1
#: Its exit has no number, and what it returns is no result.
SIGRETURN = "rt_sigreturn"
_FINAL = frozenset(("exit", "exit_group"))
_FORKS = frozenset(("clone", "clone3", "fork", "vfork"))
_EXECS = frozenset(("execve", "execveat"))
_RESTART = "restart_syscall"


class Restart(IntEnum):
    """What a call returns that a signal interrupted, seen by tracers only: include/linux/errno.h."""

    ERESTARTSYS = -512
    ERESTARTNOINTR = -513
    ERESTARTNOHAND = -514
    ERESTART_RESTARTBLOCK = -516


RESTARTS = frozenset(Restart)
# These go on after the handler of the signal has run, ERESTARTSYS where it was installed with SA_RESTART.
_AFTER_HANDLER = frozenset((Restart.ERESTARTSYS, Restart.ERESTARTNOINTR))


#: What an open call returned.
NO_RETURN = -(1 << 63)
# Handlers within handlers that are followed: those that leave by longjmp() never return.
_MAX_INTERRUPTED = 8


class _Stage(Enum):
    """Where an interrupted call is: left just now, in a handler, or after it."""

    LEFT = auto()
    IN_HANDLER = auto()
    AFTER_HANDLER = auto()


@dataclass(slots=True)
class _Interrupted:
    """A call that may be entered again: its row, by which number, when it was left.

    Without a number it is entered again by restart_syscall.
    """

    first: int
    number: int | None
    ts: int
    survives_handler: bool
    stage: _Stage = _Stage.LEFT


class CallRows(NamedTuple):
    """Calls by their first entry: times in ns (`dur`: OPEN without an end), CPU, task and number.

    `returns` are what they returned (NO_RETURN: no end), `n_parts` how often each was entered.  `is_cut` says
    that a loss may hide the end or a part of it, or that it began before the recording.
    """

    ts: array[int]
    dur: array[int]
    cpu: array[int]
    tid: array[int]
    number: array[int]
    returns: array[int]
    n_parts: array[int]
    is_cut: array[int]


def no_calls() -> CallRows:
    """Return no rows."""
    return CallRows(*(array(code) for code in "qqiqqqib"))


class CallMachine:
    """Takes entries and exits by time; what no record can change any more is handed over on the way.

    `n_final` calls have no end as they end their task, `n_orphans` exits no entry.

    >>> machine = CallMachine({35: "nanosleep", 219: "restart_syscall"}, {})
    >>> machine.enter(7, 35, 45, 0); machine.exit(7, 35, Restart.ERESTART_RESTARTBLOCK, 50)
    >>> len(machine.closed())
    0
    >>> machine.enter(7, 219, 52, 0); machine.exit(7, 219, 0, 60)
    >>> rows = machine.finish(70).rows
    >>> list(zip(rows.ts, rows.dur, rows.n_parts))
    [(45, 15, 2)]
    """

    def __init__(
        self, names: Mapping[int, str], gaps: Mapping[int, Sequence[Gap]], *, has_returns: bool = True
    ) -> None:
        self._has_returns = has_returns
        self._final: set[int] = set()
        self._forks: set[int] = set()
        self._execs: set[int] = set()
        self._sigreturn: int | None = None
        self._restart: int | None = None
        for number, name in names.items():
            self.learn(number, name)
        self._pairs = PairMachine(Order.LAST, gaps=gaps)
        self._gaps = join_gaps(gap for own in gaps.values() for gap in own)
        self._rows = GrowingRows(no_calls())
        self.n_final = self.n_orphans = 0
        # Of each task the number of its open call, and calls that may go on, the last one last.
        self._open: dict[int, int] = {}
        self._interrupted: dict[int, list[_Interrupted]] = {}

    def learn(self, number: int, name: str) -> None:
        """Take the name of the calls with a number, before the first of them."""
        for names, numbers in ((_FINAL, self._final), (_FORKS, self._forks), (_EXECS, self._execs)):
            if name in names:
                numbers.add(number)
        if name == _RESTART:
            self._restart = number
        if name == SIGRETURN:
            self._sigreturn = number
            if not self._has_returns:
                self._final.add(number)

    def enter(self, tid: int, number: int, ts: int, cpu: int) -> None:
        """Take an entry."""
        first = self._first_entry(tid, number, ts) if tid in self._interrupted else None
        if first is None:
            first = self._begin(tid, number, ts, cpu)
        else:
            rows, at = self._rows.columns, self._rows.place(first)
            rows.dur[at], rows.returns[at] = OPEN, NO_RETURN
            rows.n_parts[at] += 1
        self._open.pop(tid, None)
        if number in self._final:
            self._pairs.drop(tid)
            self.n_final += 1
            self._after_handler(tid, number)
            return
        self._pairs.begin(tid, first, ts, cpu)
        self._open[tid] = number

    def _begin(self, tid: int, number: int, ts: int, cpu: int) -> int:
        rows = self._rows.columns
        rows.ts.append(ts)
        rows.dur.append(OPEN)
        rows.cpu.append(cpu)
        rows.tid.append(tid)
        rows.number.append(number)
        rows.returns.append(NO_RETURN)
        rows.n_parts.append(1)
        # What it goes on with began before the recording, or in a loss.
        rows.is_cut.append(number == self._restart)
        return self._rows.last

    def exit(self, tid: int, number: int, ret: int, ts: int) -> None:
        """Take an exit, which returns `ret`."""
        opened = self._open.pop(tid, None)
        if opened is None and ret == 0 and number in self._forks:
            # The child leaves the call that its parent entered.
            return
        if opened is not None and number not in (opened, _REPLACED) and opened not in self._execs:
            # Entries or exits between were not recorded.
            self._pairs.drop(tid)
        first = self._pairs.end(tid, NO_ROW, ts)
        if first == NO_ROW:
            return
        rows, at = self._rows.columns, self._rows.place(first)
        rows.returns[at] = ret
        if not rows.is_cut[at]:
            rows.dur[at] = ts - rows.ts[at]
        if opened is None:
            return
        # What rt_sigreturn returns is the register of what the signal interrupted.
        if ret in RESTARTS and opened != self._sigreturn:
            self._interrupt(tid, opened, ret, first, ts)
        self._after_handler(tid, opened)

    def exec(self, tid: int, old_tid: int) -> None:
        """A task takes over the id of its process: execve ends under another id than it began."""
        if tid != old_tid:
            self._pairs.move(old_tid, tid)
            if old_tid in self._open:
                self._open[tid] = self._open.pop(old_tid)

    def _interrupt(self, tid: int, number: int, ret: int, first: int, ts: int) -> None:
        calls = self._interrupted.setdefault(tid, [])
        again = None if ret == Restart.ERESTART_RESTARTBLOCK else number
        calls.append(_Interrupted(first, again, ts, ret in _AFTER_HANDLER))
        del calls[:-_MAX_INTERRUPTED]

    def _first_entry(self, tid: int, number: int, ts: int) -> int | None:
        """Return the row of the call that this entry goes on with; None where it is another."""
        calls = self._interrupted[tid]
        call = calls[-1]
        if call.stage is _Stage.IN_HANDLER:
            return None
        again = self._restart if call.number is None else call.number
        if number != again and call.survives_handler and call.stage is _Stage.LEFT:
            call.stage = _Stage.IN_HANDLER
            return None
        calls.pop()
        if not calls:
            del self._interrupted[tid]
        if number == again:
            return call.first
        self._leave(call, ts)
        return None

    def _after_handler(self, tid: int, number: int) -> None:
        if number == self._sigreturn and tid in self._interrupted:
            call = self._interrupted[tid][-1]
            if call.stage is _Stage.IN_HANDLER:
                call.stage = _Stage.AFTER_HANDLER

    def _leave(self, call: _Interrupted, ts: int) -> None:
        """A call was not entered again, or a loss hides that it was."""
        if self._gaps.is_between(call.ts, ts):
            rows, at = self._rows.columns, self._rows.place(call.first)
            rows.dur[at], rows.is_cut[at] = OPEN, 1

    def _settle(self, pairs: Pairs) -> None:
        self.n_orphans += len(pairs.orphans)
        self._rows.mark(self._rows.columns.is_cut, pairs.cut)

    def settled(self) -> ClosedPart[CallRows]:
        """Return the calls that were not handed over, also those that later records may change."""
        self._settle(self._pairs.closed())
        return ClosedPart(self._rows.numbers, self._rows.columns)

    def closed(self) -> ClosedPart[CallRows]:
        """Hand over the calls that no record can change any more."""
        self._settle(self._pairs.closed())
        left = (call.first for calls in self._interrupted.values() for call in calls)
        return self._rows.close({*self._pairs.open_rows, *left})

    def finish(self, ts: int) -> ClosedPart[CallRows]:
        """Hand over the other calls, at the time of the end of the trace."""
        for call in (call for calls in self._interrupted.values() for call in calls):
            self._leave(call, ts)
        self._settle(self._pairs.finish(ts))
        return self._rows.finish()
