"""Entries and exits of tasks as calls, with the kernel's exceptions.

kernel/entry/common.c: syscall_enter_from_user_mode() and syscall_exit_to_user_mode_work().  A task has one
call at a time.  exit and exit_group have no exit; rt_sigreturn puts the registers of the interrupted code in
place, so its exit has the number -1; the child of a fork has an exit and no entry; a call that a signal
interrupts may be entered again.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum, auto
from typing import TYPE_CHECKING

from tracepoint.analysis.coverage import join_gaps
from tracepoint.analysis.pairs import NO_ROW, Order, PairMachine
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


class Restart(IntEnum):
    """What a call returns that a signal interrupted, seen by tracers only: include/linux/errno.h."""

    ERESTARTSYS = -512
    ERESTARTNOINTR = -513
    ERESTARTNOHAND = -514
    ERESTART_RESTARTBLOCK = -516


RESTARTS = frozenset(Restart)
# These go on after the handler of the signal has run, ERESTARTSYS where it was installed with SA_RESTART.
_AFTER_HANDLER = frozenset((Restart.ERESTARTSYS, Restart.ERESTARTNOINTR))


# Handlers within handlers that are followed: those that leave by longjmp() never return.
_MAX_INTERRUPTED = 8


class _Stage(Enum):
    """Where an interrupted call is: left just now, in a handler, or after it."""

    LEFT = auto()
    IN_HANDLER = auto()
    AFTER_HANDLER = auto()


@dataclass(slots=True)
class _Interrupted:
    """A call that may be entered again: the row of its first entry, with which number, when it was left."""

    first: int
    number: int | None
    ts: int
    survives_handler: bool
    stage: _Stage = _Stage.LEFT


class CallRows(NamedTuple):
    """The rows of calls: pairs of entry and exit, and which of them are one call.

    `first_of` has the first entry for each entry that goes on with an interrupted call, `final` are entries
    that have no exit, `torn` first entries of calls whose rest a loss hides, or which began before the
    recording.
    """

    pairs: Pairs
    first_of: Mapping[int, int]
    final: Sequence[int]
    torn: frozenset[int]


class CallMachine:
    """Takes entries and exits by time.

    >>> machine = CallMachine({35: "nanosleep", 219: "restart_syscall"}, {})
    >>> machine.enter(7, 35, 0, 45, 0); machine.exit(7, 35, Restart.ERESTART_RESTARTBLOCK, 1, 50)
    >>> machine.enter(7, 219, 2, 52, 0); machine.exit(7, 219, 0, 3, 60)
    >>> machine.finish(70).first_of
    {2: 0}
    """

    def __init__(
        self, names: Mapping[int, str], gaps: Mapping[int, Sequence[Gap]], *, has_returns: bool = True
    ) -> None:
        kinds = {name: number for number, name in names.items()}
        self._final = {kinds[name] for name in _FINAL if name in kinds}
        self._forks = {kinds[name] for name in _FORKS if name in kinds}
        self._execs = {kinds[name] for name in _EXECS if name in kinds}
        self._sigreturn = kinds.get(SIGRETURN)
        self._restart = kinds.get("restart_syscall")
        if not has_returns and self._sigreturn is not None:
            self._final.add(self._sigreturn)
        self._pairs = PairMachine(Order.LAST, gaps=gaps)
        self._gaps = join_gaps(gap for own in gaps.values() for gap in own)
        # Of each task the number and the row of its open call, and calls that may go on, the last one last.
        self._open: dict[int, tuple[int, int]] = {}
        self._interrupted: dict[int, list[_Interrupted]] = {}
        self._first_of: dict[int, int] = {}
        self._ended: list[int] = []
        self._torn: set[int] = set()

    def enter(self, tid: int, number: int, row: int, ts: int, cpu: int) -> None:
        """Take an entry."""
        if tid in self._interrupted:
            first = self._first_entry(tid, number, ts)
            if first is not None:
                self._first_of[row] = first
        if number == self._restart and row not in self._first_of:
            self._torn.add(row)
        self._open.pop(tid, None)
        if number in self._final:
            self._pairs.drop(tid)
            self._ended.append(row)
            self._after_handler(tid, number)
            return
        self._pairs.begin(tid, row, ts, cpu)
        self._open[tid] = (number, row)

    def exit(self, tid: int, number: int, ret: int, row: int, ts: int) -> None:
        """Take an exit, which returns `ret`."""
        opened = self._open.pop(tid, None)
        if opened is None and ret == 0 and number in self._forks:
            # The child leaves the call that its parent entered.
            return
        if opened is not None and number not in (opened[0], _REPLACED) and opened[0] not in self._execs:
            # Entries or exits between were not recorded.
            self._pairs.drop(tid)
        begin = self._pairs.end(tid, row, ts)
        if opened is None or begin == NO_ROW:
            return
        # What rt_sigreturn returns is the register of what the signal interrupted.
        if ret in RESTARTS and opened[0] != self._sigreturn:
            self._interrupt(tid, opened[0], ret, self._first_of.get(begin, begin), ts)
        self._after_handler(tid, opened[0])

    def exec(self, tid: int, old_tid: int) -> None:
        """A task takes over the id of its process: execve ends under another id than it began."""
        if tid != old_tid:
            self._pairs.move(old_tid, tid)
            if old_tid in self._open:
                self._open[tid] = self._open.pop(old_tid)

    def _interrupt(self, tid: int, number: int, ret: int, first: int, ts: int) -> None:
        calls = self._interrupted.setdefault(tid, [])
        again = self._restart if ret == Restart.ERESTART_RESTARTBLOCK else number
        calls.append(_Interrupted(first, again, ts, ret in _AFTER_HANDLER))
        del calls[:-_MAX_INTERRUPTED]

    def _first_entry(self, tid: int, number: int, ts: int) -> int | None:
        """Return the first entry of the call that this entry goes on with; None where it is another."""
        calls = self._interrupted[tid]
        call = calls[-1]
        if call.stage is _Stage.IN_HANDLER:
            return None
        if number != call.number and call.survives_handler and call.stage is _Stage.LEFT:
            call.stage = _Stage.IN_HANDLER
            return None
        calls.pop()
        if not calls:
            del self._interrupted[tid]
        if number == call.number:
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
            self._torn.add(call.first)

    def finish(self, ts: int) -> CallRows:
        """Return all calls, at the time of the end of the trace."""
        for call in (call for calls in self._interrupted.values() for call in calls):
            self._leave(call, ts)
        pairs = self._pairs.finish(ts)
        return CallRows(pairs, self._first_of, self._ended, frozenset(self._torn))
