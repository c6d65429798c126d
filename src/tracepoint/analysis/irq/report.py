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
    read_irqs,
)
from tracepoint.analysis.irq.needs import NEEDS
from tracepoint.analysis.irq.sections import (
    SOFT_EVENTS,
    TIMER_EVENTS,
    WORK_EVENTS,
    cpu_section,
    function_section,
    irq_section,
    task_section,
)
from tracepoint.analysis.irq.tables import irq_table, net_by, wait_table
from tracepoint.analysis.records import AnalysisRecords
from tracepoint.analysis.report import ALL, Report
from tracepoint.analysis.sections import DistributionSection, Unit
from tracepoint.analysis.spans import hiding_of, unpaired_notes
from tracepoint.analysis.sums import samples_by

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tracepoint.analysis.distribution import Distribution, Samples
    from tracepoint.analysis.irq.build import IrqWork
    from tracepoint.analysis.sections import Choice, Section
    from tracepoint.decode.table import ColumnTable
    from tracepoint.decode.trace import Trace


class IrqReport(Report):
    """Interrupts, softirqs and what they defer; `analyse_irq` makes it.

    `linux_irqs`, `linux_hard_irqs` and `linux_soft_irqs` are tables with the columns that Perfetto's SQL
    library gives them, the CPU, and `net_dur`, the time without interrupts.
    """

    name = "irq"

    def __init__(self, records: AnalysisRecords, work: IrqWork) -> None:
        super().__init__(records.coverage, records.missing)
        self._records = records
        self._work = work

    def __repr__(self) -> str:
        return f"<IrqReport of {len(self._work.names):,} interrupts and softirqs>"

    @cached_property
    def tables(self) -> Mapping[str, ColumnTable]:
        """The rows of `linux_irqs`, `linux_hard_irqs`, `linux_soft_irqs`, `softirq_wait`, `work_wait`."""
        work = self._work
        found = [
            irq_table("linux_irqs", work, lambda _kind: True),
            irq_table("linux_hard_irqs", work, lambda kind: kind != SOFT),
            irq_table("linux_soft_irqs", work, lambda kind: kind == SOFT),
        ]
        for name, kind, words in (
            ("softirq_wait", RAISED, self._raised),
            ("work_wait", QUEUED, work.workqueues),
        ):
            if kind in work.spans:
                spans = work.spans[kind]
                found.append(wait_table(name, spans.ts, spans.dur, words))
        return {table.name: table for table in found}

    def irqs(self, choice: Choice = ALL) -> Mapping[str, Samples]:
        """Return how long interrupts took in ns, by line and name or by vector."""
        return self._samples(
            [kind for kind in self._work.spans if kind == HARD or not KINDS[kind].field], choice
        )

    def softirqs(self, choice: Choice = ALL) -> Mapping[str, Samples]:
        """Return how long softirqs took in ns, by name, with the interrupts in them."""
        return self._samples([SOFT], choice)

    def _samples(self, kinds: Sequence[str], choice: Choice) -> Mapping[str, Samples]:
        work = self._work
        found: dict[str, Samples] = {}
        chosen = self._chosen(choice)
        for kind in kinds:
            own = [at for at, of_row in enumerate(work.irqs.kind) if of_row == kind]
            names = [work.names[at] for at in own]
            found |= samples_by(work.spans[kind], names, self.coverage, [chosen[at] for at in own])
        return dict(sorted(found.items(), key=lambda item: -item[1].total))

    def _chosen(self, choice: Choice) -> list[bool]:
        return choice.chosen(self._tids, self._work.irqs.cpu, self._records.names)

    @cached_property
    def _tids(self) -> list[int]:
        """The task that each interrupt or softirq interrupted."""
        irqs, records = self._work.irqs, self._records
        pids = {
            kind: records.column(KINDS[kind].begin, "common_pid").numbers for kind in dict.fromkeys(irqs.kind)
        }
        return [pids[kind][row] for kind, row in zip(irqs.kind, irqs.row, strict=True)]

    @property
    def raise_latency(self) -> Mapping[str, Samples]:
        """How long softirqs waited in ns from their first raise, by name."""
        spans = self._work.spans.get(RAISED)
        return {} if spans is None else samples_by(spans, self._raised, self.coverage)

    @cached_property
    def _raised(self) -> list[str]:
        spans = self._work.spans.get(RAISED)
        if spans is None:
            return []
        numbers = self._records.column(KINDS[RAISED].begin, "vec").numbers
        return [self._work.softirq_names[numbers[row]] for row in spans.begin]

    @property
    def work_latency(self) -> Mapping[str, Samples]:
        """How long work waited in ns from when it was queued, by workqueue."""
        spans = self._work.spans.get(QUEUED)
        return {} if spans is None else samples_by(spans, self._work.workqueues, self.coverage)

    @property
    def lateness(self) -> Distribution:
        """How much later than due high resolution timers expired, in ns."""
        return self._late(self._work.late_ns, DUE)

    @property
    def lateness_ticks(self) -> Distribution:
        """How much later than due timers of the wheel expired, in ticks of the kernel (jiffies)."""
        return self._late(self._work.late_ticks, TIMER_DUE)

    def _late(self, values: Sequence[int], kind: str) -> Distribution:
        spans = self._work.spans.get(kind)
        # A timer may have been due long before the recording.
        hiding = hiding_of(self.coverage)._replace(longest=None)
        return hiding.samples(values, sum(spans.is_cut) if spans is not None else 0)

    def sections(self, choice: Choice = ALL) -> Sequence[Section]:
        """Return the time of interrupts by CPU, task and name, and how long what they defer waited."""
        work, records = self._work, self._records
        chosen = self._chosen(choice)
        net = net_by(work.irqs, work.names, chosen)
        waits = ("raise_latency_ns", "Softirqs, from raise to entry", self.raise_latency, "softirq")
        late = {"hrtimer": self.lateness} if work.late_ns else {}
        ticks = {"timer": self.lateness_ticks} if work.late_ticks else {}
        found: list[Section] = [
            cpu_section(work.irqs, chosen, self.coverage.duration, choice),
            irq_section("hard_irqs", "Interrupts", self.irqs(choice), net, choice),
            irq_section("soft_irqs", "Softirqs", self.softirqs(choice), net, choice),
            task_section(work.irqs, self._tids, records.names, chosen, choice),
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
        found: dict[tuple[str, str], Samples] = {}
        for kind, (event, field) in FUNCTIONS.items():
            spans = self._work.spans.get(kind)
            if spans is not None:
                numbers = self._records.column(event, field).numbers
                names = [(kind, self._work.functions[numbers[row]]) for row in spans.begin]
                found |= samples_by(spans, names, self.coverage)
        return found

    def notes(self) -> Iterator[str]:
        """Yield what limits the figures: losses, begins without an end and ends without a begin."""
        yield from super().notes()
        for kind, spans in self._work.spans.items():
            if kind not in (DUE, TIMER_DUE, QUEUED, RAISED):
                yield from unpaired_notes(spans.counts, KINDS[kind].begin, KINDS[kind].end)


def analyse_irq(trace: Trace) -> IrqReport:
    """Return the interrupts of a trace, softirqs, timers and work.

    Raises TracepointError when none of them were recorded.

    >>> import tracepoint as tp
    >>> with tp.open_trace("tests/tracefile/golden/cut.v6.dat") as trace:
    ...     analyse_irq(trace)
    <IrqReport of 22 interrupts and softirqs>
    """
    records = AnalysisRecords(trace, IrqReport.name, NEEDS)
    return IrqReport(records, read_irqs(records))


analyse = analyse_irq
