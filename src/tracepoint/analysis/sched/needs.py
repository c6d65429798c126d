"""The events that scheduling is computed from."""

from __future__ import annotations

from tracepoint.analysis.needs import Fields, Need
from tracepoint.analysis.syscalls.needs import ENTER, EXIT
from tracepoint.analysis.syscalls.needs import NEEDS as SYSCALLS

_COMMON = ("common_flags", "common_pid")
_WAKE = Fields((*_COMMON, "pid"), ("comm",))

NEEDS = (
    Need(
        {
            "sched:sched_switch": Fields(
                ("prev_pid", "prev_state", "next_pid"), ("next_prio", "prev_comm", "next_comm")
            )
        },
        "running time, switches",
        is_needed=True,
    ),
    Need({"sched:sched_waking": _WAKE}, "wake-up latency, the waker"),
    Need({"sched:sched_wakeup": _WAKE}, "wake-ups that came before the task slept"),
    Need({"sched:sched_wakeup_new": _WAKE}, "the latency of new tasks"),
    Need({"sched:sched_migrate_task": Fields(("pid",))}, "migrations"),
    Need(
        {
            "task:task_newtask": _WAKE,
            "sched:sched_process_fork": Fields((*_COMMON, "child_pid"), ("child_comm",)),
        },
        "ids of tasks that were used again",
    ),
    Need(
        {"sched:sched_process_exec": Fields(("pid", "old_pid"))},
        "tasks that take over the id of their process",
    ),
    Need({"sched:sched_process_free": Fields(("pid",))}, "when a task is gone"),
    Need({"task:task_rename": Fields(("pid",), ("newcomm",))}, "names of tasks"),
)


def calls_if_recorded() -> tuple[Need, ...]:
    """Return the events of system calls, for an analysis that has figures without them too."""
    return tuple(
        need._replace(gives="which system call a thread was blocked in", is_needed=False)
        for need in SYSCALLS
        if need.names[0] in (ENTER, EXIT)
    )


def needs_of(by: str = "", **_options: str) -> tuple[Need, ...]:
    """Return what is read of a recording; `by` says what off-CPU time is summed by."""
    return (*NEEDS, *calls_if_recorded()) if by == "call" else NEEDS
