"""The system calls of a trace: how long each took, what it returned, by name and by task."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from tracepoint.analysis.parts import PartedReport, SummedParts
from tracepoint.analysis.report import ALL
from tracepoint.analysis.sections import Choice
from tracepoint.analysis.spans import hiding_of, span_columns, unpaired_notes
from tracepoint.analysis.syscalls.build import ANALYSIS, SyscallReader, call_records
from tracepoint.analysis.syscalls.calls import NO_RETURN, CallRows, no_calls
from tracepoint.analysis.syscalls.during import TaskCalls
from tracepoint.analysis.syscalls.needs import ENTER, EXIT
from tracepoint.analysis.syscalls.numbers import name_of
from tracepoint.analysis.syscalls.sections import call_sections
from tracepoint.analysis.syscalls.sums import CallSums
from tracepoint.decode.column import names_column, number_column
from tracepoint.decode.table import ColumnTable
from tracepoint.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from tracepoint.analysis.distribution import Samples
    from tracepoint.analysis.sections import Section
    from tracepoint.analysis.spans import Hiding
    from tracepoint.decode.column import Column
    from tracepoint.decode.trace import Trace


class SyscallReport(PartedReport[CallRows, CallSums]):
    """The calls of all tasks; `analyse_syscalls` makes it."""

    name = ANALYSIS

    def __init__(self, calls: SyscallReader) -> None:
        self._calls = calls
        records = calls.records
        parts = SummedParts(calls.read, lambda choice: CallSums(records.names, calls.names, choice))
        super().__init__(records.coverage, records.missing, parts)

    def __repr__(self) -> str:
        return f"<SyscallReport of {self.n_calls:,} calls, {self.coverage.duration / 1e9:.6f} s>"

    @property
    def n_calls(self) -> int:
        """How many calls there were; one that a signal interrupted and that went on counts once."""
        return self._calls.counts.n

    @property
    def tables(self) -> dict[str, ColumnTable]:
        """The rows of `syscall`."""
        return {"syscall": self.syscall}

    @cached_property
    def syscall(self) -> ColumnTable:
        """Each call by its first entry: `ts`, `dur` in ns (-1: no end), its number, name, task and result.

        `n_parts` is how often it was entered; `is_cut` says that a loss may hide its end, or its begin was
        before the recording.
        """
        return self.tables_of(lambda: self.parts.all_rows(no_calls()))["syscall"]

    def tables_of(self, rows: Callable[[], CallRows]) -> dict[str, ColumnTable]:
        """Return the table `syscall` of some calls."""
        return {"syscall": ColumnTable("syscall", lambda: self._columns(rows()))}

    def _columns(self, rows: CallRows) -> list[Column]:
        names = self._calls.names
        return [
            *span_columns(rows.ts, rows.dur, rows.cpu, rows.tid),
            number_column("nr", rows.number, "q"),
            names_column("name", (name_of(names, number) for number in rows.number)),
            number_column("ret", rows.returns, "q", NO_RETURN),
            number_column("n_parts", rows.n_parts, "i"),
            number_column("is_cut", rows.is_cut, "b"),
        ]

    def by_task(self, tids: Collection[int]) -> TaskCalls:
        """Return the calls of some tasks by time, by the ids of the tasks."""
        calls = TaskCalls(self._calls.names, self.coverage.stop)
        calls.add(self.parts.all_rows(no_calls()), tids)
        return calls

    @cached_property
    def latency(self) -> Mapping[str, Samples]:
        """How long calls took in ns by their name, those with most time first."""
        found = self.parts.sums(Choice()).by_number.samples(self._hiding)
        return {name_of(self._calls.names, number): made for number, made in found.items()}

    @cached_property
    def _hiding(self) -> Hiding:
        return hiding_of(self.coverage, self._calls.counts.first_cut)

    def sections(self, choice: Choice = ALL) -> Sequence[Section]:
        """Return the calls by name, their errors, the calls by task, and the longest."""
        return call_sections(self._calls, self.parts.sums(choice), self._hiding, choice)

    def notes(self) -> Iterator[str]:
        """Yield what limits the figures: losses, calls without an end, exits without an entry."""
        yield from super().notes()
        calls = self._calls
        if not calls.names:
            yield "nothing says which machine this is: calls have numbers, not names"
        yield from unpaired_notes(calls.counts, ENTER, EXIT, calls.n_final)
        if calls.n_final:
            yield f"{counted(calls.n_final, 'call')} without an end that never have one, such as exit"


def analyse_syscalls(trace: Trace) -> SyscallReport:
    """Return the system calls of a trace.

    They are read from raw_syscalls:*, or from syscalls:* where those were not recorded.  Raises
    TracepointError when neither was.

    >>> import tracepoint as tp
    >>> with tp.open_trace("tests/tracefile/golden/cut.v6.dat") as trace:
    ...     analyse_syscalls(trace)
    <SyscallReport of 15 calls, 0.097791 s>
    """
    return SyscallReport(SyscallReader(call_records(trace)))


analyse = analyse_syscalls
