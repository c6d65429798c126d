"""Page faults as sections: by kind, by task, by region, by instruction, and how long they took."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tracepoint.analysis.faults.machine import Doubt, FaultCode, FaultOutcome, Waiting, access_of, cause_of
from tracepoint.analysis.sections import RATE, TASK, DistributionSection, Heading, N, Unit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.analysis.distribution import Samples
    from tracepoint.analysis.faults.mappings import MappedRegion
    from tracepoint.analysis.faults.sums import EqualFaults, FaultSums
    from tracepoint.analysis.grouping import ChosenFigures
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


def kind_section(figures: ChosenFigures, sums: FaultSums, regions: Sequence[MappedRegion]) -> TableSection:
    """Return how many faults there were of each kind."""
    n = sums.n or 1

    def key(own: EqualFaults) -> tuple[str, ...]:
        memory = "kernel" if regions[own.region].start >= _UPPER_HALF else "user"
        return "kernel" if own.is_kernel else "user", access_of(own.code), cause_of(own.code), memory

    rows: list[tuple[Value, ...]] = [
        (figures.bound(count), figures.rate(count), count / n, *names) for names, count in sums.by(key)
    ]
    return figures.choice.table("kinds", "Page faults", _KINDS, rows, _EVENTS)


def outcome_name(outcome: int) -> str:
    """Return the name of an outcome; empty where it is not known."""
    return FaultOutcome(outcome).name.lower() if outcome else ""


def outcome_section(
    figures: ChosenFigures, sums: FaultSums, ends: Sequence[str], *, has_waits: bool
) -> TableSection:
    """Return how many faults were minor and major, as recorded or as it seems."""
    n = sums.n or 1
    doubts = dict(sums.by(lambda own: own.doubt))
    rows: list[tuple[Value, ...]] = []
    if ends:
        n_cut = sum(count for doubt, count in doubts.items() if doubt & Doubt.CUT)
        rows = [
            (
                figures.bound(count, n_cut) if outcome else figures.bound(count)._replace(low=count - n_cut),
                count / n, outcome_name(outcome) or "end not recorded",
            )
            for outcome, count in sums.by(lambda own: own.outcome)
        ]  # fmt: skip
    if has_waits:
        count = dict(sums.by(lambda own: own.waiting)).get(Waiting.SLEPT, 0)
        n_unsure = sum(count for doubt, count in doubts.items() if doubt & Doubt.WAIT)
        rows.append((figures.bound(count, n_unsure), count / n, "major, inferred: read, then waited"))
    return figures.choice.table("outcomes", "Outcomes", _OUTCOMES, rows, (*_EVENTS, *ends))


def task_section(figures: ChosenFigures, sums: FaultSums, *, has_ends: bool) -> TableSection:
    """Return which tasks had the most faults."""
    records, bound = figures.records, figures.bound
    kernel, write, fetch, major, cut = (
        sums.sum(is_one, lambda own: own.tid)
        for is_one in (
            lambda own: own.is_kernel,
            lambda own: own.code & FaultCode.WRITE,
            lambda own: own.code & FaultCode.FETCH,
            lambda own: own.outcome == FaultOutcome.MAJOR,
            lambda own: own.doubt & Doubt.CUT,
        )
    )
    rows = [
        (
            bound(n), figures.rate(n),
            *map(bound, (n - kernel[tid], kernel[tid], write[tid], fetch[tid])),
            bound(major[tid], cut[tid]) if has_ends else None, records.task(tid), tid, process,
        )
        for (tid, process), n in sums.by(lambda own: (own.tid, own.process))
    ]  # fmt: skip
    return figures.choice.table("tasks", "Tasks", _TASKS, rows, _EVENTS)


def process_section(figures: ChosenFigures, sums: FaultSums) -> TableSection:
    """Return which processes had the most faults; nothing where processes were not recorded."""
    records = figures.records
    tasks: Counter[int] = Counter()
    found: list[tuple[int, int]] = []
    if records.processes:
        tasks.update(process for (process, _tid), _n in sums.by(lambda own: (own.process, own.tid)))
        found = sums.by(lambda own: own.process)
    rows = [(figures.bound(n), figures.rate(n), tasks[pid], records.task(pid), pid) for pid, n in found]
    return figures.choice.table("processes", "Processes", _PROCESSES, rows, _EVENTS)


def region_section(
    figures: ChosenFigures, sums: FaultSums, regions: Sequence[MappedRegion], *, has_mappings: bool
) -> TableSection:
    """Return which parts of address spaces had the most faults.

    After a loss it is not known what is mapped, until it is mapped again: such faults may be of any region.
    """
    records = figures.records
    unsure: Counter[tuple[MappedRegion, int]] = Counter()
    of_process: Counter[int] = Counter()
    if has_mappings:
        unsure = sums.sum(
            lambda own: own.doubt & Doubt.REGION, lambda own: (regions[own.region], own.process)
        )
        of_process = sums.sum(lambda own: own.doubt & Doubt.REGION, lambda own: own.process)
    rows = [
        (
            figures.bound(n, of_process[pid])._replace(low=n - unsure[region, pid]),
            region.start,
            region.stop - region.start,
            region.kind,
            records.task(pid),
            pid,
        )
        for (region, pid), n in sums.by(lambda own: (regions[own.region], own.process))
    ]
    return figures.choice.table("regions", "Regions", _REGIONS, rows, _EVENTS)


def place_section(figures: ChosenFigures, sums: FaultSums) -> TableSection:
    """Return which instructions had the most faults; those of programs have no names."""
    records = figures.records

    def key(own: EqualFaults) -> tuple[int, str, int]:
        return own.ip, access_of(own.code), own.process

    rows = [
        (figures.bound(n), ip, records.function(ip) or "-", access, records.task(pid), pid)
        for (ip, access, pid), n in sums.by(key)
    ]
    return figures.choice.table("places", "Instructions", _PLACES, rows, _EVENTS)


def latency_section(groups: Mapping[str, Samples], ends: Sequence[str]) -> DistributionSection:
    """Return how long faults took, by what became of them."""
    return DistributionSection("latency_ns", "Time of a fault", groups, "outcome", events=(*_EVENTS, *ends))
