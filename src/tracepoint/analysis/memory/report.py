"""The allocations of the kernel in a trace, by who made them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from tracepoint.analysis.grouping import Grouping
from tracepoint.analysis.memory.build import KINDS, read_memory
from tracepoint.analysis.memory.machine import OPEN
from tracepoint.analysis.memory.needs import NEEDS
from tracepoint.analysis.report import ALL, Report
from tracepoint.analysis.sections import TASK, DistributionSection, Heading, N, Unit
from tracepoint.analysis.spans import samples_of, span_columns
from tracepoint.decode.column import number_column, text_column
from tracepoint.decode.table import ColumnTable
from tracepoint.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tracepoint.analysis.distribution import Distribution
    from tracepoint.analysis.memory.machine import MemoryMachine
    from tracepoint.analysis.records import AnalysisRecords
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


class MemoryReport(Report):
    """The allocations of the kernel in a trace; `analyse_memory` makes it.

    `allocation` is a table with a row for each; `dur` is -1 where its end was not recorded.
    """

    name = "memory"

    def __init__(self, records: AnalysisRecords, machine: MemoryMachine) -> None:
        super().__init__(records.coverage, records.missing)
        self.records = records
        self.machine = machine

    def __repr__(self) -> str:
        return f"<MemoryReport of {len(self.machine.ts):,} allocations, {len(self.not_freed):,} not freed>"

    @cached_property
    def not_freed(self) -> list[int]:
        """The allocations that nothing freed while it was recorded."""
        return sorted({*self.machine.opens} - {*self.machine.reused})

    @property
    def tables(self) -> dict[str, ColumnTable]:
        """The rows of `allocation`."""
        return {"allocation": self.allocation}

    @cached_property
    def allocation(self) -> ColumnTable:
        """The allocations by time; `call_site` is 0 for pages."""
        rows = self.machine

        def columns() -> list[Column]:
            return [
                *span_columns(rows.ts, rows.dur, rows.cpu, rows.tid),
                text_column("kind", rows.kind, [kind.encode() for kind in KINDS]),
                number_column("call_site", rows.site, "Q"),
                number_column("bytes_req", rows.asked, "Q"),
                number_column("bytes_alloc", rows.size, "Q"),
            ]

        return ColumnTable("allocation", columns)

    def sections(self, choice: Choice = ALL) -> Sequence[Section]:
        """Return the allocations by caller and by task, and how long they lived."""
        machine, records = self.machine, self.records
        group = Grouping(records, choice, machine.tid, machine.cpu)
        sites = [
            (*figures, kind, records.function(site) or "-", site)
            for (kind, site), figures in self._figures(
                group, lambda row: (KINDS[machine.kind[row]], machine.site[row])
            )
        ]
        tasks = [
            (*figures, kind, records.task(tid), tid)
            for (kind, tid), figures in self._figures(
                group, lambda row: (KINDS[machine.kind[row]], machine.tid[row])
            )
        ]
        return (
            choice.table("sites", "Callers", _SITES, sites, _EVENTS),
            choice.table("tasks", "Tasks", _TASKS, tasks, _EVENTS),
            DistributionSection(
                "lifetime_ns", "Time until it was freed", self._lifetimes(group), "by", events=_EVENTS
            ),
        )

    def _lifetimes(self, group: Grouping) -> dict[str, Distribution]:
        machine = self.machine
        cut = [machine.ts[row] for row in machine.cut]
        values: list[list[int]] = [[] for _ in KINDS]
        for row in group.rows:
            if machine.dur[row] != OPEN:
                values[machine.kind[row]].append(machine.dur[row])
        return {kind: samples_of(own, self.coverage, cut) for kind, own in zip(KINDS, values, strict=True)}

    def _figures(
        self, group: Grouping, key: Callable[[int], tuple[str, int]]
    ) -> list[tuple[tuple[str, int], tuple[Value, ...]]]:
        """Return the counts and sizes of each key, what has most that was not freed first."""
        machine, is_open = self.machine, self._is_open
        sums: dict[tuple[str, int], list[int]] = {}
        for row in group.rows:
            own = sums.setdefault(key(row), [0, 0, 0, 0, 0, 0])
            size = machine.size[row]
            own[0] += 1
            own[1] += machine.asked[row]
            own[2] += size
            if is_open[row]:
                own[3] += 1
                own[4] += size
            elif row in machine.cut:
                own[5] += 1
        order = sorted(sums.items(), key=lambda one: (-one[1][4], -one[1][2], one[0]))
        least = group.at_least
        return [
            (found, (group.bound(n), least(asked), least(given), group.bound(n_open, n_cut), least(size)))
            for found, (n, asked, given, n_open, size, n_cut) in order
        ]

    @cached_property
    def _is_open(self) -> bytearray:
        found = bytearray(len(self.machine.ts))
        for row in self.not_freed:
            found[row] = 1
        return found

    def notes(self) -> Iterator[str]:
        """Yield what limits the figures: losses, and what frees memory without an event."""
        yield from super().notes()
        machine = self.machine
        if machine.reused:
            n = counted(len(machine.reused), "allocation")
            yield f"{n} had addresses that were given out again: freed without an event, as by a bulk free"
        if machine.cut:
            yield f"{counted(len(machine.cut), 'allocation')} may have been freed in a loss"
        if machine.n_orphans:
            yield f"{machine.n_orphans:,} were freed that were allocated before, in bulk, or in a loss"
        if machine.n_parts:
            yield f"{counted(machine.n_parts, 'block')} of pages were freed in parts"
        if machine.n_failed:
            yield f"{counted(machine.n_failed, 'allocation')} failed"


def analyse_memory(trace: Trace) -> MemoryReport:
    """Return the allocations of the kernel in a trace; raises TracepointError without any event of them.

    Times are those of `trace.between`; the records of all tasks and CPUs are needed.

    >>> import tracepoint as tp
    >>> with tp.open_trace("tests/tracefile/golden/cut.v6.dat") as trace:
    ...     analyse_memory(trace)
    <MemoryReport of 120 allocations, 84 not freed>
    """
    return MemoryReport(*read_memory(trace))


analyse = analyse_memory
