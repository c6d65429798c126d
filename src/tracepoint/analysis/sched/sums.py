"""Sums over the rows of scheduling, and the latencies among them: in C, or with the twins here."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, NamedTuple

from tracepoint.analysis.sched.rows import NONE, OPEN, RUNNING, RowFlag, StateClass
from tracepoint.analysis.sched.threads import IDLE
from tracepoint.decode.numbers import numbers_of, view_numbers
from tracepoint.record.decode import DECODE

if TYPE_CHECKING:
    from collections.abc import Collection

    from tracepoint.analysis.sched.rows import SchedRows

#: Why threads waited for a CPU, in the order in which they are shown; the C module has a bit for each.
CAUSES = ("wake-up", "preemption", "yield", "new task")
_UNSEEN = RowFlag.UNSEEN_WAKE
_EXACT = RowFlag.RAN | RowFlag.CUT | RowFlag.LATE
_WOKEN, _NEW, _PREEMPTED, _YIELDED = 1, 8, 2, 4


class CpuSum(NamedTuple):
    """How long a CPU ran tasks and idled in ns, and how many rows it has."""

    cpu: int
    busy: int
    idle: int
    n_rows: int


class StateSum(NamedTuple):
    """How long a thread was in a state in ns: of `n_rows` rows, `n_known` whose length is known."""

    utid: int
    state: int
    ns: int
    n_known: int
    n_rows: int


def sum_cpus(rows: SchedRows) -> list[CpuSum]:
    """Return what each CPU did, in the order in which they come."""
    runs, tids = rows.runs, rows.threads.tid
    if DECODE is not None:
        return [CpuSum(*found) for found in DECODE.sched_cpu_sums(runs.dur, runs.cpu, runs.utid, tids)]
    sums: dict[int, list[int]] = {}
    for dur, cpu, utid in zip(runs.dur, runs.cpu, runs.utid, strict=True):
        own = sums.setdefault(cpu, [0, 0, 0])
        own[2] += 1
        if dur != OPEN:
            own[tids[utid] == IDLE] += dur
    return [CpuSum(cpu, *own) for cpu, own in sums.items()]


def sum_states(rows: SchedRows) -> list[StateSum]:
    """Return how long each thread was in each state, in the order in which they come.

    Of a sleep that ended without a wake-up it is not known how long it was.
    """
    states = rows.states
    if DECODE is not None:
        found = DECODE.sched_task_sums(states.dur, states.utid, states.state, states.flags)
        return [StateSum(*one) for one in found]
    sums: dict[tuple[int, int], list[int]] = {}
    for dur, utid, state, flags in zip(states.dur, states.utid, states.state, states.flags, strict=True):
        own = sums.setdefault((utid, state), [0, 0, 0])
        own[2] += 1
        if dur != OPEN and not flags & _UNSEEN:
            own[0] += dur
            own[1] += 1
    return [StateSum(*key, *own) for key, own in sums.items()]


def count_ends(rows: SchedRows) -> memoryview[int]:
    """Return how often each thread left a CPU by itself, and how often it could run on: two numbers each."""
    runs, classes, n_threads = rows.runs, rows.names.classes, len(rows.threads.tid)
    if DECODE is not None:
        return view_numbers(DECODE.sched_ends(runs.utid, runs.end, bytes(classes), n_threads), "q")
    counts = array("q", bytes(16 * n_threads))
    for utid, end in zip(runs.utid, runs.end, strict=True):
        if end != NONE:
            counts[2 * utid + (classes[end] is StateClass.RUNNABLE)] += 1
    return numbers_of(counts, "q")


def find_waits(
    rows: SchedRows, causes: Collection[str], utids: Collection[int] | None = None
) -> tuple[memoryview[int], memoryview[int]]:
    """Return which threads waited before they ran, for some of CAUSES, and for how long in ns.

    `utids` chooses threads.
    """
    states, names, chosen = rows.states, rows.names.names, _chosen(rows, utids)
    wanted = sum(1 << CAUSES.index(cause) for cause in causes)
    preempted = bytes(name == "R+" for name in names)
    columns = states.dur, states.utid, states.state, states.flags
    if DECODE is not None:
        threads, waits = DECODE.sched_waits(*columns, preempted, wanted, chosen)
        return view_numbers(threads, "i"), view_numbers(waits, "q")
    found = [
        (utid, dur)
        for dur, utid, state, flags in zip(*columns, strict=True)
        if _cause_of(flags, preempted[state]) & wanted and chosen[utid]
    ]
    return numbers_of((utid for utid, _ in found), "i"), numbers_of((dur for _, dur in found), "q")


def find_class_waits(
    rows: SchedRows, utids: Collection[int] | None = None
) -> tuple[memoryview[int], memoryview[int]]:
    """Return with which priority threads ran after each time that they waited, and how long that was in ns.

    `utids` chooses threads.
    """
    states, runs, chosen = rows.states, rows.runs, _chosen(rows, utids)
    columns = states.dur, states.utid, states.state, states.flags
    if DECODE is not None:
        found = DECODE.sched_class_waits(*columns, runs.utid, runs.priority, chosen)
        return view_numbers(found[0], "i"), view_numbers(found[1], "q")
    priorities, waits, last = array("i"), array("q"), dict[int, tuple[int, int]]()
    ran = iter(zip(runs.utid, runs.priority, strict=True))
    for dur, utid, state, flags in zip(*columns, strict=True):
        if state == RUNNING:
            # The switch that began the row began a run; between them are those of idle threads.
            priority = next(priority for run_utid, priority in ran if run_utid == utid)
            before = last.get(utid)
            if before is not None and chosen[utid] and _cause_of(before[1], False):
                priorities.append(priority)
                waits.append(before[0])
        last[utid] = dur, flags
    return numbers_of(priorities, "i"), numbers_of(waits, "q")


def _chosen(rows: SchedRows, utids: Collection[int] | None) -> bytearray:
    """Return a byte for each thread, 1 for those that are chosen; None: all."""
    n_threads = len(rows.threads.tid)
    chosen = bytearray(b"\1" * n_threads if utids is None else n_threads)
    for utid in utids or ():
        if 0 <= utid < n_threads:
            chosen[utid] = 1
    return chosen


def _cause_of(flags: int, is_preempted: int) -> int:
    """Return why a thread waited until it ran; 0 where a row is no such time, or its length is not exact."""
    if flags & _EXACT != RowFlag.RAN:
        return 0
    if flags & RowFlag.WOKEN:
        return _WOKEN
    if flags & RowFlag.NEW:
        return _NEW
    return _PREEMPTED if is_preempted else _YIELDED
