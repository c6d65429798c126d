"""The page faults of a trace, and the figures that people ask for first."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from tracepoint.analysis.faults.build import FaultReader
from tracepoint.analysis.faults.machine import FaultOutcome, FaultRows, no_faults
from tracepoint.analysis.faults.sections import (
    kind_section,
    latency_section,
    outcome_section,
    place_section,
    process_section,
    region_section,
    task_section,
)
from tracepoint.analysis.faults.sums import FaultSums
from tracepoint.analysis.grouping import ChosenFigures
from tracepoint.analysis.parts import PartedReport, SummedParts
from tracepoint.analysis.report import ALL
from tracepoint.analysis.sections import Choice
from tracepoint.analysis.spans import span_columns
from tracepoint.decode.column import number_column, text_column
from tracepoint.decode.table import ColumnTable
from tracepoint.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tracepoint.analysis.distribution import Samples
    from tracepoint.analysis.sections import Section
    from tracepoint.decode.column import Column
    from tracepoint.decode.trace import Trace


class FaultReport(PartedReport[FaultRows, FaultSums]):
    """The page faults of a trace; `analyse_faults` makes it.

    `page_fault` is a table with a row for each; `dur` is -1 where its end was not recorded.
    """

    name = "faults"

    def __init__(self, reader: FaultReader) -> None:
        self._reader = reader
        records = self.records = reader.records
        parts = SummedParts(reader.read, lambda choice: FaultSums(reader, choice))
        super().__init__(records.coverage, records.missing, parts)
        #: Counts of what was found, and the regions of faults.
        self.machine = reader.machine
        #: The events that say how faults ended.
        self.ends = reader.ends
        #: Whether mappings were recorded.
        self.has_mappings = bool({"syscalls:sys_exit_mmap", "syscalls:sys_exit_brk"} & records.recorded)
        #: Whether it was recorded which tasks read blocks and waited.
        self.has_waits = {"sched:sched_switch", "raw_syscalls:sys_enter"} <= records.recorded and any(
            name.startswith("block:") for name in records.recorded
        )
        self._has_copies = any(map(self._copies, records.trace.events))

    def __repr__(self) -> str:
        return f"<FaultReport of {self.machine.n:,} page faults, {self.coverage.duration / 1e9:.6f} s>"

    @property
    def tables(self) -> dict[str, ColumnTable]:
        """The rows of `page_fault`."""
        return {"page_fault": self.page_fault}

    @cached_property
    def page_fault(self) -> ColumnTable:
        """The page faults by time; `process` is the task where its process was not recorded."""
        return self.tables_of(lambda: self.parts.all_rows(no_faults()))["page_fault"]

    def tables_of(self, rows: Callable[[], FaultRows]) -> dict[str, ColumnTable]:
        """Return the table `page_fault` of some faults."""
        return {"page_fault": ColumnTable("page_fault", lambda: self._columns(rows()))}

    def _columns(self, rows: FaultRows) -> list[Column]:
        names = [outcome.name.lower().encode() for outcome in FaultOutcome]
        return [
            *span_columns(rows.ts, rows.dur, rows.cpu, rows.tid),
            number_column("process", self.machine.processes_of(rows.tid), "i"),
            number_column("address", rows.address, "Q"),
            number_column("ip", rows.ip, "Q"),
            number_column("error_code", rows.code, "Q"),
            number_column("is_kernel", rows.is_kernel, "b"),
            text_column("outcome", rows.outcome, names),
        ]

    def latency(self, *outcomes: FaultOutcome) -> Samples:
        """Return how long faults took in ns, of all or of some outcomes."""
        return self._latency(self.parts.sums(Choice()), *outcomes)

    def _latency(self, sums: FaultSums, *outcomes: FaultOutcome) -> Samples:
        return sums.times.joined(self.machine.cut.hiding(self.coverage), outcomes)

    def sections(self, choice: Choice = ALL) -> Sequence[Section]:
        """Return the faults by kind, outcome, task, process, region and instruction, and their times."""
        sums, regions = self.parts.figures(choice), self.machine.known_regions
        figures = ChosenFigures(self.records, choice)
        times = {outcome.name.lower(): self._latency(sums, outcome) for outcome in FaultOutcome if outcome}
        times["all"] = self._latency(sums)
        return (
            kind_section(figures, sums, regions),
            outcome_section(figures, sums, self.ends, has_waits=self.has_waits),
            task_section(figures, sums, has_ends=bool(self.ends)),
            process_section(figures, sums),
            region_section(figures, sums, regions, has_mappings=self.has_mappings),
            place_section(figures, sums),
            latency_section(times, self.ends),
        )

    def notes(self) -> Iterator[str]:
        """Yield what limits the figures: losses, missing events, faults of a recorder."""
        yield from super().notes()
        machine = self.machine
        if own := self._reader.n_by_recorders:
            n = sum(own.values())
            yield f"{counted(n, 'fault')} of {', '.join(map(self.records.task, own))}, which recorded"
        if machine.n_without_trap:
            calls = counted(machine.n_without_trap, "fault")
            yield f"{calls} of get_user_pages() have no trap: only the kernel's counters have them"
        if machine.n_orphans:
            yield f"{counted(machine.n_orphans, 'end')} of faults without their begin"
        if self._has_copies:
            yield "events of system calls copied strings of programs: some faults of tasks are made by that"

    def _copies(self, event: str) -> bool:
        """Whether an event of a system call reads memory of the program (kernel/trace/trace_syscalls.c)."""
        trace = self.records.trace
        if not event.startswith("syscalls:sys_enter_") or event not in trace:
            return False
        names = [field.name for field in trace.format(event).fields]
        return any(name.startswith("__") and name.endswith("_val") for name in names)


def analyse_faults(trace: Trace) -> FaultReport:
    """Return the page faults of a trace; raises TracepointError without exceptions:page_fault_user.

    Times are those of `trace.between`; the records of all tasks and CPUs are needed.

    >>> import tracepoint as tp
    >>> with tp.open_trace("tests/tracefile/golden/cut.v6.dat") as trace:
    ...     report = analyse_faults(trace)
    >>> report
    <FaultReport of 27 page faults, 0.097791 s>
    """
    return FaultReport(FaultReader(trace))


analyse = analyse_faults
