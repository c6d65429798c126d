"""Scheduling as sections: the use of CPUs, the threads that ran most, and how long they waited."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.analysis.sections import (
    BEGIN,
    CPU,
    DUR,
    MAX,
    TASK,
    DistributionSection,
    Heading,
    N,
    TableSection,
    Unit,
)
from tracepoint.wording import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tracepoint.analysis.distribution import Bounds, Samples
    from tracepoint.analysis.sched.chains import WakeChain
    from tracepoint.analysis.sched.critical import PathStep
    from tracepoint.analysis.sched.offcpu import OffTime
    from tracepoint.analysis.sched.use import CpuUse, TaskUse
    from tracepoint.analysis.sections import Choice

_SWITCH = ("sched:sched_switch",)
_WAKES = (*_SWITCH, "sched:sched_waking", "sched:sched_wakeup", "sched:sched_wakeup_new")
_CPUS = (
    CPU,
    Heading("busy_share", "busy", Unit.SHARE),
    Heading("idle_share", "idle", Unit.SHARE),
    Heading("unknown_share", "unknown", Unit.SHARE),
    Heading("n_switches", "switches"),
    Heading("busy", "", Unit.TIME),
    Heading("idle", "", Unit.TIME),
    Heading("unknown", "", Unit.TIME),
)
_TASKS = (
    Heading("run", "running", Unit.TIME),
    Heading("run_share", "of time", Unit.SHARE),
    Heading("runnable", "runnable", Unit.TIME),
    Heading("asleep_ns", "asleep", Unit.TIME),
    Heading("n_runs", "runs"),
    Heading("voluntary", "vol."),
    Heading("involuntary", "invol."),
    Heading("cpu_changes", "moved"),
    *TASK,
    Heading("name", "", Unit.WORD),
    Heading("generation", "", Unit.NUMBER),
    Heading("utid", "", Unit.NUMBER),
    Heading("asleep", "", Unit.TIME),
    Heading("migrations", ""),
)
_OFF_CPU = (
    Heading("time", "time", Unit.TIME),
    N,
    MAX,
    Heading("state", "state", Unit.WORD),
    Heading("task", "task", Unit.WORD),
    Heading("waker", "woken by", Unit.WORD),
    Heading("where", "in", Unit.WORD),
    Heading("utid", "", Unit.NUMBER),
)
_CHAINS = (
    Heading("wait", "wait", Unit.TIME),
    BEGIN,
    Heading("since_first", "since first", Unit.TIME),
    Heading("chain", "task < woken by < ...", Unit.WORD),
    Heading("utid", "", Unit.NUMBER),
)
_PATH = (
    Heading("time", "time", Unit.TIME),
    Heading("share", "of all", Unit.SHARE),
    N,
    Heading("kind", "what", Unit.WORD),
    Heading("task", "task", Unit.WORD),
    Heading("by", "by", Unit.WORD),
)
_STEPS = (
    BEGIN,
    DUR,
    Heading("depth", "depth"),
    Heading("task", "task", Unit.WORD),
    Heading("kind", "what", Unit.WORD),
    Heading("by", "by", Unit.WORD),
    Heading("state", "", Unit.WORD),
    Heading("utid", "", Unit.NUMBER),
)
# A column of the tasks that ran instead has the first ones.
_MOST_INSTEAD = 3


def cpu_section(cpus: Sequence[CpuUse], span_ns: int, choice: Choice) -> TableSection:
    """Return what the chosen CPUs did in the time of the trace."""
    span = span_ns or 1
    rows = [
        (
            use.cpu, use.busy / span, use.idle / span, use.unknown / span, use.n_switches,
            use.busy, use.idle, use.unknown,
        )
        for use in cpus
        if choice.has_cpu(use.cpu)
    ]  # fmt: skip
    return TableSection("cpus", "CPUs", _CPUS, rows, _SWITCH)


def task_section(tasks: Sequence[TaskUse], span_ns: int, choice: Choice) -> TableSection:
    """Return what these threads did in the time of the trace."""
    span = span_ns or 1
    rows = [
        (
            task.run, task.run.low / span, task.runnable, sum(task.asleep.values()), task.n_runs,
            task.voluntary, task.involuntary, task.cpu_changes,
            task.text, task.tid, task.name, task.generation, task.utid, task.asleep, task.migrations,
        )
        for task in tasks
    ]  # fmt: skip
    return choice.table("tasks", "Tasks", _TASKS, rows, _SWITCH)


def latency_section(waits: Mapping[str, Samples]) -> DistributionSection:
    """Return how long threads waited for a CPU, by cause."""
    return DistributionSection("latency_ns", "Waits for a CPU", waits, "after", events=_WAKES)


def class_section(waits: Mapping[str, Samples]) -> DistributionSection:
    """Return how long threads waited for a CPU, by the class of the priority with which they ran then."""
    key, title = "latency_by_class_ns", "Waits for a CPU by priority"
    return DistributionSection(key, title, waits, "class", events=_WAKES)


def off_cpu_section(
    times: Sequence[OffTime], task_of: Callable[[int], str], choice: Choice, bound: Callable[[int], Bounds]
) -> TableSection:
    """Return where time off the CPUs went; `bound` gives the bounds of a figure, as losses hide some."""
    rows = [
        (
            bound(time.ns), bound(time.n), bound(time.longest), time.state, one_line(task_of(time.utid)),
            one_line(time.waker or "-"), one_line(" < ".join(reversed(time.where)) or "-"), time.utid,
        )
        for time in times
    ]  # fmt: skip
    return choice.table("off_cpu", "Off the CPUs", _OFF_CPU, rows, _WAKES)


def chain_section(chains: Sequence[WakeChain]) -> TableSection:
    """Return the longest waits after a wake-up, each with the threads that led to it."""
    rows = [
        (
            chain.wait, chain.ts, chain.ts + chain.wait - chain.wakes[-1].ts if chain.wakes else None,
            one_line(chain.text), chain.utid,
        )
        for chain in chains
    ]  # fmt: skip
    return TableSection("wake_chains", "Longest waits, and who woke whom", _CHAINS, rows, _WAKES)


def path_sections(
    steps: Sequence[PathStep], task_of: Callable[[int], str], choice: Choice
) -> tuple[TableSection, TableSection]:
    """Return what a critical path consists of, and its steps by time."""
    sums: dict[tuple[str, str, str], list[int]] = {}
    rows = []
    for step in steps:
        more = ", ..." if len(step.by) > _MOST_INSTEAD else ""
        task, by = one_line(task_of(step.utid)), one_line(", ".join(step.by[:_MOST_INSTEAD]) + more or "-")
        sums.setdefault((step.kind, task, by), []).append(step.dur)
        rows.append((step.start, step.dur, step.depth, task, step.kind, by, step.state, step.utid))
    total = sum(step.dur for step in steps) or 1
    parts = [(sum(own), sum(own) / total, len(own), *key) for key, own in sums.items()]
    parts.sort(key=lambda part: -part[0])
    return (
        choice.table("critical_path", "Critical path", _PATH, parts, _WAKES),
        choice.table("critical_steps", "Critical path by time", _STEPS, rows, _WAKES),
    )
