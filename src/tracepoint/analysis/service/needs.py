"""The events of requests: a program's own two, those of the scheduler, and system calls where there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.analysis.latency import needs as latency
from tracepoint.analysis.sched.needs import NEEDS as SCHED
from tracepoint.analysis.sched.needs import calls_if_recorded

if TYPE_CHECKING:
    from tracepoint.analysis.needs import Need

#: What a request is known by where nothing else is given: the thread that serves it, one after the other.
THREAD = "common_pid"


def needs_of(begin: str, end: str, key: str = THREAD, order: str = "last") -> tuple[Need, ...]:
    """Return the events of requests with the fields of their key, of the scheduler and of system calls."""
    return (*latency.needs_of(begin, end, key, order), *SCHED, *calls_if_recorded())
