"""The figures of requests as sections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.analysis.sections import BEGIN, DUR, MAX, Heading, N, TableSection, Unit
from tracepoint.analysis.service.lanes import BLOCKED, TimeKind
from tracepoint.analysis.syscalls.during import NO_CALL
from tracepoint.analysis.units import task_text
from tracepoint.wording import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.analysis.sections import Choice, Section
    from tracepoint.analysis.service.build import ServiceRequest
    from tracepoint.analysis.service.lanes import Cause

_WORDS = {
    TimeKind.RUNNING: "running",
    TimeKind.RUNNABLE: "runnable (waiting for a CPU)",
    TimeKind.SLEEPING: "blocked, interruptible",
    TimeKind.UNINTERRUPTIBLE: "blocked, uninterruptible (D)",
    TimeKind.UNKNOWN: "unknown",
}
_PART = (Heading("time", "time", Unit.TIME), Heading("share", "of all", Unit.SHARE))
_KINDS = (
    *_PART,
    Heading("mean", "a request", Unit.TIME),
    MAX,
    Heading("n_requests", "requests"),
    Heading("kind", "what", Unit.WORD),
)
_BLOCKED = (
    *_PART,
    N,
    MAX,
    Heading("state", "state", Unit.WORD),
    Heading("call", "in", Unit.WORD),
    Heading("by", "woken by", Unit.WORD),
)
_SLOWEST = (
    DUR,
    Heading("running", "running", Unit.TIME),
    Heading("runnable", "runnable", Unit.TIME),
    Heading("sleeping", "blocked", Unit.TIME),
    Heading("uninterruptible", "blocked D", Unit.TIME),
    Heading("unknown", "unknown", Unit.TIME),
    BEGIN,
    Heading("thread", "thread", Unit.WORD),
    Heading("key", "key", Unit.WORD),
    Heading("longest_in", "longest blocked in", Unit.WORD),
)


def cause_text(cause: Cause) -> str:
    """Return what a thread was blocked in, the letters of its state where no call is known.

    >>> from tracepoint.analysis.service.lanes import Cause
    >>> cause_text(Cause("S", "futex", 7, "worker-7")), cause_text(Cause("D"))
    ('futex', 'D')
    """
    return cause.call if cause.call != NO_CALL else cause.state


def kind_section(requests: Sequence[ServiceRequest], events: Sequence[str]) -> Section:
    """Return how much of the time of all requests was what."""
    total = sum(request.dur for request in requests)
    rows: list[tuple[int | float | str, ...]] = []
    for kind in TimeKind:
        times = [request.parts[kind] for request in requests]
        if time := sum(times):
            n = sum(map(bool, times))
            rows.append((time, time / total, time / len(times), max(times), n, _WORDS[kind]))
    return TableSection("kinds", "Where the time went", _KINDS, rows, events)


def blocked_section(requests: Sequence[ServiceRequest], choice: Choice, events: Sequence[str]) -> Section:
    """Return what requests were blocked on, that with most time first."""
    total = sum(request.dur for request in requests)
    found: dict[tuple[str, str, str], list[int]] = {}
    for request in requests:
        for start, stop, kind, cause in request.pieces:
            if kind in BLOCKED:
                found.setdefault((cause.state, cause.call, cause.by), []).append(stop - start)
    rows = [
        (sum(times), sum(times) / total, len(times), max(times), state, call or "?", one_line(by or "?"))
        for (state, call, by), times in found.items()
    ]
    rows.sort(key=lambda row: -row[0])
    return choice.table("blocked", "Blocked on", _BLOCKED, rows, events)


def slowest_section(
    requests: Sequence[ServiceRequest], names: Mapping[int, str], choice: Choice, events: Sequence[str]
) -> Section:
    """Return the slowest requests with their parts."""
    rows: list[tuple[int | str, ...]] = []
    for request in choice.most_of(requests, key=lambda request: request.dur):
        block = request.longest_block
        longest = "" if block is None else cause_text(block.cause)
        thread = one_line(task_text(names, request.tid))
        rows.append((request.dur, *request.parts, request.ts, thread, request.key, longest))
    return TableSection("slowest", "Slowest", _SLOWEST, rows, events, len(requests) - len(rows))
