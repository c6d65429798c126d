"""Scheduling as short tables of text, and as JSON."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from tracepoint.analysis.sched.report import CAUSES
from tracepoint.analysis.units import bounds_text, count_text, percent_text, time_text
from tracepoint.record.page import LOST_UNKNOWN
from tracepoint.wording import counted, text_table

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from tracepoint.analysis.distribution import Distribution
    from tracepoint.analysis.sched.report import SchedReport, TaskUse

_QUANTILES = (("p50", 0.5), ("p99", 0.99), ("max", 1.0))
MAX_TASKS = 20


def chosen_tasks(report: SchedReport, tasks: Collection[int | str]) -> list[TaskUse]:
    """Return the threads with these ids or names, which may have wildcards; all where none are given."""
    if not tasks:
        return report.tasks
    return [
        task
        for task in report.tasks
        if any(task.tid == one if isinstance(one, int) else fnmatchcase(task.name, one) for one in tasks)
    ]


def sched_lines(
    report: SchedReport,
    cpus: Collection[int] | None = None,
    tasks: Collection[int | str] = (),
    most: int | None = MAX_TASKS,
) -> Iterator[str]:
    """Yield the lines of a report: the use of CPUs, the threads that ran most, and how long they waited.

    `cpus` and `tasks` choose what is shown, `most` is the number of threads.
    """
    span = report.coverage.duration
    used = [use for use in report.cpus if cpus is None or use.cpu in cpus]
    rows = [["cpu", "busy", "idle", "unknown", "switches"]]
    for use in used:
        shares = (percent_text(ns, span) for ns in (use.busy, use.idle, use.unknown))
        rows.append([str(use.cpu), *shares, f"{use.n_switches:,}"])
    yield from text_table(rows)
    threads = chosen_tasks(report, tasks)
    yield ""
    yield from _task_lines(threads, span, most)
    yield ""
    yield from _latency_lines(report, {task.utid for task in threads} if tasks else None)


def _task_lines(tasks: Sequence[TaskUse], span: int, most: int | None) -> Iterator[str]:
    rows = [["running", "of time", "runnable", "asleep", "runs", "vol.", "invol.", "moved", "task"]]
    for task in tasks[:most]:
        times = time_text(task.runnable), time_text(sum(task.asleep.values()))
        counts = (f"{n:,}" for n in (task.n_runs, task.voluntary, task.involuntary, task.cpu_changes))
        name = f"{task.name}-{task.tid}" + (f".{task.generation}" if task.generation else "")
        run = bounds_text(task.run, time_text), percent_text(task.run.low, span)
        rows.append([*run, *times, *counts, name])
    yield from text_table(rows, lefts={len(rows[0]) - 1})
    if most is not None and len(tasks) > most:
        yield f"... {counted(len(tasks) - most, 'more task')}, --all shows them"


def _latency_lines(report: SchedReport, utids: Collection[int] | None) -> Iterator[str]:
    rows = [["waited after", "n", "mean", *(name for name, _ in _QUANTILES)]]
    for cause in (*CAUSES, None):
        waits = report.latency(cause, utids)
        if waits.values:
            mean = "-" if waits.mean is None else time_text(round(waits.mean))
            rows.append([cause or "all", count_text(waits.count), mean, *_quantile_texts(waits)])
    yield from text_table(rows, lefts={0})


def _quantile_texts(waits: Distribution) -> list[str]:
    found = (waits.quantile(q) for _, q in _QUANTILES)
    return ["-" if bounds is None else bounds_text(bounds, time_text) for bounds in found]


def sched_notes(report: SchedReport) -> Iterator[str]:
    """Yield what limits the figures: losses, missing events, sleeps without a wake-up."""
    coverage = report.coverage
    if not coverage.is_complete:
        lost = "some" if coverage.n_lost == LOST_UNKNOWN else f"{coverage.n_lost:,}"
        n_gaps = sum(map(len, coverage.gaps.values()))
        where = f" in {counted(n_gaps, 'gap')} on {counted(len(coverage.gaps), 'CPU')}" if n_gaps else ""
        yield f"{lost} events were lost{where}: figures are what is known, with bounds where these are known"
    if report.missing:
        named = ", ".join(f"{event.name} ({event.gives})" for event in report.missing)
        yield f"not recorded, or never happened: {named}"
    if report.n_lost_switches:
        yield f"{report.n_lost_switches:,} switches are missing without a report of a loss"
    if report.n_unseen_wakes:
        yield f"{counted(report.n_unseen_wakes, 'sleep')} ended without a wake-up: not among the latencies"
    if report.overlap_ns:
        yield f"tasks were on two CPUs at once for {time_text(report.overlap_ns)}: clocks differ, or losses"


def sched_facts(
    report: SchedReport, cpus: Collection[int] | None = None, tasks: Collection[int | str] = ()
) -> dict[str, Any]:
    """Return the figures of a report as values for JSON; bounds are [low, high], times in ns."""
    coverage = report.coverage
    threads = chosen_tasks(report, tasks)
    utids = {task.utid for task in threads} if tasks else None
    return {
        "schema": "tracepoint.sched/1",
        "start": coverage.start,
        "stop": coverage.stop,
        "lost": coverage.n_lost,
        "gaps": {cpu: [list(gap) for gap in gaps] for cpu, gaps in coverage.gaps.items()},
        "missing": [event.name for event in report.missing],
        "n_lost_switches": report.n_lost_switches,
        "n_unseen_wakes": report.n_unseen_wakes,
        "overlap_ns": report.overlap_ns,
        "cpus": [use._asdict() for use in report.cpus if cpus is None or use.cpu in cpus],
        "tasks": [task._asdict() for task in threads],
        "latency_ns": {cause or "all": _waits(report.latency(cause, utids)) for cause in (*CAUSES, None)},
    }


def _waits(waits: Distribution) -> dict[str, Any]:
    found: dict[str, Any] = {"n": waits.count, "sum": waits.sum, "mean": waits.mean}
    return found | {name: waits.quantile(q) for name, q in _QUANTILES}
