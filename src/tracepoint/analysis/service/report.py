"""Requests of a program joined with what their threads did meanwhile."""

from __future__ import annotations

from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING

from tracepoint.analysis.latency.report import analyse_latency
from tracepoint.analysis.registry import missing_of
from tracepoint.analysis.report import ALL, Report
from tracepoint.analysis.sched.report import analyse_sched
from tracepoint.analysis.sections import DistributionSection
from tracepoint.analysis.service.build import fit_of, read_requests
from tracepoint.analysis.service.lanes import read_lanes
from tracepoint.analysis.service.needs import THREAD, needs_of
from tracepoint.analysis.service.sections import blocked_section, kind_section, slowest_section
from tracepoint.analysis.service.tables import part_table, request_table
from tracepoint.analysis.spans import OPEN, samples_of
from tracepoint.analysis.syscalls.needs import ENTER, EXIT
from tracepoint.analysis.syscalls.report import analyse_syscalls
from tracepoint.errors import TracepointError
from tracepoint.tracefile.merged import COMMON_CLOCKS
from tracepoint.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracepoint.analysis.distribution import Distribution
    from tracepoint.analysis.needs import MissingEvent
    from tracepoint.analysis.sched.report import SchedReport
    from tracepoint.analysis.sections import Choice, Section
    from tracepoint.analysis.service.build import Fit, ServiceRequest
    from tracepoint.decode.table import ColumnTable
    from tracepoint.decode.trace import Trace

# The kernel writes these for a program, with its own clock.
_OF_KERNEL = "user_events"
_SWITCH = "sched:sched_switch"


class ServiceReport(Report):
    """Where the time of each request went; `analyse_service` makes it.

    `requests` are all of them by their begin; `fit` says how the times of the program fit the kernel's.
    """

    name = "service"

    def __init__(
        self,
        sched: SchedReport,
        missing: Sequence[MissingEvent],
        requests: Sequence[ServiceRequest],
        fit: Fit,
        origin: tuple[tuple[str, str], str],
    ) -> None:
        super().__init__(sched.coverage, missing)
        self.requests = requests
        self.fit = fit
        # The events of requests, and the clock.
        self._events, self._clock = origin
        tids, names = sched.thread["tid"].numbers, sched.thread["name"]
        # The last thread that had an id.
        self._names = {tid: names.words[at] for tid, at in zip(tids, names.numbers, strict=True)}

    def __repr__(self) -> str:
        return f"<ServiceReport of {counted(len(self.requests), 'request')}>"

    @property
    def tables(self) -> dict[str, ColumnTable]:
        """The rows of `service_request` and `service_part`."""
        return {"service_request": self.service_request, "service_part": self.service_part}

    @cached_property
    def service_request(self) -> ColumnTable:
        """Each request: `ts`, `dur` in ns (-1: no end), its threads and key, and its time by what it was.

        `running`, `runnable`, `sleeping`, `uninterruptible` and `unknown` add up to `dur`.
        """
        return request_table(self.requests)

    @cached_property
    def service_part(self) -> ColumnTable:
        """What the thread of each request did, one thing after the other, with what it was blocked on."""
        return part_table(self.requests)

    def _chosen(self, choice: Choice) -> list[ServiceRequest]:
        tids = [request.tid for request in self.requests]
        chosen = choice.chosen(tids, (request.cpu for request in self.requests), self._names)
        return list(compress(self.requests, chosen))

    def wall(self, choice: Choice = ALL) -> Distribution:
        """Return how long requests took in ns."""
        chosen = self._chosen(choice)
        cut = [request.ts for request in chosen if request.is_cut]
        return samples_of((one.dur for one in chosen if one.dur != OPEN), self.coverage, cut)

    def sections(self, choice: Choice = ALL) -> Sequence[Section]:
        """Return how long requests took, where their time went, what blocked them, and the slowest."""
        done = [request for request in self._chosen(choice) if request.dur != OPEN]
        title = f"Requests, from {self._events[0]} to {self._events[1]}"
        events = (*self._events, _SWITCH)
        return (
            DistributionSection("wall_ns", title, {"all": self.wall(choice)}, events=self._events),
            kind_section(done, events),
            blocked_section(done, choice, (*events, ENTER, EXIT)),
            slowest_section(done, self._names, choice, events),
        )

    def notes(self) -> Iterator[str]:
        """Yield what limits the figures: losses, clocks, threads that are not known or serve several."""
        yield from super().notes()
        fit, n = self.fit, len(self.requests)
        if not self._events[0].startswith(_OF_KERNEL) and self._clock not in COMMON_CLOCKS:
            yield (
                f"the clock is {self._clock or 'not named'}: times that a program recorded itself fit the "
                "kernel's only with mono"
            )
        if fit.n_off:
            yield f"{fit.n_off:,} of {fit.n_known:,} requests begin in a thread that does not run then"
        if fit.n_unseen:
            yield (
                f"the scheduler says nothing of the threads of {counted(fit.n_unseen, 'request')}: they ran "
                "all the time, or ids are those of another pid namespace"
            )
        if fit.n_shared:
            yield (
                f"{fit.n_shared:,} of {n:,} requests begin while another of their thread is open (asyncio): "
                "their parts are what the thread did, for any of them"
            )
        if n_moved := sum(one.dur != OPEN and one.tid != one.end_tid for one in self.requests):
            yield f"{counted(n_moved, 'request')} ended in another thread: parts are of the one that began it"
        if n_cut := sum(one.is_cut for one in self.requests):
            yield f"{counted(n_cut, 'request')} whose end a loss may hide"
        if n_open := sum(one.dur == OPEN and not one.is_cut for one in self.requests):
            yield f"{counted(n_open, 'request')} without an end"


def analyse_service(
    trace: Trace, begin: str, end: str, key: str = THREAD, order: str = "last"
) -> ServiceReport:
    """Return where the time of each request of a program went.

    A request lasts from an event `begin` to the event `end` that belongs to it, as for `analyse_latency`:
    without a `key`, the next one of its thread.  The trace has the events of the kernel too, on one clock:
    of two recordings, `tp.open_trace([KERNEL, PROGRAM])`.  Raises TracepointError for events that the
    recording does not have, and where the times of the program do not fit the kernel's; KeyError for an
    unknown order.

    >>> import tracepoint as tp
    >>> with tp.open_trace("tests/tracefile/golden/cut.v6.dat") as trace:
    ...     analyse_service(trace, "raw_syscalls:sys_enter", "raw_syscalls:sys_exit")
    <ServiceReport of 15 requests>
    """
    latency = analyse_latency(trace, begin, end, key, order)
    recorded = {name for name, n in trace.events.items() if n}
    sched, rows = analyse_sched(trace), latency.latency
    calls = analyse_syscalls(trace) if {ENTER, EXIT} <= recorded else None
    lanes = read_lanes(sched, calls, frozenset(rows["tid"].numbers))
    requests = read_requests(rows, lanes)
    fit = fit_of(requests, lanes)
    if 2 * fit.n_off > fit.n_known:
        raise TracepointError(
            f"{trace.file.path}: {fit.n_off:,} of {fit.n_known:,} requests begin in a thread that does not "
            f"run then: the clocks ({trace.clock or 'not named'}) are not the same, record both with mono"
        )
    missing = list(missing_of(needs_of(*latency.events, key, order), recorded))
    return ServiceReport(sched, missing, requests, fit, (latency.events, trace.clock))


analyse = analyse_service
