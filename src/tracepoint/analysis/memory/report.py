"""The allocations of the kernel in a trace, by who made them."""

from __future__ import annotations

from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING

from tracepoint.analysis.memory.build import KINDS, AllocationReader
from tracepoint.analysis.memory.machine import AllocationRows, Fate, no_allocations
from tracepoint.analysis.memory.needs import NEEDS
from tracepoint.analysis.memory.sums import AllocationSums
from tracepoint.analysis.parts import PartedReport, SummedParts
from tracepoint.analysis.records import AnalysisRecords
from tracepoint.analysis.report import ALL
from tracepoint.analysis.sections import TASK, DistributionSection, Heading, N, Unit
from tracepoint.analysis.spans import span_columns
from tracepoint.decode.column import number_column, text_column
from tracepoint.decode.table import ColumnTable
from tracepoint.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tracepoint.analysis.distribution import Samples
    from tracepoint.analysis.memory.sums import AllocationSum, Of
    from tracepoint.analysis.sections import Choice, Section, Value
    from tracepoint.decode.column import Column
    from tracepoint.decode.trace import Trace

_FIGURES = (
    N, Heading("asked", "asked", Unit.SIZE), Heading("given", "given", Unit.SIZE),
    Heading("n_open", "not freed"), Heading("open_bytes", "size", Unit.SIZE),
    Heading("kind", "by", Unit.WORD),
)  # fmt: skip
_SITES = (*_FIGURES, Heading("function", "caller", Unit.WORD), Heading("site", "", Unit.ADDRESS))
_TASKS = (*_FIGURES, *TASK)
_EVENTS = tuple(name for need in NEEDS for name in need.names)


class MemoryReport(PartedReport[AllocationRows, AllocationSums]):
    """The allocations of the kernel in a trace; `analyse_memory` makes it.

    `allocation` is a table with a row for each; `dur` is -1 where its end was not recorded.
    """

    name = "memory"

    def __init__(self, records: AnalysisRecords, reader: AllocationReader) -> None:
        self.records = records
        self._reader = reader
        parts = SummedParts(reader.read, lambda choice: AllocationSums(records.names, choice))
        super().__init__(records.coverage, records.missing, parts)
        #: Counts of what was found.
        self.machine = reader.machine

    def __repr__(self) -> str:
        n, n_open = self.machine.n, self.machine.n_of[Fate.KEPT]
        return f"<MemoryReport of {n:,} allocations, {n_open:,} not freed>"

    @cached_property
    def not_freed(self) -> list[int]:
        """The rows of allocations that nothing freed while it was recorded."""
        found: list[int] = []
        self.parts.give(
            lambda part: found.extend(compress(part.numbers, map(Fate.KEPT.__eq__, part.rows.fate)))
        )
        return sorted(found)

    @property
    def tables(self) -> dict[str, ColumnTable]:
        """The rows of `allocation`."""
        return {"allocation": self.allocation}

    @cached_property
    def allocation(self) -> ColumnTable:
        """The allocations by time; `call_site` is 0 for pages."""
        return self.tables_of(lambda: self.parts.all_rows(no_allocations()))["allocation"]

    def tables_of(self, rows: Callable[[], AllocationRows]) -> dict[str, ColumnTable]:
        """Return the table `allocation` of some allocations."""
        return {"allocation": ColumnTable("allocation", lambda: _columns(rows()))}

    def sections(self, choice: Choice = ALL) -> Sequence[Section]:
        """Return the allocations by caller and by task, and how long they lived."""
        sums, records = self.parts.figures(choice), self.records
        sites = [
            (*figures, kind, records.function(site) or "-", site)
            for (kind, site), figures in self._figures(sums.sites)
        ]
        tasks = [
            (*figures, kind, records.task(tid), tid) for (kind, tid), figures in self._figures(sums.tasks)
        ]
        return (
            choice.table("sites", "Callers", _SITES, sites, _EVENTS),
            choice.table("tasks", "Tasks", _TASKS, tasks, _EVENTS),
            DistributionSection(
                "lifetime_ns", "Time until it was freed", self._lifetimes(sums), "by", events=_EVENTS
            ),
        )

    def _lifetimes(self, sums: AllocationSums) -> dict[str, Samples]:
        hiding = self.machine.cut.hiding(self.coverage)
        found = sums.lifetimes.samples(hiding)
        return {name: found.get(kind) or hiding.samples(()) for kind, name in enumerate(KINDS)}

    def _figures(self, sums: Mapping[Of, AllocationSum]) -> list[tuple[tuple[str, int], tuple[Value, ...]]]:
        """Return the counts and sizes of each key, what has most that was not freed first."""
        named = [((KINDS[kind], of), own) for (kind, of), own in sums.items()]
        named.sort(key=lambda one: (-one[1].open_bytes, -one[1].given, one[0]))
        bound, least = self.coverage.bound, self.coverage.at_least
        return [
            (
                key,
                (
                    bound(own.n), least(own.asked), least(own.given), bound(own.n_open, own.n_cut),
                    least(own.open_bytes),
                ),
            )
            for key, own in named
        ]  # fmt: skip

    def notes(self) -> Iterator[str]:
        """Yield what limits the figures: losses, and what frees memory without an event."""
        yield from super().notes()
        machine = self.machine
        if n_reused := machine.n_of[Fate.REUSED]:
            n = counted(n_reused, "allocation")
            yield f"{n} had addresses that were given out again: freed without an event, as by a bulk free"
        if n_cut := machine.n_of[Fate.CUT]:
            yield f"{counted(n_cut, 'allocation')} may have been freed in a loss"
        if machine.n_orphans:
            yield f"{machine.n_orphans:,} were freed that were allocated before, in bulk, or in a loss"
        if machine.n_parts:
            yield f"{counted(machine.n_parts, 'block')} of pages were freed in parts"
        if machine.n_failed:
            yield f"{counted(machine.n_failed, 'allocation')} failed"


def _columns(rows: AllocationRows) -> list[Column]:
    return [
        *span_columns(rows.ts, rows.dur, rows.cpu, rows.tid),
        text_column("kind", rows.kind, [kind.encode() for kind in KINDS]),
        number_column("call_site", rows.site, "Q"),
        number_column("bytes_req", rows.asked, "Q"),
        number_column("bytes_alloc", rows.size, "Q"),
    ]


def analyse_memory(trace: Trace) -> MemoryReport:
    """Return the allocations of the kernel in a trace; raises TracepointError without any event of them.

    Times are those of `trace.between`; the records of all tasks and CPUs are needed.

    >>> import tracepoint as tp
    >>> with tp.open_trace("tests/tracefile/golden/cut.v6.dat") as trace:
    ...     analyse_memory(trace)
    <MemoryReport of 120 allocations, 84 not freed>
    """
    records = AnalysisRecords(trace, MemoryReport.name, NEEDS)
    return MemoryReport(records, AllocationReader(records))


analyse = analyse_memory
