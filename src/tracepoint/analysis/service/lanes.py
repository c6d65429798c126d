"""What threads did, one piece of time after the other, and the part of it that lies in a request."""

from __future__ import annotations

from bisect import bisect_right
from enum import IntEnum
from typing import TYPE_CHECKING

from tracepoint.analysis.sched.rows import OPEN, RowFlag
from tracepoint.analysis.syscalls.during import NO_CALL
from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from tracepoint.analysis.sched.report import SchedReport
    from tracepoint.analysis.syscalls.report import SyscallReport
    from tracepoint.decode.table import ColumnTable

NO_TASK = -1
_IRQ = "interrupt"


class TimeKind(IntEnum):
    """What a thread does: it runs, waits for a CPU, sleeps (S and others) or cannot be interrupted (D)."""

    RUNNING = 0
    RUNNABLE = 1
    SLEEPING = 2
    UNINTERRUPTIBLE = 3
    UNKNOWN = 4


#: What a request is blocked in.
BLOCKED = (TimeKind.SLEEPING, TimeKind.UNINTERRUPTIBLE)


class Cause(NamedTuple):
    """What a thread was blocked on: the letters of its state, the system call, and who woke it.

    `waker` is the id of a task, NO_TASK where that is not known; `by` is how it is shown.
    """

    state: str = ""
    call: str = NO_CALL
    waker: int = NO_TASK
    by: str = ""


class TimePiece(NamedTuple):
    """A time in ns in which a thread did one thing."""

    start: int
    stop: int
    kind: TimeKind
    cause: Cause


_NO_CAUSE = Cause()


class _Row(NamedTuple):
    """A row of `thread_state`; `waker` is an utid."""

    ts: int
    stop: int
    state: str
    flags: int
    waker: int
    irq: int


class ThreadLane:
    """The pieces of one thread's time that are known, in order and without overlap."""

    def __init__(self, pieces: Sequence[TimePiece]) -> None:
        self._pieces = pieces
        self._stops = [piece.stop for piece in pieces]

    def __len__(self) -> int:
        return len(self._pieces)

    def within(self, start: int, stop: int) -> Iterator[TimePiece]:
        """Yield what the thread did from `start` to `stop`, with UNKNOWN where that is not known: all of it.

        >>> first, second = (0, 10, TimeKind.RUNNING, Cause()), (20, 40, TimeKind.RUNNABLE, Cause())
        >>> lane = ThreadLane([TimePiece(*first), TimePiece(*second)])
        >>> [(piece.start, piece.stop, piece.kind.name) for piece in lane.within(5, 25)]
        [(5, 10, 'RUNNING'), (10, 20, 'UNKNOWN'), (20, 25, 'RUNNABLE')]
        """
        at, index = start, bisect_right(self._stops, start)
        while at < stop:
            piece = self._pieces[index] if index < len(self._pieces) else None
            if piece is None or piece.start >= stop:
                yield TimePiece(at, stop, TimeKind.UNKNOWN, _NO_CAUSE)
                return
            if piece.start > at:
                yield TimePiece(at, piece.start, TimeKind.UNKNOWN, _NO_CAUSE)
            found = TimePiece(max(piece.start, at), min(piece.stop, stop), piece.kind, piece.cause)
            yield found
            at, index = found.stop, index + 1

    def does(self, time: int) -> set[TimeKind]:
        """Return what the thread does at a time: two kinds where one follows the other, none: unknown."""
        index = bisect_right(self._stops, time - 1)
        found = set()
        while index < len(self._pieces) and self._pieces[index].start <= time:
            found.add(self._pieces[index].kind)
            index += 1
        return found


def read_lanes(
    sched: SchedReport, calls: SyscallReport | None, tids: Collection[int]
) -> Mapping[int, ThreadLane]:
    """Return what some threads did, by their ids; those of which nothing is known are left out."""
    thread = sched.thread
    tid_of = thread["tid"].numbers
    of_task = calls.by_task(tids) if calls is not None else None
    names = _Wakers(thread)
    lanes = {}
    for tid, rows in _rows_of(sched, tids, tid_of).items():
        rows.sort(key=lambda row: row.ts)
        pieces: list[TimePiece] = []
        for row, after in zip(rows, [*rows[1:], None], strict=True):
            start = max(row.ts, pieces[-1].stop) if pieces else row.ts
            kind = _kind_of(row)
            if row.stop <= start or kind is TimeKind.UNKNOWN:
                continue
            cause = _NO_CAUSE
            if kind >= TimeKind.SLEEPING:
                call = of_task.at(tid, row.ts) if of_task is not None else NO_CALL
                is_woken = after is not None and after.ts == row.stop
                waker = names.of(after) if after is not None and is_woken else (NO_TASK, "")
                cause = Cause(row.state, call, *waker)
            pieces.append(TimePiece(start, row.stop, kind, cause))
        lanes[tid] = ThreadLane(pieces)
    return lanes


def _rows_of(sched: SchedReport, tids: Collection[int], tid_of: Sequence[int]) -> dict[int, list[_Row]]:
    table, stop = sched.thread_state, sched.coverage.stop
    wanted = {utid: tid for utid, tid in enumerate(tid_of) if tid in tids}
    names = ("ts", "dur", "utid", "flags", "waker_utid", "irq_context")
    states = table["state"]
    words, found = states.words, dict[int, list[_Row]]()
    columns = (table[name].numbers for name in names)
    for ts, dur, utid, flags, waker, irq, state in zip(*columns, states.numbers, strict=True):
        tid = wanted.get(utid)
        if tid is None:
            continue
        # The last thing that a thread did goes on, unless it is not known when it ended.
        end = ts + dur if dur != OPEN else ts if flags & RowFlag.CUT else stop
        found.setdefault(tid, []).append(_Row(ts, end, words[state], flags, waker, irq))
    return found


def _kind_of(row: _Row) -> TimeKind:
    """Return what a row says; UNKNOWN for the dead, and for a sleep without a wake-up, which ended unseen."""
    if row.state == "Running":
        return TimeKind.RUNNING
    if row.state.startswith("R"):
        return TimeKind.RUNNABLE
    if row.flags & RowFlag.UNSEEN_WAKE or row.state[:1] in {"X", "Z", "x", "?"}:
        return TimeKind.UNKNOWN
    return TimeKind.UNINTERRUPTIBLE if "D" in row.state else TimeKind.SLEEPING


class _Wakers:
    """Who woke a thread, from the row of states that begins then."""

    def __init__(self, thread: ColumnTable) -> None:
        self._tids = thread["tid"].numbers
        names = thread["name"]
        self._names, self._words = names.numbers, names.words

    def of(self, row: _Row) -> tuple[int, str]:
        """Return the id of the task that woke a thread, and its name, or that an interrupt did."""
        if not 0 <= row.waker < len(self._tids):
            return NO_TASK, ""
        if row.irq == 1:
            return NO_TASK, _IRQ
        tid = self._tids[row.waker]
        return tid, f"{self._words[self._names[row.waker]]}-{tid}"
