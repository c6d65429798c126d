"""Time off the CPUs: of which task, in which state, where it blocked, and who woke it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.analysis.sched.chains import INTERRUPT
from tracepoint.analysis.sched.rows import NONE, OPEN, RUNNING, RowFlag, StateClass
from tracepoint.analysis.syscalls.during import CallPlaces
from tracepoint.analysis.syscalls.needs import ENTER, EXIT
from tracepoint.errors import TracepointError
from tracepoint.named import NamedTuple
from tracepoint.wording import no_such

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from tracepoint.analysis.sched.rows import AnyRows, SchedRows
    from tracepoint.analysis.syscalls.during import TaskCalls
    from tracepoint.decode.trace import Trace
    from tracepoint.tracefile.sieve import Window

    #: Where a task blocked, by the time in ns and its id: a system call, or functions, the outermost first.
    Where: TypeAlias = Callable[[int, int], tuple[str, ...]]
    #: The same for the times in a part of a recording.
    Places: TypeAlias = Callable[[Window], Where]

#: What off-CPU time can be summed by besides tasks and states; who woke a task is always told.
BY = ("waker", "call", "stack")
_SWITCH, _STACK, _SYMBOLS = "sched:sched_switch", "ftrace:kernel_stack", "kernel_stack_symbols"
_UNSEEN, _WOKEN = int(RowFlag.UNSEEN_WAKE), int(RowFlag.WOKEN)


class OffTime(NamedTuple):
    """The time in ns that a thread was off the CPUs in one state; `n` times, `longest` the most at once.

    Of a sleep, `where` is where it blocked as far as that is recorded, and `waker` who ended it: a task or
    `interrupt`, empty where that is not known.  A state such as `S or R` is a sleep without a wake-up: the
    thread was runnable for a part of it.
    """

    utid: int
    state: str
    where: tuple[str, ...]
    waker: str
    ns: int
    n: int
    longest: int


class OffCpu(NamedTuple):
    """What off-CPU time is summed by: one of BY, empty: not shown; and where tasks blocked."""

    by: str
    places: Places | None


NO_OFF_CPU = OffCpu("", None)


def places_of(trace: Trace, by: str) -> Places | None:
    """Return where tasks of a trace blocked, for one of BY or none.

    Raises KeyError for another one, TracepointError where it was not recorded.
    """
    if by and by not in BY:
        raise KeyError(no_such("by", by, BY))
    if by == "call":
        calls = CallPlaces(trace)
        if not calls.n_calls:
            raise TracepointError(f"{trace.file.path}: no system calls here: record {ENTER} and {EXIT}")
        return lambda window: _in_call(calls(window))
    if by == "stack":
        found = stack_places(trace)
        if found is None:
            raise TracepointError(
                f"{trace.file.path}: no stacks of {_SWITCH}: record it with the trigger or option stacktrace"
            )
        return found
    return None


def _in_call(calls: TaskCalls) -> Where:
    return lambda ts, tid: (call,) if (call := calls.at(tid, ts)) else ()


def stack_places(trace: Trace) -> Places | None:
    """Return in which functions of the kernel tasks left a CPU; None without stacks of sched_switch."""
    if not trace.events.get(_STACK) or _SWITCH not in trace:
        return None
    windows = trace.windows()
    if len(windows) == 1:
        # Read now: a report is used after its recording was closed.
        stacks = _stacks_in(trace)
        return (lambda _window: _where(stacks)) if stacks else None
    if not any(_stacks_in(trace.between(*window)) for window in windows):
        return None
    return lambda window: _where(_stacks_in(trace.between(*window)))


def _where(stacks: Mapping[tuple[int, int], tuple[str, ...]]) -> Where:
    return lambda ts, tid: stacks.get((ts, tid), ())


def _stacks_in(trace: Trace) -> dict[tuple[int, int], tuple[str, ...]]:
    table = trace.with_stacks(_SWITCH)
    rows = (table[name].tolist() for name in ("common_timestamp", "prev_pid", _SYMBOLS))
    return {(ts, pid): tuple(reversed(stack)) for ts, pid, stack in zip(*rows, strict=True) if stack}


class _OffRow(NamedTuple):
    """A time off the CPUs of which the next row of its thread says what ended it."""

    key: tuple[int, int, int, tuple[str, ...]]
    dur: int
    stop: int


class OffCpuSums:
    """Takes rows part by part, and adds up the time that threads were off the CPUs; dead ones are not.

    `rows` are the last ones, with all threads; `wheres` tells of each part where tasks blocked, None: no.
    """

    def __init__(self, rows: SchedRows, wheres: Iterator[Where] | None = None) -> None:
        self._rows = rows
        self._wheres = wheres
        self._where: Where = _nowhere
        self._sums: dict[tuple[int, int, int, tuple[str, ...], int, int], list[int]] = {}
        self._last: dict[int, _OffRow] = {}
        # Of the rows that a part leaves open their time, and where the thread blocked: the next says nothing.
        self._blocked: dict[int, tuple[int, tuple[str, ...]]] = {}

    def add(self, part: AnyRows) -> None:
        """Take the rows of a part, those of one thread in order."""
        if self._wheres is not None:
            self._where = next(self._wheres, self._where)
        states = part.states
        is_off = self._are_off(part)
        last = self._last
        columns = states.ts, states.dur, states.utid, states.state, states.flags, states.waker, states.irq
        for ts, dur, utid, state, flags, waker, irq in zip(*columns, strict=True):
            before = last.pop(utid, None)
            if before is not None:
                # After a loss it is not known what ended it.
                is_known = flags & _WOKEN and before.stop == ts
                self._count(before, *((waker, irq) if is_known else (NONE, NONE)))
            if dur != OPEN and is_off[state]:
                key = utid, state, flags & _UNSEEN, self._place(ts, utid, flags)
                last[utid] = _OffRow(key, dur, ts + dur)
        self._blocked = {
            utid: (ts, self._place(ts, utid, flags))
            for ts, utid, state, flags, _, _ in zip(*part.held, strict=True)
            if is_off[state]
        }

    @staticmethod
    def _are_off(part: AnyRows) -> list[bool]:
        """Return of each state whether a thread is off the CPUs in it, and will be on one again."""
        return [
            number != RUNNING and kind is not StateClass.DEAD
            for number, kind in enumerate(part.names.classes)
        ]

    def _place(self, ts: int, utid: int, flags: int) -> tuple[str, ...]:
        # A time that a waking began is not one that the thread went into by itself.
        if self._wheres is None or flags & _WOKEN:
            return ()
        known = self._blocked.get(utid)
        return known[1] if known is not None and known[0] == ts else self._where(ts, self._tid(utid))

    def _tid(self, utid: int) -> int:
        return self._rows.threads.tid[utid]

    def _count(self, row: _OffRow, waker: int, irq: int) -> None:
        key = *row.key, waker, irq
        own = self._sums.get(key)
        if own is None:
            own = self._sums[key] = [0, 0, 0]
        own[0] += row.dur
        own[1] += 1
        own[2] = max(own[2], row.dur)

    def times(self) -> list[OffTime]:
        """Return the times of all parts, those with most time first."""
        for row in self._last.values():
            self._count(row, NONE, NONE)
        self._last.clear()
        names = self._rows.names.names
        found: dict[tuple[int, str, tuple[str, ...], str], list[int]] = {}
        for (utid, state, is_unseen, place, waker, irq), (ns, n, longest) in self._sums.items():
            label = f"{names[state]} or R" if is_unseen else names[state]
            own = found.setdefault((utid, label, place, _waker(self._rows, waker, irq)), [0, 0, 0])
            own[0] += ns
            own[1] += n
            own[2] = max(own[2], longest)
        times = (OffTime(*key, *own) for key, own in found.items())
        return sorted(times, key=lambda time: (-time.ns, time))


def _nowhere(_ts: int, _tid: int) -> tuple[str, ...]:
    return ()


def _waker(rows: SchedRows, utid: int, irq: int) -> str:
    if utid == NONE:
        return ""
    return INTERRUPT if irq == 1 else rows.task_of(utid)


def folded_paths(times: Sequence[OffTime], task_of: Callable[[int], str]) -> list[tuple[str, ...]]:
    """Return a path for each time: the task, its state, where it blocked, and who woke it."""
    return [
        (task_of(time.utid), time.state, *time.where, *((f"woken by {time.waker}",) if time.waker else ()))
        for time in times
    ]
