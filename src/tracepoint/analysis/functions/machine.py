"""Calls as function_graph records them: entries and exits of each task, with the depth of the call.

An exit has the times of its call, so a total needs no entry.  The time of a function itself is its total
without the totals of the calls below it, whose exits come before its own.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from tracepoint.named import NamedTuple
from tracepoint.tracefile.sieve import MAX_TIME

if TYPE_CHECKING:
    from collections.abc import Hashable

    from tracepoint.analysis.coverage import GapFinder

#: In a path: what called is not known, as its entry was lost or was before the recording.
UNKNOWN = -1
# Of how many losses within a call the calls below are known: without a limit a call would cost as many steps.
_MOST_LOSSES = 64


class Call(NamedTuple):
    """An exit: the function's address, the depth from 0, when the call began and ended in ns."""

    func: int
    depth: int
    start: int
    stop: int


class FunctionSums:
    """What is known of one function, in ns.

    `totals` are the lengths of calls that were not handed over (`FunctionMachine.closed`), `own` the time in
    it without calls below; `nested` is the time of calls that are within another of the same function,
    `unplaced` that of calls without known callers.  `unsure` is the part of `own` in calls in which calls
    below may have been lost.
    """

    __slots__ = ("nested", "own", "totals", "unplaced", "unsure")

    def __init__(self) -> None:
        self.totals = array("q")
        self.own = self.nested = self.unplaced = self.unsure = 0


class _Task:
    """The functions that a task is in by depth, and the time of the calls below each depth."""

    __slots__ = ("before", "below", "seen", "since", "stack")

    def __init__(self, seen: int) -> None:
        self.stack: list[int] = []
        #: When its last record was.
        self.seen = seen
        # The times below each depth, and since when, up to losses.
        self.before: list[tuple[list[int], list[int]]] = []
        # By depth: the totals of exits since the last exit of the depth above, and when the first began.
        self.below: list[int] = []
        self.since: list[int] = []

    def reach(self, depth: int) -> None:
        """Make room for a depth."""
        missing = depth + 1 - len(self.below)
        if missing > 0:
            self.below.extend([0] * missing)
            self.since.extend([-1] * missing)

    def lose(self) -> None:
        """Take a loss, in which it may have left any function and entered others."""
        self.stack = [UNKNOWN] * len(self.stack)
        if any(self.below):
            self.before.append((self.below, self.since))
            del self.before[:-_MOST_LOSSES]
        self.below, self.since = [0] * len(self.below), [-1] * len(self.since)

    def below_before(self, depth: int, start: int) -> int:
        """Return the time of the calls at a depth that began after `start`, of those up to losses."""
        found = 0
        for below, since in self.before:
            if depth < len(below) and since[depth] >= start:
                found += below[depth]
        # What began outside of it can only be within calls that began earlier.
        if depth <= 1:
            self.before.clear()
        return found


class FunctionMachine:
    """Adds up calls, by function and by path; `gaps` are the losses of all CPUs."""

    def __init__(self, gaps: GapFinder) -> None:
        self._gaps = gaps
        self._tasks: dict[Hashable, _Task] = {}
        self.functions: dict[int, FunctionSums] = {}
        #: By path, a task and functions: the time in the last one, and how often it was called.
        self.paths: dict[tuple[int, ...], list[int]] = {}
        self.n_without_entry = 0
        #: When the first call began that has an exit.
        self.first = MAX_TIME

    def _task(self, key: Hashable, ts: int) -> _Task:
        task = self._tasks.get(key)
        if task is None:
            task = self._tasks[key] = _Task(ts)
        elif self._gaps.starts and self._gaps.is_between(task.seen, ts):
            task.lose()
        task.seen = ts
        return task

    def closed(self) -> dict[int, array[int]]:
        """Hand over the lengths of calls by function, which are not kept."""
        found = {}
        for func, sums in self.functions.items():
            if sums.totals:
                found[func], sums.totals = sums.totals, array("q")
        return found

    def enter(self, key: Hashable, func: int, depth: int, ts: int) -> None:
        """Take the entry of a function by a task."""
        task = self._task(key, ts)
        stack = task.stack
        if depth < len(stack):
            del stack[depth:]
        elif depth > len(stack):
            stack.extend([UNKNOWN] * (depth - len(stack)))
        stack.append(func)
        task.reach(depth + 1)
        task.below[depth + 1] = 0
        task.since[depth + 1] = -1

    def leave(self, key: Hashable, tid: int, call: Call, ts: int) -> None:
        """Take the exit of a function by a task."""
        func, depth, start, stop = call
        task, total = self._task(key, ts), stop - start
        self.first = min(self.first, start)
        task.reach(depth + 1)
        below, since = task.below[depth + 1], task.since[depth + 1]
        task.below[depth + 1], task.since[depth + 1] = 0, -1
        if task.since[depth] < 0:
            task.since[depth] = start
        task.below[depth] += total
        sums = self.functions.get(func)
        if sums is None:
            sums = self.functions[func] = FunctionSums()
        sums.totals.append(total)
        # Calls that began before this one are not below it: the exit of their caller was lost.
        own = total - below if since < 0 or since >= start else total
        if task.before:
            own -= task.below_before(depth + 1, start)
        own = max(own, 0)
        sums.own += own
        if self._gaps.starts and self._gaps.is_between(start, stop):
            sums.unsure += own
        self._add_path(task, tid, call, own)

    def _add_path(self, task: _Task, tid: int, call: Call, own: int) -> None:
        stack, depth = task.stack, call.depth
        if len(stack) <= depth or stack[depth] != call.func:
            self.n_without_entry += 1
            self.functions[call.func].unplaced += call.stop - call.start
            path: tuple[int, ...] = (tid, UNKNOWN, call.func)
        else:
            path = (tid, *stack[: depth + 1])
            if call.func in stack[:depth]:
                self.functions[call.func].nested += call.stop - call.start
            elif UNKNOWN in stack[:depth]:
                self.functions[call.func].unplaced += call.stop - call.start
        del stack[depth:]
        sums = self.paths.get(path)
        if sums is None:
            sums = self.paths[path] = [0, 0]
        sums[0] += own
        sums[1] += 1
