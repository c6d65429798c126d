"""Which system call a task was in at a time."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from tracepoint.analysis.spans import OPEN
from tracepoint.analysis.syscalls.build import SyscallReader, call_records
from tracepoint.analysis.syscalls.numbers import name_of
from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from tracepoint.analysis.growing import ClosedPart
    from tracepoint.analysis.syscalls.calls import CallRows
    from tracepoint.decode.trace import Trace
    from tracepoint.tracefile.sieve import Window

#: What a task was in where nothing says it, and where it was in no system call: a page fault.
NO_CALL, OUTSIDE = "", "no system call"


class _TaskRows(NamedTuple):
    """The calls of one task: when they begin and end in ns, and their numbers."""

    starts: array[int]
    ends: array[int]
    numbers: array[int]


class TaskCalls:
    """The system calls of tasks by time, up to `stop` in ns; `names` are those of calls by number."""

    def __init__(self, names: Mapping[int, str], stop: int) -> None:
        self._names = names
        self._stop = stop
        self._tasks: dict[int, _TaskRows] = {}

    def add(self, rows: CallRows, tids: Collection[int] | None = None) -> None:
        """Add calls by their begin, all of which begin after those before; `tids` chooses tasks."""
        columns = zip(rows.ts, rows.dur, rows.tid, rows.is_cut, rows.number, strict=True)
        for ts, dur, tid, is_cut, number in columns:
            if tids is not None and tid not in tids:
                continue
            own = self._tasks.get(tid)
            if own is None:
                own = self._tasks[tid] = _TaskRows(array("q"), array("q"), array("q"))
            own.starts.append(ts)
            own.ends.append(ts + dur if dur != OPEN else ts if is_cut else self._stop)
            own.numbers.append(number)

    def at(self, tid: int, time: int) -> str:
        """Return the name of the call, OUTSIDE of one; NO_CALL before the first of a task."""
        own = self._tasks.get(tid)
        place = bisect_right(own.starts, time) - 1 if own is not None else -1
        if own is None or place < 0:
            return NO_CALL
        return name_of(self._names, own.numbers[place]) if time <= own.ends[place] else OUTSIDE

    def forget(self) -> None:
        """Keep the last call of each task: for times after all that were added."""


class CallPlaces:
    """Which system calls tasks were in, in the windows of a recording one after the other.

    Raises TracepointError where no system calls were recorded.
    """

    def __init__(self, trace: Trace) -> None:
        records = call_records(trace)
        self._calls = SyscallReader(records)
        self._stop = records.coverage.stop
        self._windows = records.windows
        # Of calls that go on after the part in which they begin: their length, and if a loss cuts them.
        self._late: dict[int, tuple[int, int]] = {}
        self._parts: Iterator[TaskCalls] = iter(())
        self._only: TaskCalls | None = None
        if records.n_parts == 1:
            # Read now: a report is used after its recording was closed.
            self._only = TaskCalls(self._calls.names, self._stop)
            self._calls.read(lambda part: self._only.add(part.rows))  # type: ignore[union-attr]
        else:
            starts = iter(self._windows)
            self._calls.read(lambda part: self._take_late(part, next(starts).start))
        self.n_calls = self._calls.counts.n

    def _take_late(self, part: ClosedPart[CallRows], start: int) -> None:
        rows = part.rows
        for number, ts, dur, is_cut in zip(part.numbers, rows.ts, rows.dur, rows.is_cut, strict=True):
            if ts >= start:
                break
            self._late[number] = dur, is_cut

    def __call__(self, window: Window) -> TaskCalls:
        """Return the calls in a window, which is the first one or follows the last one that was asked for."""
        if self._only is not None:
            return self._only
        if window == self._windows[0]:
            self._parts = self._read()
        return next(self._parts)

    def _read(self) -> Iterator[TaskCalls]:
        calls, machine = TaskCalls(self._calls.names, self._stop), self._calls.machine()
        n_seen = 0
        for is_last in self._calls.records.running(lambda part: self._calls.takes(part, machine)):
            part = machine.finish(self._stop) if is_last else machine.settled()
            first = bisect_left(part.numbers, n_seen)
            rows = type(part.rows)(*(column[first:] for column in part.rows))
            for at, number in enumerate(part.numbers[first:]):
                if number in self._late:
                    rows.dur[at], rows.is_cut[at] = self._late[number]
            calls.forget()
            calls.add(rows)
            n_seen += len(rows.ts)
            if not is_last:
                machine.closed()
            yield calls
