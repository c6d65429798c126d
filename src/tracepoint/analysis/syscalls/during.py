"""Which system call a task was in at a time."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from tracepoint.analysis.spans import OPEN

if TYPE_CHECKING:
    from collections.abc import Collection

    from tracepoint.analysis.syscalls.report import SyscallReport

#: What a task was in where nothing says it, and where it was in no system call: a page fault.
NO_CALL, OUTSIDE = "", "no system call"


class TaskCalls:
    """The system calls of tasks by time; `tids` chooses tasks."""

    def __init__(self, report: SyscallReport, tids: Collection[int] | None = None) -> None:
        table, stop = report.syscall, report.coverage.stop
        self._starts: dict[int, list[int]] = {}
        self._found: dict[int, list[tuple[int, str]]] = {}
        names = table["name"]
        words = names.words
        columns = (table[name].numbers for name in ("ts", "dur", "tid", "is_cut"))
        for ts, dur, tid, is_cut, name in zip(*columns, names.numbers, strict=True):
            if tids is None or tid in tids:
                end = ts + dur if dur != OPEN else ts if is_cut else stop
                self._starts.setdefault(tid, []).append(ts)
                self._found.setdefault(tid, []).append((end, words[name]))

    def at(self, tid: int, time: int) -> str:
        """Return the name of the call, OUTSIDE of one; NO_CALL before the first of a task."""
        place = bisect_right(self._starts.get(tid, ()), time) - 1
        if place < 0:
            return NO_CALL
        end, name = self._found[tid][place]
        return name if time <= end else OUTSIDE
