"""Time off the CPUs: of which task, in which state, where it blocked, and who woke it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tracepoint.analysis.sched.chains import INTERRUPT
from tracepoint.analysis.sched.rows import NONE, OPEN, RUNNING, RowFlag, StateClass
from tracepoint.analysis.syscalls.during import TaskCalls
from tracepoint.analysis.syscalls.needs import ENTER, EXIT
from tracepoint.analysis.syscalls.report import analyse_syscalls
from tracepoint.errors import TracepointError
from tracepoint.wording import no_such

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from tracepoint.analysis.sched.rows import SchedRows
    from tracepoint.decode.trace import Trace

    #: Where a task blocked, by the time in ns and its id: a system call, or functions, the outermost first.
    Where: TypeAlias = Callable[[int, int], tuple[str, ...]]

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
    where: Where | None


NO_OFF_CPU = OffCpu("", None)


def places_of(trace: Trace, by: str) -> Where | None:
    """Return where tasks of a trace blocked, for one of BY or none.

    Raises KeyError for another one, TracepointError where it was not recorded.
    """
    if by and by not in BY:
        raise KeyError(no_such("by", by, BY))
    if by == "call":
        report = analyse_syscalls(trace)
        if not report.n_calls:
            raise TracepointError(f"{trace.file.path}: no system calls here: record {ENTER} and {EXIT}")
        calls = TaskCalls(report)
        return lambda ts, tid: (call,) if (call := calls.at(tid, ts)) else ()
    if by == "stack":
        found = stack_places(trace)
        if found is None:
            raise TracepointError(
                f"{trace.file.path}: no stacks of {_SWITCH}: record it with the trigger or option stacktrace"
            )
        return found
    return None


def stack_places(trace: Trace) -> Where | None:
    """Return in which functions of the kernel tasks left a CPU; None without stacks of sched_switch."""
    if not trace.events.get(_STACK) or _SWITCH not in trace:
        return None
    table = trace.with_stacks(_SWITCH)
    rows = (table[name].tolist() for name in ("common_timestamp", "prev_pid", _SYMBOLS))
    stacks = {(ts, pid): tuple(reversed(stack)) for ts, pid, stack in zip(*rows, strict=True) if stack}
    return (lambda ts, tid: stacks.get((ts, tid), ())) if stacks else None


def off_times(rows: SchedRows, where: Where | None = None) -> list[OffTime]:
    """Return all time that threads were off the CPUs, that with most time first; dead ones are not."""
    found: dict[tuple[int, str, tuple[str, ...], str], list[int]] = {}
    words: dict[tuple[int, int], str] = {}
    states, tids = rows.states, rows.threads.tid
    labels = _Labels(rows)
    next_of = _next_rows(states.utid)
    columns = states.ts, states.dur, states.utid, states.state, states.flags, next_of
    for ts, dur, utid, state, flags, after in zip(*columns, strict=True):
        label = labels.of(state, flags)
        if dur == OPEN or not label:
            continue
        place: tuple[str, ...] = ()
        # A time that a waking began is not one that the thread went into by itself.
        if where is not None and not flags & _WOKEN:
            place = where(ts, tids[utid])
        waker = ""
        # After a loss it is not known what ended it.
        if after != NONE and states.flags[after] & _WOKEN and states.ts[after] == ts + dur:
            key = states.waker[after], states.irq[after]
            waker = words[key] if key in words else words.setdefault(key, _waker(rows, *key))
        own = found.setdefault((utid, label, place, waker), [0, 0, 0])
        own[0] += dur
        own[1] += 1
        own[2] = max(own[2], dur)
    times = (OffTime(*key, *own) for key, own in found.items())
    return sorted(times, key=lambda time: (-time.ns, time))


def _next_rows(utids: Sequence[int]) -> list[int]:
    """Return for each row the next one of its thread, NONE after the last."""
    found, following = [NONE] * len(utids), dict[int, int]()
    for row in range(len(utids) - 1, -1, -1):
        utid = utids[row]
        found[row] = following.get(utid, NONE)
        following[utid] = row
    return found


def _waker(rows: SchedRows, utid: int, irq: int) -> str:
    if utid == NONE:
        return ""
    return INTERRUPT if irq == 1 else rows.task_of(utid)


class _Labels:
    """What states are called in which threads are off the CPUs; empty for others."""

    def __init__(self, rows: SchedRows) -> None:
        names = rows.names
        self._labels = [
            "" if number == RUNNING or kind is StateClass.DEAD else name
            for number, (name, kind) in enumerate(zip(names.names, names.classes, strict=True))
        ]

    def of(self, state: int, flags: int) -> str:
        label = self._labels[state]
        return f"{label} or R" if label and flags & _UNSEEN else label


def folded_paths(times: Sequence[OffTime], task_of: Callable[[int], str]) -> list[tuple[str, ...]]:
    """Return a path for each time: the task, its state, where it blocked, and who woke it."""
    return [
        (task_of(time.utid), time.state, *time.where, *((f"woken by {time.waker}",) if time.waker else ()))
        for time in times
    ]
