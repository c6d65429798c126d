"""The traps of a trace and the signals that they became."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING

from tracepoint.analysis.grouping import Grouping
from tracepoint.analysis.report import ALL, Report
from tracepoint.analysis.sections import RATE, TASK, DistributionSection, Heading, N, Unit
from tracepoint.analysis.spans import samples_of, span_columns
from tracepoint.analysis.traps.build import read_traps
from tracepoint.analysis.traps.machine import HIDDEN, NONE
from tracepoint.analysis.traps.needs import NEEDS, SIGNAL
from tracepoint.analysis.traps.vectors import code_name, likely_vector, signal_name
from tracepoint.decode.column import names_column, number_column
from tracepoint.decode.table import ColumnTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.analysis.distribution import Bounds
    from tracepoint.analysis.records import AnalysisRecords
    from tracepoint.analysis.sections import Choice, Section, TableSection, Value
    from tracepoint.analysis.traps.machine import TrapMachine, TrapSignal
    from tracepoint.decode.column import Column
    from tracepoint.decode.trace import Trace

_WHAT = Heading("what", "trap", Unit.WORD)
_VECTORS = (N, RATE, Heading("n_signals", "signals"), Heading("vector", "vector", Unit.NUMBER), _WHAT)
_TASKS = (N, RATE, _WHAT, *TASK)
_SIGNALS = (
    N, Heading("signal", "signal", Unit.WORD), Heading("code", "code", Unit.WORD),
    Heading("trap", "of the trap", Unit.WORD), Heading("likely", "likely", Unit.WORD), *TASK,
)  # fmt: skip
_EVENTS = tuple(name for need in NEEDS for name in need.names)


class TrapReport(Report):
    """The traps of a trace; `analyse_traps` makes it.

    `trap` is a table with a row for each, also for interrupts; `signal` has those that traps can become.
    """

    name = "traps"

    def __init__(self, records: AnalysisRecords, machine: TrapMachine) -> None:
        super().__init__(records.coverage, records.missing)
        self.records = records
        self.machine = machine

    def __repr__(self) -> str:
        return f"<TrapReport of {len(self.machine.ts):,} traps, {len(self.signals):,} signals>"

    @cached_property
    def signals(self) -> list[TrapSignal]:
        """The signals that the kernel made for what a task did itself."""
        return [signal for signal in self.machine.signals if signal.is_trap]

    @property
    def tables(self) -> dict[str, ColumnTable]:
        """The rows of `trap` and `signal`."""
        return {"trap": self.trap, "signal": self.signal}

    @cached_property
    def trap(self) -> ColumnTable:
        """The traps by time; `vector` is null for a probe that does not tell it."""
        machine = self.machine

        def columns() -> list[Column]:
            return [
                *span_columns(machine.ts, machine.dur, machine.cpu, machine.tid),
                number_column("vector", machine.vector, "q", NONE),
                names_column("what", machine.what),
            ]

        return ColumnTable("trap", columns)

    @cached_property
    def signal(self) -> ColumnTable:
        """The signals by time; `trap_id` is the row of `trap`, null where that was not recorded."""
        rows = self.signals

        def columns() -> list[Column]:
            return [
                number_column("id", range(len(rows)), "q"),
                number_column("ts", (row.ts for row in rows), "q"),
                number_column("tid", (row.tid for row in rows), "q"),
                number_column("sig", (row.number for row in rows), "q"),
                number_column("code", (row.code for row in rows), "q"),
                number_column("trap_id", (max(row.trap, NONE) for row in rows), "q", NONE),
            ]

        return ColumnTable("signal", columns)

    def sections(self, choice: Choice = ALL) -> Sequence[Section]:
        """Return the traps by vector and by task, the signals, and how long traps took."""
        machine = self.machine
        group = Grouping(self.records, choice, machine.tid, machine.cpu)
        times: dict[str, list[int]] = {}
        for row in group.rows:
            if machine.dur[row] != NONE:
                times.setdefault(machine.what[row], []).append(machine.dur[row])
        taken = {
            what: samples_of(values, self.coverage, machine.cut) for what, values in sorted(times.items())
        }
        return (
            self._vectors(group),
            self._tasks(group),
            self._signals(choice),
            DistributionSection("time_ns", "Time of a trap", taken, "trap", events=_EVENTS),
        )

    def _vectors(self, group: Grouping) -> TableSection:
        machine = self.machine
        became = Counter(machine.what[signal.trap] for signal in self.signals if signal.trap >= 0)
        n_hidden = sum(signal.trap == HIDDEN for signal in self.signals)
        found = group.by(lambda row: (machine.vector[row], machine.what[row]))
        rows = [
            (
                group.bound(n),
                group.rate(n),
                group.bound(became[what], n_hidden),
                None if vector == NONE else vector,
                what,
            )
            for (vector, what), n in found
        ]
        return group.choice.table("vectors", "Traps", _VECTORS, rows, _EVENTS)

    def _tasks(self, group: Grouping) -> TableSection:
        machine, task = self.machine, self.records.task
        found = group.by(lambda row: (machine.what[row], machine.tid[row]))
        rows = [(group.bound(n), group.rate(n), what, task(tid), tid) for (what, tid), n in found]
        return group.choice.table("tasks", "Traps of tasks", _TASKS, rows, _EVENTS)

    def _signals(self, choice: Choice) -> TableSection:
        signals, machine = self.signals, self.machine
        group = Grouping(self.records, choice, [s.tid for s in signals], [s.cpu for s in signals])

        def key(row: int) -> tuple[int, int, str, int]:
            signal = signals[row]
            what = machine.what[signal.trap] if signal.trap >= 0 else ""
            return signal.number, signal.code, what, signal.tid

        # Those of which a loss may hide the trap can be of any.
        hidden = Counter(
            (signals[row].number, signals[row].code, signals[row].tid)
            for row in group.rows
            if signals[row].trap == HIDDEN
        )
        rows: list[tuple[Value, ...]] = [
            (
                _bound(group, n, what, hidden[number, code, tid]), signal_name(number),
                code_name(number, code), what or None,
                likely_vector(number, code), self.records.task(tid), tid,
            )
            for (number, code, what, tid), n in group.by(key)
        ]  # fmt: skip
        return choice.table("signals", "Signals of traps", _SIGNALS, rows, (SIGNAL,))


def _bound(group: Grouping, n: int, what: str, n_hidden: int) -> Bounds:
    """Return how many signals are of a trap, or of none that was recorded."""
    return group.bound(n, n_hidden) if what else group.bound(n)._replace(low=n - n_hidden)


def analyse_traps(trace: Trace) -> TrapReport:
    """Return the traps of a trace; raises TracepointError without any event of them.

    Times are those of `trace.between`; the records of all tasks and CPUs are needed.

    >>> import tracepoint as tp
    >>> with tp.open_trace("tests/tracefile/golden/cut.v6.dat") as trace:
    ...     analyse_traps(trace)
    <TrapReport of 27 traps, 0 signals>
    """
    return TrapReport(*read_traps(trace))


analyse = analyse_traps
