"""What a report says of system calls, added up part by part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.analysis.sums import KeyCounts, LongestRows, SampleSums
from tracepoint.analysis.syscalls.calls import SIGRETURN
from tracepoint.analysis.syscalls.numbers import name_of
from tracepoint.analysis.units import task_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.analysis.growing import ClosedPart
    from tracepoint.analysis.sections import Choice, Value
    from tracepoint.analysis.syscalls.calls import CallRows

# IS_ERR_VALUE() of include/linux/err.h.
_MAX_ERRNO = 4095


def is_error(ret: int) -> bool:
    """Whether a call failed: it returned -4095 to -1."""
    return -_MAX_ERRNO <= ret < 0


class CallSums:
    """The figures of the chosen calls; `tasks` are the names of tasks by id, `names` of calls by number.

    `failed` counts what calls returned when they failed, by the number of the call and that.
    """

    def __init__(self, tasks: Mapping[int, str], names: Mapping[int, str], choice: Choice) -> None:
        self.tasks = tasks
        self._names = names
        self._choice = choice
        self.by_number: SampleSums[int] = SampleSums()
        self.by_tid: SampleSums[int] = SampleSums()
        self.failed: KeyCounts[tuple[int, int]] = KeyCounts()
        self.longest: LongestRows[Sequence[Value]] = LongestRows(choice.most)

    def add(self, part: ClosedPart[CallRows]) -> None:
        """Add the calls of a part."""
        rows, numbers = part.rows, part.numbers
        flags = self._choice.flags(rows.tid, rows.cpu, self.tasks)
        self.by_number.add(rows.number, rows.dur, rows.is_cut, numbers, flags)
        self.by_tid.add(rows.tid, rows.dur, rows.is_cut, numbers, flags)
        failed = [
            at
            for at, ret in enumerate(rows.returns)
            if -_MAX_ERRNO <= ret < 0
            and (flags is None or flags[at])
            and self._names.get(rows.number[at]) != SIGRETURN
        ]
        keys = [(rows.number[at], rows.returns[at]) for at in failed]
        self.failed.add(keys, [numbers[at] for at in failed])

        def shown(at: int) -> tuple[Value, ...]:
            what = rows.returns[at], name_of(self._names, rows.number[at])
            return (rows.dur[at], rows.ts[at], rows.cpu[at], *what, task_text(self.tasks, rows.tid[at]))

        self.longest.add(rows.dur, numbers, shown, flags)
