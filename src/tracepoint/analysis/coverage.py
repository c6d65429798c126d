"""What a recording does not hold of the time that an analysis looks at: losses by CPU, with their times."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tracepoint.record.page import LOST_UNKNOWN, add_lost
from tracepoint.tracefile.recording import losses_of
from tracepoint.tracefile.sieve import MIN_TIME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tracepoint.decode.trace import Trace


class Gap(NamedTuple):
    """A time in which a CPU lost events: after `start`, up to `stop`, in ns.

    `n_lost` is how many, LOST_UNKNOWN (-1): some.  `start` is MIN_TIME where nothing is known of before.
    """

    start: int
    stop: int
    n_lost: int


class Coverage(NamedTuple):
    """The time that was looked at, and what was lost of it.

    `start` and `stop` are the times of the first and the last record in ns, `gaps` those of each CPU by time;
    `n_unplaced` events were lost that no page says the time of, so any figure may lack them.  `n_damaged`
    is the number of places of the file that could not be read.
    """

    start: int
    stop: int
    gaps: Mapping[int, Sequence[Gap]]
    n_unplaced: int = 0
    n_damaged: int = 0

    @property
    def n_lost(self) -> int:
        """How many events were lost; LOST_UNKNOWN (-1): some that were not counted."""
        total = LOST_UNKNOWN if self.n_damaged else self.n_unplaced
        for gap in (gap for gaps in self.gaps.values() for gap in gaps):
            total = add_lost(total, gap.n_lost)
        return total

    @property
    def is_complete(self) -> bool:
        """Whether nothing is known to be lost."""
        return not self.n_lost

    @property
    def duration(self) -> int:
        """The time that was looked at in ns."""
        return self.stop - self.start


def read_coverage(trace: Trace, times_of: Mapping[int, Sequence[int]]) -> Coverage:
    """Return what a recording lost, from its pages and from what its recorder counted.

    `times_of` are the times in ns, in order, of what an analysis reads of each CPU: a gap begins at the
    last of them before it, as nothing says more.
    """
    gaps = {}
    told = losses_of(trace.file.options, trace.instance)
    for cpu in trace.lost:
        times = times_of.get(cpu, ())
        found = list(_gaps(trace.losses(cpu), times))
        # The oldest events were overwritten, and the first page does not say so.
        if told.overrun and times and not any(gap.start == MIN_TIME for gap in found):
            found.insert(0, Gap(MIN_TIME, times[0], LOST_UNKNOWN))
        if found:
            gaps[cpu] = found
    unplaced = told.dropped + told.commit_overrun
    start, stop = trace.span
    return Coverage(start, stop, gaps, unplaced, len(trace.file.damage))


def _gaps(losses: Iterable[tuple[int, int]], times: Sequence[int]) -> Iterator[Gap]:
    for stop, n_lost in losses:
        before = bisect_right(times, stop - 1)
        yield Gap(times[before - 1] if before else MIN_TIME, stop, n_lost)


@dataclass(frozen=True)
class GapFinder:
    """Finds the first gap that ends after a time; gaps that touch are one."""

    starts: list[int]
    stops: list[int]

    def first_after(self, time: int) -> tuple[int, int] | None:
        """Return the start and stop of the first gap that ends after a time; None without one."""
        at = bisect_right(self.stops, time)
        return (self.starts[at], self.stops[at]) if at < len(self.stops) else None


def join_gaps(gaps: Iterable[Gap]) -> GapFinder:
    """Return the times in which any of the gaps is, by time.

    >>> join_gaps([Gap(5, 9, 1), Gap(0, 2, 1), Gap(8, 12, 1)])
    GapFinder(starts=[0, 5], stops=[2, 12])
    """
    starts: list[int] = []
    stops: list[int] = []
    for gap in sorted(gaps):
        if stops and gap.start <= stops[-1]:
            stops[-1] = max(stops[-1], gap.stop)
        else:
            starts.append(gap.start)
            stops.append(gap.stop)
    return GapFinder(starts, stops)


def count_coverage(coverage: Coverage) -> tuple[dict[str, int], dict[str, int | None]]:
    """Return what was looked at and lost as counts that add up, and how much more each may be.

    >>> count_coverage(Coverage(5, 9, {0: [Gap(5, 7, 3)]}))[0]["lost_events"]
    3
    """
    gaps = [gap for gaps in coverage.gaps.values() for gap in gaps]
    is_counted = coverage.n_lost != LOST_UNKNOWN
    lost = coverage.n_unplaced + sum(max(gap.n_lost, 1) for gap in gaps)
    counts = {
        "traces": 1,
        "traces_with_losses": int(not coverage.is_complete),
        "duration_ns": coverage.duration,
        "lost_events": lost,
        "gaps": len(gaps),
        "damaged_places": coverage.n_damaged,
    }
    return counts, {} if is_counted else {"lost_events": None}
