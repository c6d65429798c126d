"""Which events an analysis reads, and which of them a recording lacks: found by looking, not by versions."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from tracepoint.decode.trace import Trace


class Need(NamedTuple):
    """An event that an analysis reads: `names` are those it has had, the newest first.

    Without an event that `is_needed` there is no result; `gives` says what the others add.
    """

    names: tuple[str, ...]
    gives: str
    is_needed: bool = False


#: By the name of the analysis.
NEEDS: dict[str, tuple[Need, ...]] = {
    "sched": (
        Need(("sched:sched_switch",), "running time, switches", is_needed=True),
        Need(("sched:sched_waking",), "wake-up latency, the waker"),
        Need(("sched:sched_wakeup",), "wake-ups that came before the task slept"),
        Need(("sched:sched_wakeup_new",), "the latency of new tasks"),
        Need(("sched:sched_migrate_task",), "migrations"),
        Need(("task:task_newtask", "sched:sched_process_fork"), "ids of tasks that were used again"),
        Need(("sched:sched_process_exec",), "tasks that take over the id of their process"),
        Need(("sched:sched_process_free",), "when a task is gone"),
        Need(("task:task_rename",), "names of tasks"),
    ),
}


class MissingEvent(NamedTuple):
    """An event that was not recorded, and what the analysis lacks without it."""

    name: str
    gives: str
    is_needed: bool


def needs_of(analysis: str) -> tuple[Need, ...]:
    """Return what an analysis reads; raises KeyError for an unknown one."""
    if analysis not in NEEDS:
        close = difflib.get_close_matches(analysis, NEEDS, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(NEEDS)}"
        raise KeyError(f"no analysis {analysis!r}; {hint}")
    return NEEDS[analysis]


def needed_events(analysis: str) -> list[str]:
    """Return the events to record for an analysis, under all names that they have had.

    >>> needed_events("sched")[:3]
    ['sched:sched_switch', 'sched:sched_waking', 'sched:sched_wakeup']
    """
    return [name for need in needs_of(analysis) for name in need.names]


def missing_events(trace: Trace, analysis: str) -> list[MissingEvent]:
    """Return the events that an analysis would read and that the recording does not have.

    An event that could have been recorded and never happened is missing too: a recording says nothing of it.

    >>> import tracepoint as tp
    >>> with tp.open_trace("tests/tracefile/golden/cut.v6.dat") as trace:
    ...     [event.name for event in missing_events(trace, "sched")][:2]
    ['sched:sched_process_exec', 'sched:sched_process_free']
    """
    return list(missing_of(analysis, {name for name, n in trace.events.items() if n}))


def missing_of(analysis: str, recorded: Collection[str]) -> Iterator[MissingEvent]:
    """Yield what an analysis lacks where these events were recorded."""
    for need in needs_of(analysis):
        if not any(name in recorded for name in need.names):
            yield MissingEvent(need.names[0], need.gives, need.is_needed)
