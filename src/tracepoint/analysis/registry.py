"""The analyses by name; each is a package with `NEEDS` in `needs` and `analyse` in `report`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tracepoint.analysis.needs import MissingEvent
from tracepoint.errors import TracepointError
from tracepoint.named import NamedTuple
from tracepoint.wording import no_such

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from types import ModuleType

    from tracepoint.analysis.needs import Need
    from tracepoint.analysis.report import Report
    from tracepoint.decode.trace import Trace

#: What each answers, in the order in which help shows them.
ANALYSES = {
    "sched": "who ran, who waited for a CPU and how long",
    "functions": "how long functions took, by themselves and with what they called (function_graph)",
    "power": "in which states CPUs were idle, at which frequencies they ran",
    "syscalls": "how long system calls took, by name and task, and what they failed with",
    "faults": "page faults by kind, task, region and instruction, and how long they took",
    "traps": "traps by vector and task, and the signals that they became",
    "memory": "allocations of the kernel by caller and task, what was not freed, lifetimes",
    "swap": "pages swapped in and out, what reclaim wrote, how long tasks reclaimed",
    "irq": "how long interrupts, softirqs, timers and work ran, and how late",
    "block": "how long requests to block devices were queued and served",
    "locks": "how long tasks waited for locks",
    "latency": "how long from any event to any other",
    "service": "where the time of a program's requests went: running, waiting for a CPU, blocked and on what",
}


class AnalysisOption(NamedTuple):
    """What one analysis can be asked: `--name` of the command, the argument `name` in Python.

    Without one that `is_needed` there is no result; `choices` are all its values, none: any text.
    """

    name: str
    metavar: str
    help: str
    is_needed: bool = False
    choices: tuple[str, ...] = ()


# Of those that are about times between two events.
_BETWEEN = (
    AnalysisOption("begin", "EVENT", "where the time begins: sched:sched_waking", is_needed=True),
    AnalysisOption("end", "EVENT", "where it ends; can be the same event", is_needed=True),
    AnalysisOption(
        "key",
        "FIELD[:FIELD]",
        "fields with the same values in both, pid=next_pid where the end has another name for one; "
        "common_pid and common_cpu too (default: none, of service common_pid)",
    ),
    AnalysisOption(
        "order",
        "ORDER",
        "which begin an end belongs to, where several are open: the last one, which takes the place of "
        "those before, the first one, which those after are part of, the last of a stack, the first of a "
        "queue (default: last)",
        choices=("last", "first", "stack", "queue"),
    ),
)
_OF_SCHED = (
    AnalysisOption(
        "by",
        "WHAT",
        "show the longest waits with who woke whom, and the time off the CPUs, by state and waker, or by "
        "where tasks blocked too: call (system calls), stack (stacks of sched_switch); --format folded uses "
        "it too",
        choices=("waker", "call", "stack"),
    ),
    AnalysisOption(
        "critical",
        "PID[:FROM-TO]",
        "show what a task depended on: what ran instead while it could run, and, while it was blocked, what "
        "the task did that woke it; FROM and TO in seconds (default: all of its time)",
    ),
)
#: What each can be asked; those that are not here take no options.
OPTIONS: dict[str, tuple[AnalysisOption, ...]] = {
    "sched": _OF_SCHED,
    "latency": _BETWEEN,
    "service": _BETWEEN,
}
#: The one that commands run where none is named.
DEFAULT = "sched"


def _module(analysis: str, part: str) -> ModuleType:
    if analysis not in ANALYSES:
        raise KeyError(no_such("analysis", analysis, ANALYSES))
    return import_module(f"tracepoint.analysis.{analysis}.{part}")


def _checked(analysis: str, options: Mapping[str, str]) -> None:
    """Raise KeyError for an option that an analysis does not have, TracepointError for one that it lacks."""
    known = {option.name: option for option in OPTIONS.get(analysis, ())}
    for name, value in options.items():
        if name not in known:
            raise KeyError(
                no_such(f"option of {analysis}", name, known)
                if known
                else f"{analysis} has no option {name!r}"
            )
        choices = known[name].choices
        if choices and value not in choices:
            raise KeyError(no_such(name, value, choices))
    lacks = [f"--{name}" for name, option in known.items() if option.is_needed and name not in options]
    if lacks:
        raise TracepointError(
            f"{analysis} needs {' and '.join(lacks)}: tracepoint analyse --help explains it"
        )


def needs_of(analysis: str, **options: str) -> tuple[Need, ...]:
    """Return what an analysis reads; raises KeyError for an unknown one or option.

    Raises TracepointError where an option is missing.
    """
    module = _module(analysis, "needs")
    _checked(analysis, options)
    found: tuple[Need, ...] = module.needs_of(**options) if analysis in OPTIONS else module.NEEDS
    return found


def needed_events(analysis: str, **options: str) -> list[str]:
    """Return the events to record for an analysis, under all names that they have had.

    >>> needed_events("sched")[:3]
    ['sched:sched_switch', 'sched:sched_waking', 'sched:sched_wakeup']
    >>> needed_events("latency", begin="irq:softirq_raise", end="irq:softirq_entry", key="vec")
    ['irq:softirq_raise', 'irq:softirq_entry']
    """
    return [name for need in needs_of(analysis, **options) for name in need.names]


def missing_events(trace: Trace, analysis: str, **options: str) -> list[MissingEvent]:
    """Return the events that an analysis would read and that the recording does not have.

    An event that could have been recorded and never happened is missing too: a recording says nothing of it.

    >>> import tracepoint as tp
    >>> with tp.open_trace("tests/tracefile/golden/cut.v6.dat") as trace:
    ...     [event.name for event in missing_events(trace, "sched")][:2]
    ['sched:sched_process_exec', 'sched:sched_process_free']
    """
    recorded = {name for name, n in trace.events.items() if n}
    return list(missing_of(needs_of(analysis, **options), recorded))


def missing_of(needs: Collection[Need], recorded: Collection[str]) -> Iterator[MissingEvent]:
    """Yield what an analysis lacks where these events were recorded."""
    for need in needs:
        if not any(name in recorded for name in need.names):
            yield MissingEvent(need.names[0], need.gives, need.is_needed)


def analyse(trace: Trace, analysis: str, **options: str) -> Report:
    """Return the report of an analysis by its name, such as "sched", with the options that it has.

    Raises KeyError for an unknown one, and TracepointError when the recording lacks events that it needs.

    >>> import tracepoint as tp
    >>> with tp.open_trace("tests/tracefile/golden/cut.v6.dat") as trace:
    ...     analyse(trace, "sched")
    <SchedReport of 10 switches, 0.097791 s>
    """
    module = _module(analysis, "report")
    _checked(analysis, options)
    found: Report = module.analyse(trace, **options)
    return found
