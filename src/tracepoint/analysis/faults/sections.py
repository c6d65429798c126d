"""Page faults as sections: by kind, by task, by region, by instruction, and how long they took."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeVar

from tracepoint.analysis.faults.machine import FaultCode, FaultOutcome, Waiting, access_of, cause_of
from tracepoint.analysis.grouping import most_common
from tracepoint.analysis.sections import RATE, TASK, DistributionSection, Heading, N, Unit
from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tracepoint.analysis.distribution import Distribution
    from tracepoint.analysis.faults.machine import FaultMachine
    from tracepoint.analysis.faults.mappings import MappedRegion
    from tracepoint.analysis.grouping import Grouping
    from tracepoint.analysis.sections import TableSection, Value

K = TypeVar("K")
_EVENTS = ("exceptions:page_fault_user", "exceptions:page_fault_kernel")
_UPPER_HALF = 1 << 63
_SHARE = Heading("share", "share", Unit.SHARE)
_KINDS = (
    N, RATE, _SHARE, Heading("mode", "mode", Unit.WORD), Heading("access", "access", Unit.WORD),
    Heading("cause", "cause", Unit.WORD), Heading("memory", "address", Unit.WORD),
)  # fmt: skip
_TASKS = (
    N, RATE, Heading("n_user", "user"), Heading("n_kernel", "kernel"), Heading("n_write", "write"),
    Heading("n_fetch", "fetch"), Heading("n_major", "major"), *TASK,
    Heading("process", "", Unit.NUMBER),
)  # fmt: skip
_PROCESSES = (
    N, RATE, Heading("n_tasks", "tasks"), Heading("process", "process", Unit.WORD),
    Heading("pid", "", Unit.NUMBER),
)  # fmt: skip
_REGIONS = (
    N, Heading("start", "start", Unit.ADDRESS), Heading("size", "size", Unit.SIZE),
    Heading("kind", "kind", Unit.WORD), Heading("process", "process", Unit.WORD),
    Heading("pid", "", Unit.NUMBER),
)  # fmt: skip
_PLACES = (
    N, Heading("ip", "ip", Unit.ADDRESS), Heading("function", "function", Unit.WORD),
    Heading("access", "access", Unit.WORD), Heading("process", "process", Unit.WORD),
    Heading("pid", "", Unit.NUMBER),
)  # fmt: skip
_OUTCOMES = (N, _SHARE, Heading("outcome", "outcome", Unit.WORD))


class FaultCounts:
    """How many of the chosen faults are equal in all that sections tell apart."""

    def __init__(self, group: Grouping, machine: FaultMachine) -> None:
        columns = (
            machine.tid, machine.process, machine.ip, machine.code, machine.is_kernel, machine.outcome,
            machine.waiting, machine.region,
        )  # fmt: skip
        self._counts = {EqualFaults(*own): n for own, n in group.counts(*columns).items()}

    def by(self, key: Callable[[EqualFaults], K]) -> list[tuple[K, int]]:
        """Return how many faults have each key, the most first."""
        return most_common(self._counts, key)

    def sum(self, is_one: Callable[[EqualFaults], bool], of: Callable[[EqualFaults], int]) -> Counter[int]:
        """Return how many faults are of a kind, by what they are of."""
        found: Counter[int] = Counter()
        for own, n in self._counts.items():
            if is_one(own):
                found[of(own)] += n
        return found


class EqualFaults(NamedTuple):
    """What sections tell faults apart by; `region` is the number of one of `known_regions`."""

    tid: int
    process: int
    ip: int
    code: int
    is_kernel: int
    outcome: int
    waiting: int
    region: int


def kind_section(group: Grouping, machine: FaultMachine, counts: FaultCounts) -> TableSection:
    """Return how many faults there were of each kind."""
    n = len(group.rows) or 1

    def key(own: EqualFaults) -> tuple[str, ...]:
        memory = "kernel" if machine.known_regions[own.region].start >= _UPPER_HALF else "user"
        return "kernel" if own.is_kernel else "user", access_of(own.code), cause_of(own.code), memory

    rows: list[tuple[Value, ...]] = [
        (group.bound(count), group.rate(count), count / n, *names) for names, count in counts.by(key)
    ]
    return group.choice.table("kinds", "Page faults", _KINDS, rows, _EVENTS)


def outcome_name(outcome: int) -> str:
    """Return the name of an outcome; empty where it is not known."""
    return FaultOutcome(outcome).name.lower() if outcome else ""


def outcome_section(
    group: Grouping, machine: FaultMachine, counts: FaultCounts, ends: Sequence[str], *, has_waits: bool
) -> TableSection:
    """Return how many faults were minor and major, as recorded or as it seems."""
    n = len(group.rows) or 1
    rows: list[tuple[Value, ...]] = []
    if ends:
        n_cut = len(machine.cut.intersection(group.rows))
        rows = [
            (
                group.bound(count, n_cut) if outcome else group.bound(count)._replace(low=count - n_cut),
                count / n, outcome_name(outcome) or "end not recorded",
            )
            for outcome, count in counts.by(lambda own: own.outcome)
        ]  # fmt: skip
    if has_waits:
        count = dict(counts.by(lambda own: own.waiting)).get(Waiting.SLEPT, 0)
        n_unsure = len(machine.unsure.intersection(group.rows))
        rows.append((group.bound(count, n_unsure), count / n, "major, inferred: read, then waited"))
    return group.choice.table("outcomes", "Outcomes", _OUTCOMES, rows, (*_EVENTS, *ends))


def task_section(
    group: Grouping, machine: FaultMachine, counts: FaultCounts, *, has_ends: bool
) -> TableSection:
    """Return which tasks had the most faults."""
    records = group.records
    kernel, write, fetch, major = (
        counts.sum(is_one, lambda own: own.tid)
        for is_one in (
            lambda own: bool(own.is_kernel),
            lambda own: bool(own.code & FaultCode.WRITE),
            lambda own: bool(own.code & FaultCode.FETCH),
            lambda own: own.outcome == FaultOutcome.MAJOR,
        )
    )
    cut = Counter(machine.tid[row] for row in machine.cut.intersection(group.rows))
    rows = [
        (
            group.bound(n), group.rate(n),
            *map(group.bound, (n - kernel[tid], kernel[tid], write[tid], fetch[tid])),
            group.bound(major[tid], cut[tid]) if has_ends else None, records.task(tid), tid,
            machine.process_of(tid),
        )
        for tid, n in counts.by(lambda own: own.tid)
    ]  # fmt: skip
    return group.choice.table("tasks", "Tasks", _TASKS, rows, _EVENTS)


def process_section(group: Grouping, counts: FaultCounts) -> TableSection:
    """Return which processes had the most faults; nothing where processes were not recorded."""
    records = group.records
    tasks: Counter[int] = Counter()
    found: list[tuple[int, int]] = []
    if records.processes:
        tasks.update(process for (process, _tid), _n in counts.by(lambda own: (own.process, own.tid)))
        found = counts.by(lambda own: own.process)
    rows = [(group.bound(n), group.rate(n), tasks[pid], records.task(pid), pid) for pid, n in found]
    return group.choice.table("processes", "Processes", _PROCESSES, rows, _EVENTS)


def region_section(
    group: Grouping, machine: FaultMachine, counts: FaultCounts, *, has_mappings: bool
) -> TableSection:
    """Return which parts of address spaces had the most faults.

    After a loss it is not known what is mapped, until it is mapped again: such faults may be of any region.
    """
    records = group.records
    unsure: Counter[tuple[MappedRegion, int]] = Counter()
    of_process: Counter[int] = Counter()
    for row in group.rows if has_mappings and machine.has_losses else ():
        if not machine.is_region_sure(row):
            unsure[machine.region_at(row), machine.process[row]] += 1
            of_process[machine.process[row]] += 1
    found = counts.by(lambda own: (machine.known_regions[own.region], own.process))
    rows = [
        (
            group.bound(n, of_process[pid])._replace(low=n - unsure[region, pid]),
            region.start,
            region.stop - region.start,
            region.kind,
            records.task(pid),
            pid,
        )
        for (region, pid), n in found
    ]
    return group.choice.table("regions", "Regions", _REGIONS, rows, _EVENTS)


def place_section(group: Grouping, counts: FaultCounts) -> TableSection:
    """Return which instructions had the most faults; those of programs have no names."""
    records = group.records

    def key(own: EqualFaults) -> tuple[int, str, int]:
        return own.ip, access_of(own.code), own.process

    rows = [
        (group.bound(n), ip, records.function(ip) or "-", access, records.task(pid), pid)
        for (ip, access, pid), n in counts.by(key)
    ]
    return group.choice.table("places", "Instructions", _PLACES, rows, _EVENTS)


def latency_section(groups: Mapping[str, Distribution], ends: Sequence[str]) -> DistributionSection:
    """Return how long faults took, by what became of them."""
    return DistributionSection("latency_ns", "Time of a fault", groups, "outcome", events=(*_EVENTS, *ends))
