"""The system calls of a trace: how long each took, what it returned, by name and by task."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from tracepoint.analysis.records import AnalysisRecords
from tracepoint.analysis.report import ALL, Report
from tracepoint.analysis.spans import samples_by, span_columns, unpaired_notes
from tracepoint.analysis.syscalls.build import NO_RETURN, read_calls
from tracepoint.analysis.syscalls.needs import ENTER, EXIT, needs_in
from tracepoint.analysis.syscalls.numbers import name_of
from tracepoint.analysis.syscalls.sections import call_sections
from tracepoint.decode.column import names_column, number_column
from tracepoint.decode.table import ColumnTable
from tracepoint.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tracepoint.analysis.distribution import Distribution
    from tracepoint.analysis.sections import Choice, Section
    from tracepoint.analysis.syscalls.build import Calls
    from tracepoint.decode.column import Column
    from tracepoint.decode.trace import Trace


class SyscallReport(Report):
    """The calls of all tasks; `analyse_syscalls` makes it."""

    name = "syscalls"

    def __init__(self, records: AnalysisRecords, calls: Calls) -> None:
        super().__init__(records.coverage, records.missing)
        self._records = records
        self._calls = calls

    def __repr__(self) -> str:
        return f"<SyscallReport of {self.n_calls:,} calls, {self.coverage.duration / 1e9:.6f} s>"

    @property
    def n_calls(self) -> int:
        """How many calls there were; one that a signal interrupted and that went on counts once."""
        return len(self._calls.spans)

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
        return ColumnTable("syscall", self._columns)

    def _columns(self) -> list[Column]:
        calls, spans = self._calls, self._calls.spans
        cpus = (self._records.cpus[row] for row in spans.begin)
        return [
            *span_columns(spans.ts, spans.dur, cpus, calls.tids),
            number_column("nr", calls.numbers, "q"),
            names_column("name", (name_of(calls.names, number) for number in calls.numbers)),
            number_column("ret", calls.returns, "q", NO_RETURN),
            number_column("n_parts", calls.n_parts, "i"),
            number_column("is_cut", spans.is_cut, "b"),
        ]

    @cached_property
    def latency(self) -> Mapping[str, Distribution]:
        """How long calls took in ns by their name, those with most time first."""
        calls = self._calls
        names = [name_of(calls.names, number) for number in calls.numbers]
        return samples_by(calls.spans, names, self.coverage)

    def sections(self, choice: Choice = ALL) -> Sequence[Section]:
        """Return the calls by name, their errors, the calls by task, and the longest."""
        return call_sections(self._records, self._calls, choice)

    def notes(self) -> Iterator[str]:
        """Yield what limits the figures: losses, calls without an end, exits without an entry."""
        yield from super().notes()
        calls = self._calls
        if not calls.names:
            yield "nothing says which machine this is: calls have numbers, not names"
        yield from unpaired_notes(calls.spans, ENTER, EXIT, calls.n_final)
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
    records = AnalysisRecords(
        trace, SyscallReport.name, needs_in([name for name, n in trace.events.items() if n])
    )
    return SyscallReport(records, read_calls(records))


analyse = analyse_syscalls
