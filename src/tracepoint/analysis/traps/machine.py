"""Traps by time, each with the signal that its task got before its next one."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from tracepoint.analysis.coverage import join_gaps
from tracepoint.analysis.growing import GrowingRows
from tracepoint.analysis.numbered import Numbered
from tracepoint.analysis.pairs import NO_ROW, EndScope, Order, PairMachine
from tracepoint.analysis.spans import CutTally
from tracepoint.analysis.traps.vectors import SIGNALS, likely_vector, vector_name
from tracepoint.named import NamedTuple
from tracepoint.tracefile.sieve import MIN_TIME

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.analysis.coverage import Gap
    from tracepoint.analysis.growing import ClosedPart
    from tracepoint.analysis.pairs import Pairs

NONE, HIDDEN = -1, -2
_NO_TRAP = (NONE, NONE, NONE)


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


class TrapRows(NamedTuple):
    """Traps by time; times are in ns, `dur` is NONE (-1) for one without an end.

    `vector` is NONE where it is not known, `what` is the number of one of the `words` of the machine.
    """

    ts: array[int]
    dur: array[int]
    cpu: array[int]
    tid: array[int]
    vector: array[int]
    what: array[int]


def no_traps() -> TrapRows:
    """Return no rows."""
    return TrapRows(*(array(code) for code in "qqiiqi"))


class SignalRows(NamedTuple):
    """The signals that traps made, by time; `what` is the word of the trap, NONE without one."""

    ts: array[int]
    cpu: array[int]
    tid: array[int]
    number: array[int]
    code: array[int]
    trap: array[int]
    what: array[int]


class TrapMachine:
    """Takes records by time; what no record can change any more is handed over on the way.

    `n` traps were made, `words` say what they are; `signals` are all that traps made.  `cut` has the traps
    with an end that a loss hides.
    """

    def __init__(self, gaps: Mapping[int, Sequence[Gap]]) -> None:
        self.n = 0
        self.cut = CutTally()
        self.signals = SignalRows(*(array(code) for code in "qiiqqqi"))
        self._words: Numbered[str] = Numbered()
        self._rows = GrowingRows(no_traps())
        self._gaps = join_gaps(gap for own in gaps.values() for gap in own)
        # A trap of a task ends in it, wherever that runs then; an interrupt ends on its CPU.
        self._in_tasks = PairMachine(Order.STACK, gaps=gaps)
        self._on_cpus = PairMachine(Order.STACK, EndScope.CPU, gaps)
        # Of each task: row, vector and word of its last trap without a signal, and when its last record was.
        self._last: dict[int, tuple[int, int, int]] = {}
        self._seen: dict[int, int] = {}

    @property
    def words(self) -> list[str]:
        """What traps are, by number."""
        return self._words.all

    def _add(self, ts: int, cpu: int, tid: int, vector: int, what: str) -> int:
        times, durs, cpus, tids, vectors, words = self._rows.columns
        times.append(ts)
        durs.append(NONE)
        cpus.append(cpu)
        tids.append(tid)
        vectors.append(vector)
        words.append(self._words[what])
        return self._rows.last

    def trap(self, ts: int, cpu: int, tid: int, vector: int, what: str) -> int:
        """A task traps, as `what` says; return the number of the row."""
        number = self._add(ts, cpu, tid, vector, what)
        self._last[tid] = number, vector, self._words[what]
        self._seen[tid] = ts
        return number

    def other(self, ts: int, cpu: int, tid: int, vector: int, what: str) -> None:
        """A CPU does something for a vector that is not of the task that it runs."""
        self._add(ts, cpu, tid, vector, what)

    def enter(self, ts: int, cpu: int, tid: int, vector: int, what: str) -> None:
        """A task traps, and its end is recorded too."""
        self._in_tasks.begin((tid, vector), self.trap(ts, cpu, tid, vector, what), ts, cpu)

    def leave(self, ts: int, tid: int, vector: int) -> None:
        """A trap of a task ends."""
        self._end(self._in_tasks.end((tid, vector), NO_ROW, ts), ts)

    def interrupt(self, ts: int, cpu: int, tid: int, vector: int, what: str) -> None:
        """A CPU is interrupted."""
        self._on_cpus.begin((cpu, what), self._add(ts, cpu, tid, vector, what), ts, cpu)

    def resume(self, ts: int, cpu: int, what: str) -> None:
        """An interrupt of a CPU ends."""
        self._end(self._on_cpus.end((cpu, what), NO_ROW, ts), ts)

    def _end(self, number: int, ts: int) -> None:
        if number != NO_ROW:
            rows, at = self._rows.columns, self._rows.place(number)
            rows.dur[at] = ts - rows.ts[at]

    def signal(self, found: TrapSignal) -> None:
        """A task gets a signal: of its last trap, where a trap made it and no loss may hide a later one."""
        number, vector, word = self._last.get(found.tid, _NO_TRAP)
        trap, what = NONE, NONE
        if self._gaps.is_between(self._seen.get(found.tid, MIN_TIME), found.ts):
            trap = HIDDEN
        elif number != NONE and _can_make(vector, found):
            trap, what = number, word
            del self._last[found.tid]
        self._seen[found.tid] = found.ts
        if found.is_trap:
            values = found.ts, found.cpu, found.tid, found.number, found.code, trap, what
            for column, value in zip(self.signals, values, strict=True):
                column.append(value)

    def _settle(self, *found: Pairs) -> None:
        rows, place = self._rows.columns, self._rows.place
        self.cut.cut(rows.ts[place(number)] for pairs in found for number in pairs.cut)

    def closed(self) -> ClosedPart[TrapRows]:
        """Hand over the traps that no record can change any more."""
        self._settle(self._in_tasks.closed(), self._on_cpus.closed())
        return self._counted(self._rows.close({*self._in_tasks.open_rows, *self._on_cpus.open_rows}))

    def finish(self, ts: int) -> ClosedPart[TrapRows]:
        """Hand over the other traps, at the time of the end of the trace."""
        self._settle(self._in_tasks.finish(ts), self._on_cpus.finish(ts))
        return self._counted(self._rows.finish())

    def _counted(self, closed: ClosedPart[TrapRows]) -> ClosedPart[TrapRows]:
        self.n += len(closed)
        return closed


def _can_make(vector: int, found: TrapSignal) -> bool:
    """Whether a trap can be that of a signal: another one, without an event, may have come after it."""
    likely = likely_vector(found.number, found.code).replace(",", "").split()
    return found.is_trap and (vector == NONE or vector_name(vector).split()[0] in likely)
