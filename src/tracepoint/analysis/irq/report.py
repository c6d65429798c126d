"""The interrupts of a trace, the softirqs, timers and work that they defer, and how late those ran."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from tracepoint.analysis.irq.build import (
    DUE,
    FUNCTIONS,
    HARD,
    KINDS,
    QUEUED,
    RAISED,
    SOFT,
    TIMER_DUE,
    IrqReader,
)
from tracepoint.analysis.irq.needs import NEEDS
from tracepoint.analysis.irq.rows import IrqRows, no_irqs
from tracepoint.analysis.irq.sections import (
    SOFT_EVENTS,
    TIMER_EVENTS,
    WORK_EVENTS,
    cpu_section,
    function_section,
    irq_section,
    task_section,
)
from tracepoint.analysis.irq.sums import IrqSums
from tracepoint.analysis.irq.tables import irq_tables, wait_table
from tracepoint.analysis.parts import PartedReport, SummedParts
from tracepoint.analysis.records import AnalysisRecords
from tracepoint.analysis.report import ALL
from tracepoint.analysis.sections import Choice, DistributionSection, Unit
from tracepoint.analysis.spans import hiding_of, unpaired_notes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tracepoint.analysis.distribution import Samples
    from tracepoint.analysis.sections import Section
    from tracepoint.decode.table import ColumnTable
    from tracepoint.decode.trace import Trace

_WAITS = {"softirq_wait": RAISED, "work_wait": QUEUED}


class IrqReport(PartedReport[IrqRows, IrqSums]):
    """Interrupts, softirqs and what they defer; `analyse_irq` makes it.

    `linux_irqs`, `linux_hard_irqs` and `linux_soft_irqs` are tables with the columns that Perfetto's SQL
    library gives them, the CPU, and `net_dur`, the time without interrupts.
    """

    name = "irq"

    def __init__(self, records: AnalysisRecords, irqs: IrqReader) -> None:
        self._irqs = irqs
        parts = SummedParts(irqs.read, lambda choice: IrqSums(records.names, choice))
        super().__init__(records.coverage, records.missing, parts)

    def __repr__(self) -> str:
        n = sum(self._irqs.tallies[kind].n for kind in (*self._hard_kinds, SOFT) if kind in self._irqs.kinds)
        return f"<IrqReport of {n:,} interrupts and softirqs>"

    @cached_property
    def tables(self) -> Mapping[str, ColumnTable]:
        """The rows of `linux_irqs`, `linux_hard_irqs`, `linux_soft_irqs`, `softirq_wait`, `work_wait`."""
        return self.tables_of(lambda: self._all_rows)

    @cached_property
    def _all_rows(self) -> IrqRows:
        return self.parts.all_rows(no_irqs())

    def tables_of(self, rows: Callable[[], IrqRows]) -> dict[str, ColumnTable]:
        """Return the tables of some rows."""
        names = self._irqs.names
        waits = [
            wait_table(name, rows, kind, names) for name, kind in _WAITS.items() if kind in self._irqs.kinds
        ]
        return {table.name: table for table in (*irq_tables(rows, names), *waits)}

    @property
    def _hard_kinds(self) -> list[str]:
        return [kind for kind in self._irqs.kinds if kind == HARD or not KINDS[kind].field]

    def irqs(self, choice: Choice = ALL) -> Mapping[str, Samples]:
        """Return how long interrupts took in ns, by line and name or by vector."""
        return self._samples(self._hard_kinds, choice)

    def softirqs(self, choice: Choice = ALL) -> Mapping[str, Samples]:
        """Return how long softirqs took in ns, by name, with the interrupts in them."""
        return self._samples([SOFT], choice)

    def _samples(self, kinds: Sequence[str], choice: Choice) -> Mapping[str, Samples]:
        sums = self.parts.figures(choice)
        found: dict[str, Samples] = {}
        for kind in kinds:
            found |= self._times(sums, kind)
        return dict(sorted(found.items(), key=lambda item: -item[1].total))

    def _times(self, sums: IrqSums, kind: str) -> dict[str, Samples]:
        """Return the times of a kind by name, those with most time first."""
        tally = self._irqs.tallies.get(kind)
        if tally is None:
            return {}
        samples, names = sums.times[kind].samples(hiding_of(self.coverage, tally.first_cut)), self._irqs.names
        return {names[what]: made for what, made in samples.items()}

    @property
    def raise_latency(self) -> Mapping[str, Samples]:
        """How long softirqs waited in ns from their first raise, by name."""
        return self._times(self.parts.sums(Choice()), RAISED)

    @property
    def work_latency(self) -> Mapping[str, Samples]:
        """How long work waited in ns from when it was queued, by workqueue."""
        return self._times(self.parts.sums(Choice()), QUEUED)

    @property
    def lateness(self) -> Samples:
        """How much later than due high resolution timers expired, in ns."""
        return self._late(DUE)

    @property
    def lateness_ticks(self) -> Samples:
        """How much later than due timers of the wheel expired, in ticks of the kernel (jiffies)."""
        return self._late(TIMER_DUE)

    def _late(self, kind: str) -> Samples:
        # A timer may have been due long before the recording.
        hiding = hiding_of(self.coverage)._replace(longest=None)
        found = self.parts.sums(Choice()).late[kind].samples(hiding).get(kind)
        tally = self._irqs.tallies.get(kind)
        return hiding.samples((), tally.n_cut if tally is not None else 0) if found is None else found

    def sections(self, choice: Choice = ALL) -> Sequence[Section]:
        """Return the time of interrupts by CPU, task and name, and how long what they defer waited."""
        sums = self.parts.figures(choice)
        net: dict[str, int] = {}
        names = self._irqs.names
        for what, ns in sums.net.items():
            name = names[what]
            net[name] = net.get(name, 0) + ns
        waits = ("raise_latency_ns", "Softirqs, from raise to entry", self.raise_latency, "softirq")
        late = {"hrtimer": self.lateness} if len(self.lateness) else {}
        ticks = {"timer": self.lateness_ticks} if len(self.lateness_ticks) else {}
        found: list[Section] = [
            cpu_section(sums, self.coverage.duration, choice),
            irq_section("hard_irqs", "Interrupts", self.irqs(choice), net, choice),
            irq_section("soft_irqs", "Softirqs", self.softirqs(choice), net, choice),
            task_section(sums, choice),
        ]
        late_sections: list[Section] = [
            DistributionSection(*waits, events=SOFT_EVENTS),
            DistributionSection("late_ns", "Timers, later than due", late, events=TIMER_EVENTS),
            DistributionSection(
                "late_ticks", "Timers, ticks later than due", ticks, "", Unit.COUNT, TIMER_EVENTS
            ),
            DistributionSection(
                "work_latency_ns",
                "Work, from queue to start",
                self.work_latency,
                "workqueue",
                events=WORK_EVENTS,
            ),
            function_section(self._functions(), choice),
        ]
        return [*found, *(choice.whole(section) for section in late_sections)]

    def _functions(self) -> Mapping[tuple[str, str], Samples]:
        sums = self.parts.sums(Choice())
        return {(kind, name): made for kind in FUNCTIONS for name, made in self._times(sums, kind).items()}

    def notes(self) -> Iterator[str]:
        """Yield what limits the figures: losses, begins without an end and ends without a begin."""
        yield from super().notes()
        for kind, tally in self._irqs.tallies.items():
            if kind not in (DUE, TIMER_DUE, QUEUED, RAISED):
                yield from unpaired_notes(tally, KINDS[kind].begin, KINDS[kind].end)


def analyse_irq(trace: Trace) -> IrqReport:
    """Return the interrupts of a trace, softirqs, timers and work.

    Raises TracepointError when none of them were recorded.

    >>> import tracepoint as tp
    >>> with tp.open_trace("tests/tracefile/golden/cut.v6.dat") as trace:
    ...     analyse_irq(trace)
    <IrqReport of 22 interrupts and softirqs>
    """
    records = AnalysisRecords(trace, IrqReport.name, NEEDS)
    return IrqReport(records, IrqReader(records))


analyse = analyse_irq
