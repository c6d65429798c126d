"""Page faults as sections: by kind, by task, by region, by instruction, and how long they took."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tracepoint.analysis.faults.machine import FaultCode, FaultOutcome, Waiting, access_of, cause_of
from tracepoint.analysis.sections import RATE, TASK, DistributionSection, Heading, N, Unit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.analysis.distribution import Distribution
    from tracepoint.analysis.faults.machine import FaultMachine
    from tracepoint.analysis.faults.mappings import MappedRegion
    from tracepoint.analysis.grouping import Grouping
    from tracepoint.analysis.sections import TableSection, Value

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


def kind_section(group: Grouping, machine: FaultMachine) -> TableSection:
    """Return how many faults there were of each kind."""
    n = len(group.rows) or 1

    def key(row: int) -> tuple[str, ...]:
        code = machine.code[row]
        memory = "kernel" if machine.address[row] >= _UPPER_HALF else "user"
        return "kernel" if machine.is_kernel[row] else "user", access_of(code), cause_of(code), memory

    rows: list[tuple[Value, ...]] = [
        (group.bound(count), group.rate(count), count / n, *names) for names, count in group.by(key)
    ]
    return group.choice.table("kinds", "Page faults", _KINDS, rows, _EVENTS)


def outcome_name(outcome: int) -> str:
    """Return the name of an outcome; empty where it is not known."""
    return FaultOutcome(outcome).name.lower() if outcome else ""


def outcome_section(
    group: Grouping, machine: FaultMachine, ends: Sequence[str], *, has_waits: bool
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
            for outcome, count in group.by(lambda row: machine.outcome[row])
        ]  # fmt: skip
    if has_waits:
        count = sum(machine.waiting[row] == Waiting.SLEPT for row in group.rows)
        n_unsure = len(machine.unsure.intersection(group.rows))
        rows.append((group.bound(count, n_unsure), count / n, "major, inferred: read, then waited"))
    return group.choice.table("outcomes", "Outcomes", _OUTCOMES, rows, (*_EVENTS, *ends))


def task_section(group: Grouping, machine: FaultMachine, *, has_ends: bool) -> TableSection:
    """Return which tasks had the most faults."""
    records = group.records
    kernel: Counter[int] = Counter()
    write: Counter[int] = Counter()
    fetch: Counter[int] = Counter()
    major: Counter[int] = Counter()
    cut: Counter[int] = Counter()
    for row in group.rows:
        tid, code = machine.tid[row], machine.code[row]
        kernel[tid] += machine.is_kernel[row]
        write[tid] += bool(code & FaultCode.WRITE)
        fetch[tid] += bool(code & FaultCode.FETCH)
        major[tid] += machine.outcome[row] == FaultOutcome.MAJOR
        cut[tid] += row in machine.cut
    rows = [
        (
            group.bound(n), group.rate(n),
            *map(group.bound, (n - kernel[tid], kernel[tid], write[tid], fetch[tid])),
            group.bound(major[tid], cut[tid]) if has_ends else None, records.task(tid), tid,
            machine.process_of(tid),
        )
        for tid, n in group.by(lambda row: machine.tid[row])
    ]  # fmt: skip
    return group.choice.table("tasks", "Tasks", _TASKS, rows, _EVENTS)


def process_section(group: Grouping, machine: FaultMachine) -> TableSection:
    """Return which processes had the most faults; nothing where processes were not recorded."""
    records = group.records
    tasks: dict[int, set[int]] = {}
    for row in group.rows if records.processes else ():
        tasks.setdefault(machine.process[row], set()).add(machine.tid[row])
    found = group.by(lambda row: machine.process[row]) if records.processes else []
    rows = [(group.bound(n), group.rate(n), len(tasks[pid]), records.task(pid), pid) for pid, n in found]
    return group.choice.table("processes", "Processes", _PROCESSES, rows, _EVENTS)


def region_section(group: Grouping, machine: FaultMachine, *, has_mappings: bool) -> TableSection:
    """Return which parts of address spaces had the most faults.

    After a loss it is not known what is mapped, until it is mapped again: such faults may be of any region.
    """
    records = group.records
    unsure: Counter[tuple[MappedRegion, int]] = Counter()
    of_process: Counter[int] = Counter()
    for row in group.rows if has_mappings else ():
        if not machine.is_region_sure(row):
            unsure[machine.regions[row], machine.process[row]] += 1
            of_process[machine.process[row]] += 1
    found = group.by(lambda row: (machine.regions[row], machine.process[row]))
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


def place_section(group: Grouping, machine: FaultMachine) -> TableSection:
    """Return which instructions had the most faults; those of programs have no names."""
    records = group.records

    def key(row: int) -> tuple[int, str, int]:
        return machine.ip[row], access_of(machine.code[row]), machine.process[row]

    rows = [
        (group.bound(n), ip, records.function(ip) or "-", access, records.task(pid), pid)
        for (ip, access, pid), n in group.by(key)
    ]
    return group.choice.table("places", "Instructions", _PLACES, rows, _EVENTS)


def latency_section(groups: Mapping[str, Distribution], ends: Sequence[str]) -> DistributionSection:
    """Return how long faults took, by what became of them."""
    return DistributionSection("latency_ns", "Time of a fault", groups, "outcome", events=(*_EVENTS, *ends))
