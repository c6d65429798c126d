"""The analyses by name; each is a package with `NEEDS` in `needs` and `analyse` in `report`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tracepoint.analysis.needs import MissingEvent
from tracepoint.wording import no_such

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from types import ModuleType

    from tracepoint.analysis.needs import Need
    from tracepoint.analysis.report import Report
    from tracepoint.decode.trace import Trace

#: What each answers, in the order in which help shows them.
ANALYSES = {
    "sched": "who ran, who waited for a CPU and how long",
}


def _module(analysis: str, part: str) -> ModuleType:
    if analysis not in ANALYSES:
        raise KeyError(no_such("analysis", analysis, ANALYSES))
    return import_module(f"tracepoint.analysis.{analysis}.{part}")


def needs_of(analysis: str) -> tuple[Need, ...]:
    """Return what an analysis reads; raises KeyError for an unknown one."""
    found: tuple[Need, ...] = _module(analysis, "needs").NEEDS
    return found


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
    recorded = {name for name, n in trace.events.items() if n}
    return list(missing_of(needs_of(analysis), recorded))


def missing_of(needs: Collection[Need], recorded: Collection[str]) -> Iterator[MissingEvent]:
    """Yield what an analysis lacks where these events were recorded."""
    for need in needs:
        if not any(name in recorded for name in need.names):
            yield MissingEvent(need.names[0], need.gives, need.is_needed)


def analyse(trace: Trace, analysis: str) -> Report:
    """Return the report of an analysis by its name, such as "sched".

    Raises KeyError for an unknown one, and TracepointError when the recording lacks events that it needs.

    >>> import tracepoint as tp
    >>> with tp.open_trace("tests/tracefile/golden/cut.v6.dat") as trace:
    ...     analyse(trace, "sched")
    <SchedReport of 10 switches, 0.097791 s>
    """
    found: Report = _module(analysis, "report").analyse(trace)
    return found
