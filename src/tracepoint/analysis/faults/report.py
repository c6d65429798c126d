"""The page faults of a trace, and the figures that people ask for first."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING

from tracepoint.analysis.faults.build import read_faults
from tracepoint.analysis.faults.machine import OPEN, FaultOutcome
from tracepoint.analysis.faults.sections import (
    FaultCounts,
    kind_section,
    latency_section,
    outcome_section,
    place_section,
    process_section,
    region_section,
    task_section,
)
from tracepoint.analysis.grouping import Grouping
from tracepoint.analysis.report import ALL, Report
from tracepoint.analysis.spans import samples_of, span_columns
from tracepoint.decode.column import number_column, text_column
from tracepoint.decode.table import ColumnTable
from tracepoint.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracepoint.analysis.distribution import Distribution
    from tracepoint.analysis.faults.machine import FaultMachine
    from tracepoint.analysis.records import AnalysisRecords
    from tracepoint.analysis.sections import Choice, Section
    from tracepoint.decode.column import Column
    from tracepoint.decode.trace import Trace

# The names that recorders run under.
_RECORDERS = frozenset(("tracepoint", "trace-cmd", "perf", "lttng-consumerd", "bpftrace"))


class FaultReport(Report):
    """The page faults of a trace; `analyse_faults` makes it.

    `page_fault` is a table with a row for each; `dur` is -1 where its end was not recorded.
    """

    name = "faults"

    def __init__(self, records: AnalysisRecords, machine: FaultMachine, ends: Sequence[str]) -> None:
        super().__init__(records.coverage, records.missing)
        self.records = records
        self.machine = machine
        #: The events that say how faults ended.
        self.ends = ends
        # Looked up now: a report is used after its recording was closed.
        for ip in set(machine.ip):
            records.function(ip)
        #: Whether mappings were recorded.
        self.has_mappings = bool({"syscalls:sys_exit_mmap", "syscalls:sys_exit_brk"} & records.recorded)
        #: Whether it was recorded which tasks read blocks and waited.
        self.has_waits = {"sched:sched_switch", "raw_syscalls:sys_enter"} <= records.recorded and any(
            name.startswith("block:") for name in records.recorded
        )
        self._has_copies = any(map(self._copies, records.trace.events))

    def __repr__(self) -> str:
        return f"<FaultReport of {len(self.machine.ts):,} page faults, {self.coverage.duration / 1e9:.6f} s>"

    @property
    def tables(self) -> dict[str, ColumnTable]:
        """The rows of `page_fault`."""
        return {"page_fault": self.page_fault}

    @cached_property
    def page_fault(self) -> ColumnTable:
        """The page faults by time; `process` is the task where its process was not recorded."""
        machine = self.machine
        names = [outcome.name.lower().encode() for outcome in FaultOutcome]

        def columns() -> list[Column]:
            return [
                *span_columns(machine.ts, machine.dur, machine.cpu, machine.tid),
                number_column("process", machine.process, "i"),
                number_column("address", machine.address, "Q"),
                number_column("ip", machine.ip, "Q"),
                number_column("error_code", machine.code, "Q"),
                number_column("is_kernel", machine.is_kernel, "b"),
                text_column("outcome", machine.outcome, names),
            ]

        return ColumnTable("page_fault", columns)

    def latency(self, *outcomes: FaultOutcome) -> Distribution:
        """Return how long faults took in ns, of all or of some outcomes."""
        return self._latency(self._ended(range(len(self.machine.ts))), *outcomes)

    def _ended(self, rows: Sequence[int]) -> list[int]:
        """Return those of rows whose end was recorded."""
        dur = self.machine.dur
        return [row for row in rows if dur[row] != OPEN] if self.ends else []

    def _latency(self, rows: Sequence[int], *outcomes: FaultOutcome) -> Distribution:
        machine = self.machine
        values = [machine.dur[row] for row in rows if not outcomes or machine.outcome[row] in outcomes]
        return samples_of(values, self.coverage, [machine.ts[row] for row in machine.cut])

    def sections(self, choice: Choice = ALL) -> Sequence[Section]:
        """Return the faults by kind, outcome, task, process, region and instruction, and their times."""
        machine = self.machine
        group = Grouping(self.records, choice, machine.tid, machine.cpu)
        counts, ended = FaultCounts(group, machine), self._ended(group.rows)
        times = {outcome.name.lower(): self._latency(ended, outcome) for outcome in FaultOutcome if outcome}
        times["all"] = self._latency(ended)
        return (
            kind_section(group, machine, counts),
            outcome_section(group, machine, counts, self.ends, has_waits=self.has_waits),
            task_section(group, machine, counts, has_ends=bool(self.ends)),
            process_section(group, counts),
            region_section(group, machine, counts, has_mappings=self.has_mappings),
            place_section(group, counts),
            latency_section(times, self.ends),
        )

    def notes(self) -> Iterator[str]:
        """Yield what limits the figures: losses, missing events, faults of a recorder."""
        yield from super().notes()
        machine = self.machine
        n_of_tasks = Counter(machine.tid)
        own = [tid for tid in n_of_tasks if self.records.names.get(tid) in _RECORDERS]
        if own:
            n = sum(map(n_of_tasks.__getitem__, own))
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
    return FaultReport(*read_faults(trace))


analyse = analyse_faults
