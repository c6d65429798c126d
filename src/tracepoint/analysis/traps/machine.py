"""Traps by time, each with the signal that its task got before its next one."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from tracepoint.analysis.coverage import join_gaps
from tracepoint.analysis.pairs import NO_ROW, EndScope, Order, PairMachine
from tracepoint.analysis.traps.vectors import SIGNALS, likely_vector, vector_name
from tracepoint.named import NamedTuple
from tracepoint.tracefile.sieve import MIN_TIME

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.analysis.coverage import Gap

NONE, HIDDEN = -1, -2


class TrapSignal(NamedTuple):
    """A signal: who got it, from whom, and the row of the trap that made it.

    That is NONE where it was not recorded, HIDDEN where it may be a trap in a loss.
    """

    ts: int
    cpu: int
    tid: int
    sender: int
    number: int
    code: int
    trap: int

    @property
    def is_trap(self) -> bool:
        """Whether a trap of the task itself made it: a sender's code is not above 0."""
        is_own = self.tid == self.sender and self.number in SIGNALS
        return is_own and bool(likely_vector(self.number, self.code))


class TrapMachine:
    """Takes records by time; its columns have a row for each trap, `vector` is -1 where it is not known."""

    def __init__(self, gaps: Mapping[int, Sequence[Gap]]) -> None:
        self.ts, self.dur, self.vector = array("q"), array("q"), array("q")
        self.cpu, self.tid = array("i"), array("i")
        self.what: list[str] = []
        self.signals: list[TrapSignal] = []
        #: When traps began whose end a loss hides.
        self.cut: list[int] = []
        self._gaps = join_gaps(gap for own in gaps.values() for gap in own)
        # A trap of a task ends in it, wherever that runs then; an interrupt ends on its CPU.
        self._in_tasks = PairMachine(Order.STACK, gaps=gaps)
        self._on_cpus = PairMachine(Order.STACK, EndScope.CPU, gaps)
        # Of each task: its last trap without a signal, and when its last record was.
        self._last: dict[int, int] = {}
        self._seen: dict[int, int] = {}

    def _add(self, ts: int, cpu: int, tid: int, vector: int, what: str) -> int:
        self.ts.append(ts)
        self.dur.append(NONE)
        self.cpu.append(cpu)
        self.tid.append(tid)
        self.vector.append(vector)
        self.what.append(what)
        return len(self.ts) - 1

    def trap(self, ts: int, cpu: int, tid: int, vector: int, what: str) -> None:
        """A task traps, as `what` says."""
        self._last[tid] = self._add(ts, cpu, tid, vector, what)
        self._seen[tid] = ts

    def other(self, ts: int, cpu: int, tid: int, vector: int, what: str) -> None:
        """A CPU does something for a vector that is not of the task that it runs."""
        self._add(ts, cpu, tid, vector, what)

    def enter(self, ts: int, cpu: int, tid: int, vector: int, what: str) -> None:
        """A task traps, and its end is recorded too."""
        self.trap(ts, cpu, tid, vector, what)
        self._in_tasks.begin((tid, vector), self._last[tid], ts, cpu)

    def leave(self, ts: int, tid: int, vector: int) -> None:
        """A trap of a task ends."""
        self._end(self._in_tasks.end((tid, vector), NO_ROW, ts), ts)

    def interrupt(self, ts: int, cpu: int, tid: int, vector: int, what: str) -> None:
        """A CPU is interrupted."""
        self._on_cpus.begin((cpu, what), self._add(ts, cpu, tid, vector, what), ts, cpu)

    def resume(self, ts: int, cpu: int, what: str) -> None:
        """An interrupt of a CPU ends."""
        self._end(self._on_cpus.end((cpu, what), NO_ROW, ts), ts)

    def _end(self, at: int, ts: int) -> None:
        if at != NO_ROW:
            self.dur[at] = ts - self.ts[at]

    def signal(self, found: TrapSignal) -> None:
        """A task gets a signal: of its last trap, where a trap made it and no loss may hide a later one."""
        at = self._last.get(found.tid, NONE)
        if self._gaps.is_between(self._seen.get(found.tid, MIN_TIME), found.ts):
            at = HIDDEN
        elif at != NONE and not self._can_make(at, found):
            at = NONE
        self._seen[found.tid] = found.ts
        self.signals.append(found._replace(trap=at))
        if at not in (NONE, HIDDEN):
            del self._last[found.tid]

    def _can_make(self, at: int, found: TrapSignal) -> bool:
        """Whether a trap can be that of a signal: another one, without an event, may have come after it."""
        vector = self.vector[at]
        likely = likely_vector(found.number, found.code).replace(",", "").split()
        return found.is_trap and (vector == NONE or vector_name(vector).split()[0] in likely)

    def finish(self, ts: int) -> None:
        """End at the time of the end of the trace."""
        self.cut = [self.ts[row] for pairs in (self._in_tasks, self._on_cpus) for row in pairs.finish(ts).cut]
