"""Scheduling of a recording as figures that add up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.analysis.coverage import count_coverage
from tracepoint.analysis.histogram import Histogram
from tracepoint.analysis.sched.report import analyse_sched
from tracepoint.analysis.sched.sums import CAUSES
from tracepoint.analysis.summary import TraceSummary
from tracepoint.analysis.top import TopK

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from tracepoint.analysis.sched.report import SchedReport
    from tracepoint.analysis.sched.use import TaskUse
    from tracepoint.decode.trace import Trace

#: What the recordings of this kind can be told apart by.
SCHED_KEYS = ("host", "comm")


def sched_summaries(
    trace: Trace, by: Collection[str], host: str
) -> Iterator[tuple[dict[str, str], TraceSummary]]:
    """Yield the summary of a recording, or one for each name of a task, with that name.

    Raises TracepointError without sched_switch.
    """
    report = analyse_sched(trace)
    if "comm" not in by:
        summary = _of_tasks(report, report.tasks, {cause: [*report.samples(cause)] for cause in CAUSES}, host)
        _add_cpus(summary, report)
        yield {"host": host}, summary
        return
    tasks: dict[str, list[TaskUse]] = {}
    for task in report.tasks:
        tasks.setdefault(task.name, []).append(task)
    names = {task.utid: task.name for task in report.tasks}
    waits: dict[str, dict[str, list[tuple[int, int]]]] = {name: {} for name in tasks}
    for cause in CAUSES:
        for utid, ns in report.samples(cause):
            if utid in names:
                waits[names[utid]].setdefault(cause, []).append((utid, ns))
    for name, own in tasks.items():
        yield {"host": host, "comm": name}, _of_tasks(report, own, waits[name], host)


def _of_tasks(
    report: SchedReport,
    tasks: Collection[TaskUse],
    waits: dict[str, list[tuple[int, int]]],
    host: str,
) -> TraceSummary:
    """Return what some tasks did, and how long they waited for a CPU."""
    made = TraceSummary("sched", *count_coverage(report.coverage))
    made.tops |= {name: TopK() for name in ("run_ns_by_comm", "run_ns_by_host", "missing_events")}
    sums = dict.fromkeys(("tasks", "run_ns", "runs", "runnable_ns", "voluntary", "involuntary"), 0)
    sums |= dict.fromkeys(("migrations", "cpu_changes"), 0)
    for task in tasks:
        own = {"tasks": 1, "run_ns": int(task.run.low), "runs": task.n_runs, "runnable_ns": task.runnable}
        own |= {"voluntary": task.voluntary, "involuntary": task.involuntary}
        own |= {"migrations": task.migrations, "cpu_changes": task.cpu_changes}
        own |= {f"asleep_{state}_ns": ns for state, ns in task.asleep.items()}
        sums = {name: sums.get(name, 0) + own.get(name, 0) for name in dict.fromkeys([*sums, *own])}
        made.tops["run_ns_by_comm"].add(task.name, int(task.run.low))
    made.tops["run_ns_by_host"].add(host, sums["run_ns"])
    for event in report.missing:
        made.tops["missing_events"].add(event.name)
    made.counts |= sums
    # What losses hide of one task they can hide of all of them once: a CPU runs one at a time.
    hidden = [task.run.high - task.run.low for task in tasks if task.run.high is not None]
    made.hidden["run_ns"] = int(max(hidden, default=0))
    for cause in CAUSES:
        made.histograms[f"latency_ns.{cause}"] = _waits(report, waits.get(cause, ()))
    made.histograms["latency_ns"] = _waits(report, [pair for pairs in waits.values() for pair in pairs])
    return made


def _waits(report: SchedReport, samples: Collection[tuple[int, int]]) -> Histogram:
    return Histogram(
        (ns for _, ns in samples), n_hidden=report.n_hidden, longest_hidden=report.longest_hidden
    )


def _add_cpus(made: TraceSummary, report: SchedReport) -> None:
    """Add what the CPUs did, which belongs to no task."""
    cpus = report.cpus
    unknown = sum(use.unknown for use in cpus)
    made.counts |= {
        "cpus": len(cpus),
        "cpu_ns": len(cpus) * report.coverage.duration,
        "busy_ns": sum(use.busy for use in cpus),
        "idle_ns": sum(use.idle for use in cpus),
        "unknown_ns": unknown,
        "switches": sum(use.n_switches for use in cpus),
        "lost_switches": report.n_lost_switches,
        "unseen_wakes": report.n_unseen_wakes,
        "overlap_ns": report.overlap_ns,
    }
    made.hidden |= {"busy_ns": unknown, "idle_ns": unknown}
