"""What an interval of a thread depended on: its critical path, walked back from the end.

While the thread ran, on itself; while it could run, on what ran instead; while it was blocked, on the
thread that woke it, of which the same is asked for that time.  So the path has a step for each time of the
interval, and its steps add up to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from tracepoint.analysis.sched.chains import INTERRUPT
from tracepoint.analysis.sched.rows import NONE, OPEN, RUNNING, RowFlag, RunRows, StateClass, StateRows
from tracepoint.analysis.sched.threads import IDLE
from tracepoint.errors import TracepointError
from tracepoint.named import NamedTuple
from tracepoint.tracefile.sieve import MAX_TIME, MIN_TIME
from tracepoint.wording import read_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracepoint.analysis.sched.follow import Timeline
    from tracepoint.analysis.sched.rows import AnyRows, SchedRows

RowColumns = TypeVar("RowColumns", RunRows, StateRows)
# A task has an int32.
_DIGITS = 11
RAN, WAITED, BLOCKED, UNKNOWN = "running", "runnable", "blocked", "unknown"


class PathStep(NamedTuple):
    """A time in ns of a critical path, in which all depended on one thread.

    `kind` is `running`, `runnable`, `blocked` on what is no other thread, or `unknown`.  `state` are the
    letters of its state.  `by` says what ran instead, that with most time first, or what ended the block:
    `interrupt`, a task, or empty.  `depth` is how many blocked threads wait for this one.
    """

    start: int
    stop: int
    utid: int
    kind: str
    state: str
    by: tuple[str, ...]
    depth: int

    @property
    def dur(self) -> int:
        """The length in ns."""
        return self.stop - self.start


class _Wait(NamedTuple):
    """A thread to go on with, down to a time."""

    utid: int
    floor: int


class _Walk:
    """One walk back; `at` is the time that it has reached, `waits` the threads that wait for this one."""

    def __init__(self, lines: Timeline, utid: int, start: int, stop: int) -> None:
        self._lines = lines
        self._states = lines.rows.states
        self._here = _Wait(utid, start)
        self._at = stop
        self._waits: list[_Wait] = []
        # Where clocks stand still threads can seem to wake each other at one time.
        self._entered: set[tuple[int, int]] = set()

    def steps(self) -> Iterator[PathStep]:
        """Yield the steps, the last one first."""
        while True:
            utid, floor = self._here
            if self._at <= floor:
                if not self._waits:
                    return
                self._here = self._waits.pop()
                continue
            row = self._lines.before(utid, self._at)
            end = self._lines.stop_of(row) if row != NONE else floor
            if end < self._at:
                yield self._step(max(end, floor), UNKNOWN)
            else:
                yield from self._back(row, max(self._states.ts[row], floor), floor)

    def _step(self, start: int, kind: str, row: int = NONE, by: tuple[str, ...] = ()) -> PathStep:
        names = self._lines.rows.names.names
        state = names[self._states.state[row]] if row != NONE else ""
        made = PathStep(start, self._at, self._here.utid, kind, state, by, len(self._waits))
        self._at = start
        return made

    def _back(self, row: int, start: int, floor: int) -> Iterator[PathStep]:
        """Go back over a row that holds the time before `at`."""
        states, rows = self._states, self._lines.rows
        kind = rows.names.classes[states.state[row]]
        if states.state[row] == RUNNING:
            yield self._step(start, RAN, row)
        elif kind is StateClass.RUNNABLE:
            yield self._step(start, WAITED, row, self._instead(row, start))
            made = self._lines.wake_up(row)
            if states.flags[row] & RowFlag.NEW and made is not None and self._at > floor:
                # There was no such thread before: its maker goes on.
                self._here = _Wait(made.waker, floor)
        elif kind is StateClass.DEAD:
            yield self._step(start, UNKNOWN, row)
        else:
            yield from self._block(row, start)

    def _block(self, row: int, start: int) -> Iterator[PathStep]:
        """Go on with the thread that ended a sleep, where another did."""
        lines, after = self._lines, self._lines.after(row)
        woken = lines.wake_up(after) if lines.stop_of(row) == self._at else None
        if woken is None:
            yield self._step(start, BLOCKED, row)
        elif woken.in_interrupt:
            yield self._step(start, BLOCKED, row, (INTERRUPT,))
        elif lines.rows.threads.tid[woken.waker] == IDLE or (woken.waker, self._at) in self._entered:
            yield self._step(start, BLOCKED, row, (lines.rows.task_of(woken.waker),))
        else:
            self._entered.add((woken.waker, self._at))
            self._waits.append(self._here)
            self._here = _Wait(woken.waker, start)

    def _instead(self, row: int, start: int) -> tuple[str, ...]:
        """Return what ran on the CPU that a thread waited for, that with most time first."""
        after = self._lines.after(row)
        if after == NONE or self._states.state[after] != RUNNING:
            return ()
        sums: dict[int, int] = {}
        for utid, ns in self._lines.runs_within(self._states.cpu[after], start, self._at):
            sums[utid] = sums.get(utid, 0) + ns
        ordered = sorted(sums, key=lambda utid: (-sums[utid], utid))
        return tuple(map(self._lines.rows.task_of, ordered))


def critical_path(lines: Timeline, utid: int, start: int, stop: int) -> list[PathStep]:
    """Return what a thread depended on from `start` to `stop` in ns, by time, without a time left out."""
    return [*_Walk(lines, utid, start, stop).steps()][::-1]


class TaskSpan(NamedTuple):
    """A time of a task in ns; None: as far as it is known."""

    tid: int
    start: int | None = None
    stop: int | None = None


def read_span(text: str | None) -> TaskSpan | None:
    """Return what `--critical` says: `PID`, or `PID:FROM-TO` in seconds; None for none.

    Raises TracepointError for another text.

    >>> read_span("17:10.5-10.75")
    TaskSpan(tid=17, start=10500000000, stop=10750000000)
    """
    if text is None:
        return None
    task, colon, times = text.partition(":")
    start, _, stop = times.partition("-")
    found = read_seconds(start), read_seconds(stop)
    if task.isdecimal() and task.isascii() and len(task) < _DIGITS:
        if not colon:
            return TaskSpan(int(task))
        if found[0] is not None and found[1] is not None and found[0] <= found[1]:
            return TaskSpan(int(task), *found)
    raise TracepointError(f"--critical {text[:40]!r}: give PID, or PID:FROM-TO with times in seconds")


class PathRows:
    """Takes rows part by part, and keeps those that the path of a task may need.

    These are the rows of the task, what other threads and CPUs did in the span, and the next row of a thread
    after it: where one waits at the end, that says for which CPU.  Without a begin and an end they are all.
    `rows` are the last ones, with all threads.
    """

    def __init__(self, rows: SchedRows, span: TaskSpan) -> None:
        self._rows = rows
        self._tid = span.tid
        self._start = MIN_TIME if span.start is None else span.start
        self._stop = MAX_TIME if span.stop is None else span.stop
        self._runs, self._states = RunRows(), StateRows()
        self._is_past: set[int] = set()

    def add(self, part: AnyRows) -> None:
        """Take the rows of a part."""
        runs, states, tids = part.runs, part.states, self._rows.threads.tid
        _append(self._runs, runs, [row for row, ts in enumerate(runs.ts) if self._is_near(ts, runs.dur[row])])
        chosen = []
        for row, (ts, dur, utid) in enumerate(zip(states.ts, states.dur, states.utid, strict=True)):
            if ts > self._stop and utid not in self._is_past:
                self._is_past.add(utid)
            elif not self._is_near(ts, dur) and tids[utid] != self._tid:
                continue
            chosen.append(row)
        _append(self._states, states, chosen)

    def _is_near(self, ts: int, dur: int) -> bool:
        return ts <= self._stop and (dur == OPEN or ts + dur >= self._start)

    def kept(self) -> SchedRows:
        """Return the rows of all parts that were kept."""
        return self._rows._replace(runs=self._runs, states=self._states)


def _append(to: RowColumns, rows: RowColumns, chosen: Sequence[int]) -> None:
    for column, own in zip(vars(to).values(), vars(rows).values(), strict=True):
        column.extend(map(own.__getitem__, chosen))


def path_of_task(lines: Timeline, span: TaskSpan, stop: int) -> list[PathStep]:
    """Return the critical path of a task; `stop` is the end of the trace in ns.

    Raises TracepointError for a task that is not in the trace.
    """
    rows = lines.rows
    found = [
        utid for utid, tid in enumerate(rows.threads.tid) if tid == span.tid and lines.last(utid) != NONE
    ]
    if span.tid == IDLE or not found:
        raise TracepointError(f"no task {span.tid} that ran, waited or slept is in the trace")
    # An id that was used again is that of the last thread that began before the end.
    end = stop if span.stop is None else span.stop
    utid = [utid for utid in found if lines.first(utid) < end or utid == found[0]][-1]
    last = lines.last(utid)
    if span.stop is None and rows.names.classes[rows.states.state[last]] is StateClass.DEAD:
        end = rows.states.ts[last]
    start = lines.first(utid) if span.start is None else span.start
    return critical_path(lines, utid, start, end)
