"""The states of threads from the records of the scheduler, one record after the other by time.

This is the readable form of `csrc/decode/sched.c`, which must find the same.

A thread is runnable from its waking (try_to_wake_up() of kernel/sched/core.c), from the switch that took a
CPU away from it, or from its first wake-up.  Two cases that others lose:

a. A waking is recorded before the switch that puts its thread to sleep, as the waker may be faster than
   __schedule(): when the wake-up comes after the switch, the thread was runnable from the switch on.
b. A thread sleeps and runs with neither waking nor wake-up between: a signal, or case a without
   sched_wakeup, or clocks that differ.  It was runnable for some of that time: the row is flagged.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, TypeVar

from tracepoint.analysis.sched.rows import (
    NONE,
    RUNNABLE,
    RUNNING,
    ClosedRows,
    HeldRows,
    RowFlag,
    RunRows,
    SchedCounts,
    SchedRows,
    SpuriousRows,
    StateClass,
    StateRows,
    span_ns,
)
from tracepoint.analysis.sched.threads import IDLE, Thread, Threads
from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from tracepoint.analysis.coverage import GapFinder
    from tracepoint.analysis.sched.rows import StateNames, Wakings

Rows = TypeVar("Rows", RunRows, StateRows, SpuriousRows)

_CUT, _LATE, _RAN = int(RowFlag.CUT), int(RowFlag.LATE), int(RowFlag.RAN)
_WOKEN, _NEW, _UNSEEN = int(RowFlag.WOKEN), int(RowFlag.NEW), int(RowFlag.UNSEEN_WAKE)
# include/linux/trace_events.h: TRACE_FLAG_HARDIRQ, TRACE_FLAG_SOFTIRQ.
_IN_IRQ = 0x18


class TaskSwitch(NamedTuple):
    """The tasks of a sched_switch, `prev_state` as in the record."""

    prev_tid: int
    prev_state: int
    next_tid: int
    next_priority: int


class _Cpu:
    """What a CPU runs, None where that is not known; `lost_ns` is for how long it was not."""

    __slots__ = ("lost_ns", "row", "seen", "thread")

    def __init__(self) -> None:
        self.thread: Thread | None = None
        self.row = NONE
        self.seen: int | None = None
        self.lost_ns = 0


class SchedMachine:
    """Reads records by time and makes the rows of `sched`, `thread_state` and `spurious_sched_wakeup`.

    `wakings` are those that were recorded, `gaps` what each CPU lost, and `all_gaps` any of them.
    """

    def __init__(
        self, names: StateNames, wakings: Wakings, gaps: Mapping[int, GapFinder], all_gaps: GapFinder
    ) -> None:
        self.names = names
        self.runs, self.states, self.spurious = RunRows(), StateRows(), SpuriousRows()
        self.threads = Threads()
        self.n_lost_switches = self.n_unseen_wakes = self.n_dropped = 0
        self.overlap_ns = self.longest_hidden_ns = 0
        self._cpus: dict[int, _Cpu] = {}
        self._gaps_of = gaps
        self._gaps = all_gaps
        self._has_wakings, self._has_wakes, self._has_new = wakings

    def _thread(self, tid: int, cpu: int) -> Thread:
        """Return the thread of an id; after the last switch of a task it is that of another."""
        thread = self.threads.find(tid, cpu)
        if thread.state != NONE and self.names.classes[thread.state] is StateClass.DEAD:
            self.threads.end(thread, None)
            thread = self.threads.find(tid, cpu)
        return thread

    def _is_runnable(self, thread: Thread) -> bool:
        return thread.state != NONE and self.names.classes[thread.state] is StateClass.RUNNABLE

    # Each CPU.

    def switch(self, ts: int, cpu: int, switch: TaskSwitch) -> tuple[Thread, Thread]:
        """Take a sched_switch; return the threads that it names."""
        place = self._cpus.get(cpu)
        if place is None:
            place = self._cpus[cpu] = _Cpu()
        state = self.names.number(switch.prev_state)
        prev = self._thread(switch.prev_tid, cpu)
        is_here = self._leave_cpu(place, prev, ts, cpu, state)
        if switch.prev_tid != IDLE:
            self._sleep(prev, ts, cpu, state, is_here=is_here, is_first=place.seen is None)
        after = self._thread(switch.next_tid, cpu)
        place.thread, place.seen = after, ts
        place.row = self.runs.open(ts, cpu, after.utid, switch.next_priority)
        if switch.next_tid != IDLE:
            self._run(after, ts, cpu, switch.next_priority)
        return prev, after

    def _leave_cpu(self, place: _Cpu, prev: Thread, ts: int, cpu: int, state: int) -> bool:
        """End what a CPU ran, at the switch or at a loss; return whether it is known to be what leaves.

        Where another thread leaves, a switch was lost, and it is not known when it was.
        """
        runs, running = self.runs, place.thread
        if running is None or self._ends_at_loss(place, cpu, ts):
            return False
        if running is prev:
            runs.dur[place.row] = span_ns(runs.ts[place.row], ts)
            runs.end[place.row] = state
            return True
        self.n_lost_switches += 1
        place.lost_ns += span_ns(runs.ts[place.row], ts)
        runs.flags[place.row] |= _CUT
        if running.state == RUNNING and running.cpu == cpu:
            self._forget(running)
        return False

    def _ends_at_loss(self, place: _Cpu, cpu: int, ts: int) -> bool:
        """End what a CPU ran where its next loss begins; return whether that is before `ts`."""
        if place.seen is None or cpu not in self._gaps_of:
            return False
        gap = self._gaps_of[cpu].first_after(place.seen)
        if gap is None or gap[0] >= ts:
            return False
        at = max(gap[0], place.seen)
        self.runs.dur[place.row] = span_ns(self.runs.ts[place.row], at)
        self.runs.flags[place.row] |= _CUT
        place.lost_ns += span_ns(at, ts)
        return True

    # Each thread.

    def _forget(self, thread: Thread) -> None:
        """Leave a thread's row without an end: it is not known when it was."""
        if thread.row != NONE:
            self.states.flags[thread.row] |= _CUT
        thread.state = thread.row = thread.cpu = thread.pending = NONE

    def _settle(self, thread: Thread, ts: int) -> None:
        """End a thread's row at the first loss that can hide its end, before a record at `ts` is taken.

        A thread that runs is known by its CPU; of any other the lost events of any CPU may tell.
        """
        if thread.state == NONE:
            return
        finder = self._gaps_of.get(thread.cpu) if thread.state == RUNNING else self._gaps
        gap = finder.first_after(thread.seen) if finder is not None else None
        if gap is None or gap[0] >= ts:
            return
        states, row, at = self.states, thread.row, max(gap[0], thread.seen)
        states.dur[row] = span_ns(states.ts[row], at)
        states.flags[row] |= _CUT
        if thread.unknown_since is None:
            thread.unknown_since = states.ts[row] if self._is_runnable(thread) else at
        thread.state = thread.row = thread.cpu = thread.pending = NONE

    def _known_again(self, thread: Thread, ts: int) -> None:
        if thread.unknown_since is not None:
            self.longest_hidden_ns = max(self.longest_hidden_ns, span_ns(thread.unknown_since, ts))
            thread.unknown_since = None

    def _close(self, thread: Thread, ts: int, flags: int = 0) -> None:
        row = thread.row
        self.states.dur[row] = span_ns(self.states.ts[row], ts)
        self.states.flags[row] |= flags

    def _open(self, thread: Thread, ts: int, state: int, *, cpu: int = NONE) -> None:
        thread.state, thread.seen, thread.cpu = state, ts, cpu
        thread.row = self.states.open(ts, cpu, thread.utid, state)

    def _sleep(self, thread: Thread, ts: int, cpu: int, state: int, *, is_here: bool, is_first: bool) -> None:
        """Take that a thread leaves a CPU in a state: asleep, runnable or dead."""
        self._settle(thread, ts)
        thread.is_new = False
        pending = thread.pending
        if thread.state == RUNNING:
            if thread.cpu != cpu:
                # It began to run on another CPU before it left this one.
                self.overlap_ns += span_ns(self.states.ts[thread.row], ts) if is_here else 0
                return
            self._close(thread, ts)
        elif thread.state != NONE:
            if is_here:
                # It left another CPU before this one, on which it was all the while.
                self.overlap_ns += span_ns(thread.seen, ts)
            # It ran here unseen; at the first switch of a CPU since before, so that a waking was spurious.
            if is_first and self.states.flags[thread.row] & _WOKEN:
                row = thread.row
                pending = self.spurious.add(
                    self.states.ts[row], row, self.states.irq[row], thread.utid, self.states.waker[row]
                )
            self._forget(thread)
        self._known_again(thread, ts)
        thread.last_cpu = cpu
        self._open(thread, ts, state)
        thread.pending = NONE if self._is_runnable(thread) else pending

    def _run(self, thread: Thread, ts: int, cpu: int, priority: int) -> None:
        """Take that a thread begins to run."""
        self._settle(thread, ts)
        thread.is_new = False
        if thread.state == RUNNING:
            self._close(thread, ts)
        elif thread.state == NONE:
            self.n_dropped += thread.unknown_since is not None
        elif self._is_runnable(thread):
            self.n_dropped += self.states.flags[thread.row] & (_CUT | _LATE) != 0
            self._close(thread, ts, _RAN)
            self.states.priority[thread.row] = priority
        else:
            self._close(thread, ts, _UNSEEN if self._has_wakes else 0)
            if self._has_wakes:
                self.n_unseen_wakes += 1
                self.longest_hidden_ns = max(self.longest_hidden_ns, self.states.dur[thread.row])
        self._known_again(thread, ts)
        if thread.last_cpu not in (NONE, cpu):
            thread.cpu_changes += 1
        thread.last_cpu, thread.pending = cpu, NONE
        self._open(thread, ts, RUNNING, cpu=cpu)

    def waking(self, ts: int, cpu: int, tid: int, waker_tid: int, flags: int) -> Thread:
        """Take a sched_waking."""
        thread, waker, irq = self._woken(ts, cpu, tid, waker_tid, flags)
        if thread.state == RUNNING or self._is_runnable(thread):
            found = self.spurious.add(ts, thread.row, irq, thread.utid, waker)
            thread.pending = found if thread.state == RUNNING else NONE
        else:
            self._wake(thread, ts, (waker, irq), _WOKEN)
            thread.owes_wakeup = True
        return thread

    def _woken(self, ts: int, cpu: int, tid: int, waker_tid: int, flags: int) -> tuple[Thread, int, int]:
        thread = self._thread(tid, cpu)
        self._settle(thread, ts)
        return thread, self.threads.find(waker_tid, cpu).utid, int(flags & _IN_IRQ != 0)

    def _wake(self, thread: Thread, ts: int, source: tuple[int, int], flags: int) -> None:
        """Make a thread runnable; `source` is who woke it, and whether in an interrupt."""
        if thread.state != NONE:
            self._close(thread, ts)
        elif thread.unknown_since is not None:
            flags |= _CUT
        thread.state, thread.seen, thread.pending = RUNNABLE, ts, NONE
        thread.row = self.states.open(ts, NONE, thread.utid, RUNNABLE, source=source, flags=flags)

    def wakeup(self, ts: int, cpu: int, tid: int, waker_tid: int, flags: int) -> Thread:
        """Take a sched_wakeup."""
        thread, waker, irq = self._woken(ts, cpu, tid, waker_tid, flags)
        states, pending, is_owed = self.states, thread.pending, thread.owes_wakeup
        thread.owes_wakeup = False
        if thread.state == RUNNING:
            thread.pending = NONE
        elif thread.state == NONE:
            # With wakings its own is not there: it is not known since when it was runnable.
            if not self._has_wakings:
                self._wake(thread, ts, (waker, irq), _WOKEN)
        elif not self._is_runnable(thread):
            if pending == NONE and is_owed and ts == thread.seen:
                # That of the waking before: it ran and slept since, with a clock that stood still.
                return thread
            if pending == NONE and self._has_wakings:
                # Its waking is not there: it may have been runnable for some of the time that it slept.
                states.flags[thread.row] |= _UNSEEN
                if thread.unknown_since is None:
                    thread.unknown_since = states.ts[thread.row]
                self._wake(thread, ts, (waker, irq), _WOKEN | _LATE)
            elif pending == NONE:
                self._wake(thread, ts, (waker, irq), _WOKEN)
            else:
                # Case a: it never slept.
                row, spurious = thread.row, self.spurious
                states.state[row], states.flags[row] = RUNNABLE, states.flags[row] | _WOKEN
                states.waker[row], states.irq[row] = spurious.waker[pending], spurious.irq[pending]
                spurious.utid[pending] = NONE
                thread.state, thread.seen, thread.pending = RUNNABLE, ts, NONE
        return thread

    # Tasks that begin and end.

    def new(self, ts: int, cpu: int, tid: int, waker_tid: int, flags: int) -> Thread:
        """Take a task_newtask or sched_process_fork."""
        thread = self.threads.begin(tid, ts)
        if not self._has_new and thread.state == NONE:
            waker = self.threads.find(waker_tid, cpu).utid
            self._wake(thread, ts, (waker, int(flags & _IN_IRQ != 0)), _NEW | _LATE)
        return thread

    def wakeup_new(self, ts: int, cpu: int, tid: int, waker_tid: int, flags: int) -> Thread:
        """Take a sched_wakeup_new."""
        thread = self.threads.begin(tid, ts)
        thread.is_new = False
        if thread.state == NONE:
            waker = self.threads.find(waker_tid, cpu).utid
            self._wake(thread, ts, (waker, int(flags & _IN_IRQ != 0)), _NEW)
        return thread

    def free(self, ts: int, tid: int) -> None:
        """Take a sched_process_free: the task is gone, unless its id was already given to another."""
        thread = self.threads.known(tid)
        if thread is None:
            return
        self._settle(thread, ts)
        if thread.is_new or thread.state == RUNNING or self._is_runnable(thread):
            return
        if thread.state != NONE:
            self._close(thread, ts)
        thread.state = thread.row = NONE
        self.threads.end(thread, ts)

    def migrate(self, cpu: int, tid: int) -> None:
        """Take a sched_migrate_task."""
        self._thread(tid, cpu).migrations += 1

    def closed(self) -> ClosedRows:
        """Return the rows that no record can change any more, and forget them."""
        places = [place for place in self._cpus.values() if place.seen is not None]
        threads, held = self.threads.all, self._held()
        _split(self.spurious, [thread for thread in threads if thread.pending != NONE], "pending")
        runs = _split(self.runs, places, "row")
        states = _split(self.states, [thread for thread in threads if thread.row != NONE], "row")
        return ClosedRows(runs, states, self.threads.rows(), self.names, held)

    def _held(self) -> HeldRows:
        states, spurious = self.states, self.spurious
        found = []
        for thread in self.threads.all:
            if (row := thread.row) != NONE:
                is_early = thread.pending != NONE and thread.state != RUNNING
                source, at = (spurious, thread.pending) if is_early else (states, row)
                facts = states.ts[row], thread.utid, states.state[row], states.flags[row]
                found.append((*facts, source.waker[at], source.irq[at]))
        return HeldRows(*(zip(*found, strict=True) if found else ((),) * 6))

    def finish(self, ts: int, words: Sequence[str], saved: Mapping[int, str]) -> SchedRows:
        """End at the last record: what is open stays open, unless a loss hides whether it is."""
        for cpu, place in self._cpus.items():
            self._ends_at_loss(place, cpu, ts)
        for thread in self.threads.all:
            self._settle(thread, ts)
            self._known_again(thread, ts)
        counts = SchedCounts(
            self.n_lost_switches,
            self.n_unseen_wakes,
            self.n_dropped,
            self.overlap_ns,
            sum(place.lost_ns for place in self._cpus.values()),
            self.longest_hidden_ns,
        )
        spurious, threads = self.spurious.without_none(), self.threads.rows()
        return SchedRows(self.runs, self.states, spurious, threads, counts, self.names, words, saved)


def _split(rows: Rows, holders: Collection[Thread | _Cpu], name: str) -> Rows:
    """Keep the rows that attributes of some objects are the numbers of, under new ones; return the others."""
    kept = sorted(getattr(holder, name) for holder in holders)
    place = {row: at for at, row in enumerate(kept)}
    columns: list[array[int]] = list(vars(rows).values())
    others = (array(c.typecode, (value for row, value in enumerate(c) if row not in place)) for c in columns)
    closed = type(rows)(*others)
    for column in columns:
        column[:] = array(column.typecode, (column[row] for row in kept))
    for holder in holders:
        setattr(holder, name, place[getattr(holder, name)])
    return closed
