"""The time from one event to another with the same key: its figures, by key and the longest."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from tracepoint.analysis.chosen import longest_section
from tracepoint.analysis.latency.build import LatencyReader, LatencyRows, no_latencies
from tracepoint.analysis.latency.pairing import ANALYSIS, keyed_events
from tracepoint.analysis.pairs import Order
from tracepoint.analysis.parts import PartedReport, SummedParts
from tracepoint.analysis.report import ALL
from tracepoint.analysis.sections import MAX, MEAN, P99, TOTAL, DistributionSection, Heading, N, Unit
from tracepoint.analysis.spans import OPEN, hiding_of, span_columns, unpaired_notes
from tracepoint.analysis.sums import LongestRows, SampleSums
from tracepoint.analysis.units import task_text
from tracepoint.decode.column import names_column, number_column
from tracepoint.decode.table import ColumnTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tracepoint.analysis.growing import ClosedPart
    from tracepoint.analysis.sections import Choice, Section, Value
    from tracepoint.analysis.spans import Hiding
    from tracepoint.decode.column import Column
    from tracepoint.decode.trace import Trace

_KEY = Heading("key", "key", Unit.WORD)
_KEYS = (N, TOTAL, MEAN, P99, MAX, _KEY)
_LONGEST = (Heading("end_cpu", "end cpu", Unit.NUMBER), _KEY)


class LatencySums:
    """The figures of the chosen times; `tasks` are the names of tasks by id."""

    def __init__(self, latencies: LatencyReader, tasks: Mapping[int, str], choice: Choice) -> None:
        self._latencies = latencies
        self._tasks = tasks
        self._choice = choice
        self.all: SampleSums[str] = SampleSums()
        self.by_key: SampleSums[int] = SampleSums()
        self.longest: LongestRows[Sequence[Value]] = LongestRows(choice.most)

    def add(self, part: ClosedPart[LatencyRows]) -> None:
        """Add the times of a part."""
        rows, numbers = part.rows, part.numbers
        flags = self._choice.flags(rows.tid, rows.cpu, self._tasks)
        self.all.add(["all"] * len(part), rows.dur, rows.is_cut, numbers, flags)
        if self._latencies.events.key:
            self.by_key.add(rows.key, rows.dur, rows.is_cut, numbers, flags)

        def shown(at: int) -> tuple[Value, ...]:
            what = rows.end_cpu[at], self._latencies.key_text(rows.key[at])
            return (rows.dur[at], rows.ts[at], rows.cpu[at], *what, task_text(self._tasks, rows.tid[at]))

        self.longest.add(rows.dur, numbers, shown, flags)


class LatencyReport(PartedReport[LatencyRows, LatencySums]):
    """How long from one event to another; `analyse_latency` makes it."""

    name = ANALYSIS

    def __init__(self, latencies: LatencyReader) -> None:
        records = latencies.events.records
        parts = SummedParts(latencies.read, lambda choice: LatencySums(latencies, records.names, choice))
        super().__init__(records.coverage, records.missing, parts)
        self._latencies = latencies
        #: The event where the times begin, and the one where they end, as `system:event`.
        self.events = latencies.events.begin, latencies.events.end

    def __repr__(self) -> str:
        begin, end = self.events
        return f"<LatencyReport of {self._latencies.tally.n:,} times from {begin} to {end}>"

    @property
    def tables(self) -> dict[str, ColumnTable]:
        """The rows of `latency`."""
        return {"latency": self.latency}

    @cached_property
    def latency(self) -> ColumnTable:
        """Each time by its begin: `ts`, `dur` in ns (-1: no end), CPUs and tasks of both ends, and the key.

        `is_cut` says that a loss may hide the end.
        """
        return self.tables_of(lambda: self.parts.all_rows(no_latencies()))["latency"]

    def tables_of(self, rows: Callable[[], LatencyRows]) -> dict[str, ColumnTable]:
        """Return the table `latency` of some times."""
        return {"latency": ColumnTable("latency", lambda: self._columns(rows()))}

    def _columns(self, rows: LatencyRows) -> list[Column]:
        texts = {number: self._latencies.key_text(number) for number in set(rows.key)}
        return [
            *span_columns(rows.ts, rows.dur, rows.cpu),
            number_column("end_cpu", rows.end_cpu, "i", OPEN),
            number_column("tid", rows.tid, "i"),
            number_column("end_tid", rows.end_tid, "i", OPEN),
            names_column("key", map(texts.__getitem__, rows.key)),
            number_column("is_cut", rows.is_cut, "b"),
        ]

    @property
    def _order(self) -> Order:
        return self._latencies.order

    @cached_property
    def _hiding(self) -> Hiding:
        is_sure = self._order is not Order.QUEUE
        return hiding_of(self.coverage, self._latencies.tally.first_cut, is_paired_surely=is_sure)

    def sections(self, choice: Choice = ALL) -> Sequence[Section]:
        """Return the figures of all times, by key, and the longest ones."""
        begin, end = self.events
        sums = self.parts.sums(choice)
        every = sums.all.samples(self._hiding)
        found: list[Section] = [
            DistributionSection("latency_ns", f"From {begin} to {end}", every, events=self.events)
        ]
        if self._latencies.events.key:
            rows = [
                (made.count, made.sum, made.mean, *made.quantiles(0.99, 1.0), self._latencies.key_text(key))
                for key, made in sums.by_key.samples(self._hiding).items()
            ]
            found.append(choice.table("keys", "By key", _KEYS, rows, self.events))
        return [*found, longest_section(sums.longest, choice, _LONGEST, self.events, "begun by")]

    def notes(self) -> Iterator[str]:
        """Yield what limits the figures: losses, begins without an end, ends without a begin."""
        yield from super().notes()
        yield from unpaired_notes(self._latencies.tally, *self.events)
        if self._order is Order.QUEUE and not self.coverage.is_complete:
            yield "after a loss a queue may pair an end with a later begin than its own: no quantiles"


def analyse_latency(trace: Trace, begin: str, end: str, key: str = "", order: str = "last") -> LatencyReport:
    """Return how long it was from each event `begin` to the event `end` that belongs to it.

    They belong together where the fields `key` have the same values, `FIELD[:FIELD]`, each `pid=next_pid`
    where it has another name in the end.  `order` says which of several open begins it is: last, first,
    stack or queue (`Order`).  Raises TracepointError for events and fields that the recording does not have,
    KeyError for an unknown order.

    >>> import tracepoint as tp
    >>> with tp.open_trace("tests/tracefile/golden/cut.v6.dat") as trace:
    ...     analyse_latency(trace, "sched_waking", "sched_switch", "pid=next_pid")
    <LatencyReport of 2 times from sched:sched_waking to sched:sched_switch>
    """
    chosen = Order[order.upper()]
    return LatencyReport(LatencyReader(keyed_events(trace, begin, end, key), chosen))


analyse = analyse_latency
