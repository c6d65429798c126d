"""The traps of a trace and the signals that they became."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING

from tracepoint.analysis.grouping import ChosenFigures, Grouping
from tracepoint.analysis.parts import PartedReport, SummedParts
from tracepoint.analysis.report import ALL
from tracepoint.analysis.sections import RATE, TASK, DistributionSection, Heading, N, Unit
from tracepoint.analysis.spans import span_columns
from tracepoint.analysis.traps.build import TrapReader
from tracepoint.analysis.traps.machine import HIDDEN, NONE, TrapRows, TrapSignal, no_traps
from tracepoint.analysis.traps.needs import NEEDS, SIGNAL
from tracepoint.analysis.traps.sums import TrapSums
from tracepoint.analysis.traps.vectors import code_name, likely_vector, signal_name
from tracepoint.decode.column import number_column, text_column
from tracepoint.decode.numbers import count_up
from tracepoint.decode.table import ColumnTable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tracepoint.analysis.distribution import Bounds
    from tracepoint.analysis.sections import Choice, Section, TableSection, Value
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


class TrapReport(PartedReport[TrapRows, TrapSums]):
    """The traps of a trace; `analyse_traps` makes it.

    `trap` is a table with a row for each, also for interrupts; `signal` has those that traps can become.
    """

    name = "traps"

    def __init__(self, reader: TrapReader) -> None:
        self.records = reader.records
        parts = SummedParts(reader.read, lambda choice: TrapSums(reader, choice))
        super().__init__(self.records.coverage, self.records.missing, parts)
        #: Counts of what was found, and the signals.
        self.machine = reader.machine

    def __repr__(self) -> str:
        n_signals = len(self.machine.signals.ts)
        return f"<TrapReport of {self.machine.n:,} traps, {n_signals:,} signals>"

    @property
    def signals(self) -> list[TrapSignal]:
        """The signals that the kernel made for what a task did itself."""
        rows = zip(*self.machine.signals, strict=True)
        # The sender is who gets it.
        return [
            TrapSignal(ts, cpu, tid, tid, number, code, trap) for ts, cpu, tid, number, code, trap, _ in rows
        ]

    @property
    def tables(self) -> dict[str, ColumnTable]:
        """The rows of `trap` and `signal`."""
        return {"trap": self.trap} | self.whole_tables

    @property
    def whole_tables(self) -> dict[str, ColumnTable]:
        """The rows of `signal`, which are kept."""
        return {"signal": self.signal}

    @cached_property
    def trap(self) -> ColumnTable:
        """The traps by time; `vector` is null for a probe that does not tell it."""
        return self.tables_of(lambda: self.parts.all_rows(no_traps()))["trap"]

    def tables_of(self, rows: Callable[[], TrapRows]) -> dict[str, ColumnTable]:
        """Return the table `trap` of some traps."""
        return {"trap": ColumnTable("trap", lambda: self._columns(rows()))}

    def _columns(self, rows: TrapRows) -> list[Column]:
        words = (word.encode("utf-8", "surrogateescape") for word in self.machine.words)
        return [
            *span_columns(rows.ts, rows.dur, rows.cpu, rows.tid),
            number_column("vector", rows.vector, "q", NONE),
            text_column("what", rows.what, words),
        ]

    @cached_property
    def signal(self) -> ColumnTable:
        """The signals by time; `trap_id` is the row of `trap`, null where that was not recorded."""
        rows = self.machine.signals

        def columns() -> list[Column]:
            return [
                number_column("id", count_up(len(rows.ts)), "q"),
                number_column("ts", rows.ts, "q"),
                number_column("tid", rows.tid, "q"),
                number_column("sig", rows.number, "q"),
                number_column("code", rows.code, "q"),
                number_column("trap_id", (max(trap, NONE) for trap in rows.trap), "q", NONE),
            ]

        return ColumnTable("signal", columns)

    def sections(self, choice: Choice = ALL) -> Sequence[Section]:
        """Return the traps by vector and by task, the signals, and how long traps took."""
        sums, words = self.parts.figures(choice), self.machine.words
        figures = ChosenFigures(self.records, choice)
        hiding = self.machine.cut.hiding(self.coverage)
        times = {words[what]: samples for what, samples in sums.times.samples(hiding).items()}
        taken = dict(sorted(times.items(), key=itemgetter(0)))
        return (
            self._vectors(figures, sums, words),
            self._tasks(figures, sums, words),
            self._signals(choice, words),
            DistributionSection("time_ns", "Time of a trap", taken, "trap", events=_EVENTS),
        )

    def _vectors(self, figures: ChosenFigures, sums: TrapSums, words: Sequence[str]) -> TableSection:
        signals = self.machine.signals
        became = Counter(signals.what)
        n_hidden = signals.trap.count(HIDDEN)
        rows = [
            (
                figures.bound(n),
                figures.rate(n),
                figures.bound(became[what], n_hidden),
                None if vector == NONE else vector,
                words[what],
            )
            for (vector, what), n in sums.vectors()
        ]
        return figures.choice.table("vectors", "Traps", _VECTORS, rows, _EVENTS)

    def _tasks(self, figures: ChosenFigures, sums: TrapSums, words: Sequence[str]) -> TableSection:
        task = self.records.task
        rows = [
            (figures.bound(n), figures.rate(n), words[what], task(tid), tid)
            for (what, tid), n in sums.tasks()
        ]
        return figures.choice.table("tasks", "Traps of tasks", _TASKS, rows, _EVENTS)

    def _signals(self, choice: Choice, words: Sequence[str]) -> TableSection:
        signals = self.machine.signals
        group = Grouping(self.records, choice, signals.tid, signals.cpu)

        def key(row: int) -> tuple[int, int, str, int]:
            what = "" if signals.what[row] == NONE else words[signals.what[row]]
            return signals.number[row], signals.code[row], what, signals.tid[row]

        # Those of which a loss may hide the trap can be of any.
        hidden = Counter(
            (signals.number[row], signals.code[row], signals.tid[row])
            for row in group.rows
            if signals.trap[row] == HIDDEN
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
    return TrapReport(TrapReader(trace))


analyse = analyse_traps
