"""Computes data frames with LISA, in a Python that has it: `python lisa_frames.py TRACE.dat FOLDER`.

Each frame becomes `FRAME.COLUMN` in FOLDER: int64 numbers, times in ns.  It prints the CPU seconds used, with
those of the trace-cmd that LISA starts.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lisa.trace import TaskID, Trace

if TYPE_CHECKING:
    from collections.abc import Iterator

EVENTS = ["sched_switch", "sched_waking", "sched_wakeup", "sched_wakeup_new", "task_rename"]


def cpu_s() -> float:
    """CPU seconds of this process and of those that it waited for."""
    return sum(os.times()[:4])


def events(trace: Any) -> Iterator[tuple[str, Any]]:
    """The events that all other frames come from."""
    switch = trace.df_event("sched_switch")
    yield "df_event(sched_switch)", switch[["__cpu", "prev_pid", "prev_state", "next_pid", "next_prio"]]
    for name in ("sched_waking", "sched_wakeup"):
        yield f"df_event({name})", trace.df_event(name)[["__cpu", "pid", "prio", "target_cpu"]]


def frames(trace: Any) -> Iterator[tuple[str, Any]]:
    """The frames by name, those of one task for the one that was woken most often."""
    yield from events(trace)
    tasks, latency = trace.ana.tasks, trace.ana.latency
    yield "df_tasks_runtime", tasks.df_tasks_runtime()[["runtime"]]
    wakeups = tasks.df_tasks_wakeups()[["wakeups"]]
    yield "df_tasks_wakeups", wakeups
    most = wakeups[wakeups.wakeups == wakeups.wakeups.max()]
    # A number would be refused for a task that had two names.
    task = TaskID(int(most.index.min()), None)
    yield "df_rt_tasks", tasks.df_rt_tasks(99)[["prio"]]
    yield "df_task_states", tasks.df_task_states(task)[["cpu", "curr_state", "delta"]]
    yield "df_task_total_residency", tasks.df_task_total_residency(task)
    yield "df_latency_wakeup", latency.df_latency_wakeup(task)[["wakeup_latency", "cpu"]]
    yield "df_latency_preemption", latency.df_latency_preemption(task)[["preempt_latency", "cpu"]]
    yield "df_activations", latency.df_activations(task)


def integers(series: Any) -> Any:
    """A column as int64: seconds become ns, what is not there -1."""
    if series.dtype.kind == "f":
        series = (series * 1e9).round().fillna(-1)
    return series.astype("int64")


def main() -> None:
    """Compute the frames, then write them."""
    trace = Trace(sys.argv[1], events=EVENTS, strict_events=False, enable_swap=False)
    found = dict(frames(trace))
    print(cpu_s())
    for name, frame in found.items():
        for column, series in {"index": frame.index.to_series(), **frame}.items():
            integers(series).to_numpy().tofile(Path(sys.argv[2]) / f"{name}.{column}")


if __name__ == "__main__":
    main()
