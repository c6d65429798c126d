"""Sums over the rows of scheduling, which add up part by part: in C, or with the twins here."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from tracepoint.analysis.sched.rows import NONE, OPEN, RowFlag, StateClass
from tracepoint.analysis.sched.threads import IDLE
from tracepoint.analysis.sched.waits import Waits
from tracepoint.decode.numbers import numbers_of, view_numbers
from tracepoint.named import NamedTuple
from tracepoint.record.decode import DECODE

if TYPE_CHECKING:
    from tracepoint.analysis.sched.rows import AnyRows

_UNSEEN = RowFlag.UNSEEN_WAKE


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


class SchedSums:
    """What a report says of all rows, added up of parts of them, so that the parts need not stay.

    `states` are by thread and state; of `ends`, a thread has how often it left a CPU by itself, and how often
    it could run on.
    """

    def __init__(self) -> None:
        self._cpus: dict[int, CpuSum] = {}
        self._states: dict[tuple[int, int], StateSum] = {}
        self._ends = array("q")
        self.waits = Waits()

    def add(self, rows: AnyRows) -> None:
        """Add rows that no record can change any more."""
        for cpu in sum_cpus(rows):
            busy, idle, n = self._cpus.get(cpu.cpu, cpu._replace(busy=0, idle=0, n_rows=0))[1:]
            self._cpus[cpu.cpu] = CpuSum(cpu.cpu, busy + cpu.busy, idle + cpu.idle, n + cpu.n_rows)
        for found in sum_states(rows):
            key = found[:2]
            ns, n_known, n = self._states.get(key, found._replace(ns=0, n_known=0, n_rows=0))[2:]
            self._states[key] = StateSum(*key, ns + found.ns, n_known + found.n_known, n + found.n_rows)
        ends = count_ends(rows)
        self._ends.extend(array("q", bytes(8 * (len(ends) - len(self._ends)))))
        for at, n in enumerate(ends):
            self._ends[at] += n
        self.waits.add(rows)

    @property
    def cpus(self) -> list[CpuSum]:
        """What each CPU did, by its number."""
        return sorted(self._cpus.values())

    @property
    def states(self) -> list[StateSum]:
        """How long each thread was in each state."""
        return list(self._states.values())

    def ends(self, utid: int) -> tuple[int, int]:
        """Return how often a thread left a CPU by itself, and how often it could run on."""
        return self._ends[2 * utid], self._ends[2 * utid + 1]


def sum_cpus(rows: AnyRows) -> list[CpuSum]:
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


def sum_states(rows: AnyRows) -> list[StateSum]:
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


def count_ends(rows: AnyRows) -> memoryview[int]:
    """Return how often each thread left a CPU by itself, and how often it could run on: two numbers each."""
    runs, classes, n_threads = rows.runs, rows.names.classes, len(rows.threads.tid)
    if DECODE is not None:
        return view_numbers(DECODE.sched_ends(runs.utid, runs.end, bytes(classes), n_threads), "q")
    counts = array("q", bytes(16 * n_threads))
    for utid, end in zip(runs.utid, runs.end, strict=True):
        if end != NONE:
            counts[2 * utid + (classes[end] is StateClass.RUNNABLE)] += 1
    return numbers_of(counts, "q")
