"""The time from one event to another with the same key: its figures, by key and the longest."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from tracepoint.analysis.chosen import ChosenSpans
from tracepoint.analysis.latency.pairing import ANALYSIS, key_reader, pair_by_key
from tracepoint.analysis.pairs import Order
from tracepoint.analysis.report import ALL, Report
from tracepoint.analysis.sections import MAX, MEAN, P99, TOTAL, DistributionSection, Heading, N, Unit
from tracepoint.analysis.spans import OPEN, span_columns, unpaired_notes
from tracepoint.decode.column import names_column, number_column
from tracepoint.decode.table import ColumnTable
from tracepoint.wording import one_line

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from tracepoint.analysis.latency.needs import KeyField
    from tracepoint.analysis.records import AnalysisRecords
    from tracepoint.analysis.sections import Choice, Section
    from tracepoint.analysis.spans import Spans
    from tracepoint.decode.column import Column
    from tracepoint.decode.trace import Trace

_KEY = Heading("key", "key", Unit.WORD)
_KEYS = (N, TOTAL, MEAN, P99, MAX, _KEY)
_LONGEST = (Heading("end_cpu", "end cpu", Unit.NUMBER), _KEY)


class LatencyReport(Report):
    """How long from one event to another; `analyse_latency` makes it."""

    name = ANALYSIS

    def __init__(
        self,
        records: AnalysisRecords,
        spans: Spans,
        events: tuple[str, str],
        key: Sequence[KeyField],
        order: Order,
    ) -> None:
        super().__init__(records.coverage, records.missing)
        self._records = records
        self._spans = spans
        #: The event where the times begin, and the one where they end, as `system:event`.
        self.events = events
        self._key = key
        self._order = order

    def __repr__(self) -> str:
        begin, end = self.events
        return f"<LatencyReport of {len(self._spans):,} times from {begin} to {end}>"

    @property
    def tables(self) -> dict[str, ColumnTable]:
        """The rows of `latency`."""
        return {"latency": self.latency}

    @cached_property
    def latency(self) -> ColumnTable:
        """Each time by its begin: `ts`, `dur` in ns (-1: no end), CPUs and tasks of both ends, and the key.

        `is_cut` says that a loss may hide the end.
        """
        return ColumnTable("latency", self._columns)

    def _columns(self) -> list[Column]:
        spans, cpus = self._spans, self._records.cpus
        return [
            *span_columns(spans.ts, spans.dur, (cpus[row] for row in spans.begin)),
            number_column("end_cpu", (OPEN if row < 0 else cpus[row] for row in spans.end), "i", OPEN),
            number_column("tid", self._tids, "i"),
            number_column("end_tid", self._end_tids, "i", OPEN),
            names_column("key", map(self._key_text, self._keys)),
            number_column("is_cut", spans.is_cut, "b"),
        ]

    @cached_property
    def _tids(self) -> list[int]:
        """The task that wrote each begin."""
        pids = self._records.column(self.events[0], "common_pid").numbers
        return [pids[row] for row in self._spans.begin]

    @property
    def _end_tids(self) -> Iterator[int]:
        """The task that wrote each end, OPEN where there is none."""
        pids = self._records.column(self.events[1], "common_pid").numbers
        return (OPEN if row < 0 else pids[row] for row in self._spans.end)

    @cached_property
    def _keys(self) -> list[Hashable]:
        """The key of each time."""
        begin_key = key_reader(self._records, self.events[0], [field.begin for field in self._key])
        return [begin_key(row) for row in self._spans.begin]

    def _key_text(self, key: Hashable) -> str:
        values = key if isinstance(key, tuple) else (key,)
        named = zip(self._key, values, strict=False)
        return " ".join(f"{field.begin}={one_line(str(value))}" for field, value in named) or "all"

    def sections(self, choice: Choice = ALL) -> Sequence[Section]:
        """Return the figures of all times, by key, and the longest ones."""
        is_sure = self._order is not Order.QUEUE
        chosen = ChosenSpans(self._records, self._spans, self._tids, choice, is_paired_surely=is_sure)
        begin, end = self.events
        every = chosen.samples(["all"] * len(self._spans))
        found: list[Section] = [
            DistributionSection("latency_ns", f"From {begin} to {end}", every, events=self.events)
        ]
        if self._key:
            rows = [
                (made.count, made.sum, made.mean, *made.quantiles(0.99, 1.0), self._key_text(key))
                for key, made in chosen.samples(self._keys).items()
            ]
            found.append(choice.table("keys", "By key", _KEYS, rows, self.events))
        return [*found, chosen.longest_section(_LONGEST, self._details, self.events, "begun by")]

    def _details(self, at: int) -> tuple[int, str]:
        return self._records.cpus[self._spans.end[at]], self._key_text(self._keys[at])

    def notes(self) -> Iterator[str]:
        """Yield what limits the figures: losses, begins without an end, ends without a begin."""
        yield from super().notes()
        yield from unpaired_notes(self._spans.counts, *self.events)
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
    records, spans, events, fields = pair_by_key(trace, begin, end, key, chosen)
    return LatencyReport(records, spans, events, fields, chosen)


analyse = analyse_latency
