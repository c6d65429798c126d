"""Scheduling of a recording as figures that add up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.analysis.coverage import count_coverage
from tracepoint.analysis.distribution import Distribution
from tracepoint.analysis.histogram import Histogram
from tracepoint.analysis.sched.report import analyse_sched
from tracepoint.analysis.sched.waits import CAUSES
from tracepoint.analysis.summary import TraceSummary
from tracepoint.analysis.top import TopK

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from tracepoint.analysis.distribution import Samples
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
        summary = _of_tasks(report, report.tasks, _waits(report, lambda _: ""), host)
        _add_cpus(summary, report)
        yield {"host": host}, summary
        return
    tasks: dict[str, list[TaskUse]] = {}
    for task in report.tasks:
        tasks.setdefault(task.name, []).append(task)
    waits = _waits(report, {task.utid: task.name for task in report.tasks}.get)
    for name, own in tasks.items():
        yield {"host": host, "comm": name}, _of_tasks(report, own, waits, host, name)


def _waits(report: SchedReport, name_of: Callable[[int], str | None]) -> dict[str | None, dict[str, Samples]]:
    """Return how long threads waited for a CPU by cause, None for all, and by a name for their `utid`."""
    return {cause: report.latency_by_task(cause, name_of) for cause in (*CAUSES, None)}


def _of_tasks(
    report: SchedReport,
    tasks: Collection[TaskUse],
    waits: Mapping[str | None, Mapping[str, Samples]],
    host: str,
    name: str = "",
) -> TraceSummary:
    """Return what some tasks did, and how long they waited for a CPU, by a name in `waits`."""
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
    for cause, found in waits.items():
        key = f"latency_ns.{cause}" if cause else "latency_ns"
        made.histograms[key] = _histogram(report, found.get(name))
    return made


def _histogram(report: SchedReport, samples: Samples | None) -> Histogram:
    if isinstance(samples, Histogram):
        return samples
    values = samples.values if isinstance(samples, Distribution) else ()
    return Histogram(values, n_hidden=report.n_hidden, longest_hidden=report.longest_hidden)


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
