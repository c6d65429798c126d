"""What a recording does not hold of the time that an analysis looks at: losses by CPU, with their times."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from tracepoint.analysis.distribution import Bounds
from tracepoint.decode.numbers import view_numbers
from tracepoint.named import NamedTuple
from tracepoint.record.decode import DECODE
from tracepoint.record.page import LOST_UNKNOWN, add_lost
from tracepoint.tracefile.recording import losses_of
from tracepoint.tracefile.sieve import MAX_TIME, MIN_TIME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import TypeAlias

    from tracepoint.decode.trace import Trace

    #: The times of records in ns, and their CPUs.
    Times: TypeAlias = tuple[Sequence[int], Sequence[int]]


SECOND_NS = 1_000_000_000


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

    def bound(self, n: int, n_unsure: int = 0) -> Bounds:
        """Return how many events there were of which `n` were read: each lost one may have been another.

        So may `n_unsure` that were read, of which losses hide what they are.

        >>> Coverage(0, 9, {0: [Gap(1, 2, 3)]}).bound(7)
        Bounds(low=7, high=10)
        """
        lost = self.n_lost
        return Bounds(n, None if lost == LOST_UNKNOWN else n + n_unsure + lost)

    def at_least(self, n: int) -> Bounds:
        """Return a sum of sizes or times, of which a lost event may have had any.

        >>> Coverage(0, 9, {0: [Gap(1, 2, 3)]}).at_least(4096), Coverage(0, 9, {}).at_least(4096)
        (Bounds(low=4096, high=None), Bounds(low=4096, high=4096))
        """
        return Bounds(n, n if self.is_complete else None)

    @property
    def is_complete(self) -> bool:
        """Whether nothing is known to be lost."""
        return not self.n_lost

    @property
    def duration(self) -> int:
        """The time that was looked at in ns."""
        return self.stop - self.start

    @property
    def span_text(self) -> str:
        """The time that was looked at in words."""
        return f"span from {self.start / SECOND_NS:.6f} to {self.stop / SECOND_NS:.6f} s"

    @property
    def seconds(self) -> float:
        """The time that was looked at in seconds, which figures are divided by: never 0."""
        return max(self.duration, 1) / SECOND_NS


class CpuTimes(NamedTuple):
    """The first time of a CPU, None without any, and its last before each of some times; MIN_TIME: none."""

    first: int | None
    before: Sequence[int]


def read_coverage(trace: Trace, parts: Callable[[], Iterable[Times]]) -> Coverage:
    """Return what a recording lost, from its pages and from what its recorder counted.

    `parts` gives the times in ns of what an analysis reads, and their CPUs: a gap begins at the last time of
    its CPU before it, as nothing says more.  It is called when there are losses.
    """
    told = losses_of(trace.file.options, trace.instance)
    losses = {cpu: trace.losses(cpu) for cpu in trace.lost}
    wanted = {cpu: [stop for stop, _ in own] for cpu, own in losses.items() if own or told.overrun}
    gaps = {}
    for cpu, (first, before) in find_times(parts() if wanted else (), wanted).items():
        found = [Gap(start, *loss) for start, loss in zip(before, losses[cpu], strict=True)]
        # The oldest events were overwritten, and the first page does not say so.
        if told.overrun and first is not None and not any(gap.start == MIN_TIME for gap in found):
            found.insert(0, Gap(MIN_TIME, first, LOST_UNKNOWN))
        if found:
            gaps[cpu] = found
    unplaced = told.dropped + told.commit_overrun
    start, stop = trace.span
    return Coverage(start, stop, gaps, unplaced, len(trace.file.damage))


def find_times(parts: Iterable[Times], wanted: Mapping[int, Sequence[int]]) -> dict[int, CpuTimes]:
    """Return the last time of each CPU before some times, which are in order.

    `parts` are times and CPUs of records.

    >>> stamps, cpus = array("q", [1, 2, 3, 4]), array("i", [0, 1, 0, 0])
    >>> find_times([(stamps, cpus)], {0: [3, 9]})[0]
    CpuTimes(first=1, before=[1, 4])
    """
    firsts = dict.fromkeys(wanted, MAX_TIME)
    lasts = {cpu: array("q", [MIN_TIME]) * len(stops) for cpu, stops in wanted.items()}
    given = tuple((cpu, array("q", stops)) for cpu, stops in wanted.items())
    find = find_times_slowly if DECODE is None else DECODE.times_before
    is_seen = set()
    for stamps, cpus in parts:
        for (cpu, _), (n, first, before) in zip(given, find(stamps, cpus, given), strict=True):
            is_seen.update([cpu] if n else [])
            firsts[cpu] = min(firsts[cpu], first)
            lasts[cpu] = array("q", map(max, lasts[cpu], view_numbers(before, "q")))
    return {cpu: CpuTimes(firsts[cpu] if cpu in is_seen else None, list(lasts[cpu])) for cpu in wanted}


def find_times_slowly(
    stamps: Sequence[int], cpus: Sequence[int], wanted: Iterable[tuple[int, Sequence[int]]]
) -> list[tuple[int, int, array[int]]]:
    """Return how many records each CPU has, its first time, and the last before each of some times."""
    found = []
    for cpu, stops in wanted:
        times = [stamp for stamp, own in zip(stamps, cpus, strict=True) if own == cpu]
        before = array("q", [MIN_TIME]) * len(stops)
        for stamp in times:
            at = bisect_right(stops, stamp)
            if at < len(stops):
                before[at] = max(before[at], stamp)
        found.append((len(times), min(times, default=MAX_TIME), array("q", accumulate(before, max))))
    return found


@dataclass(frozen=True)
class GapFinder:
    """Finds the first gap that ends after a time; gaps that touch are one."""

    starts: list[int]
    stops: list[int]

    def first_after(self, time: int) -> tuple[int, int] | None:
        """Return the start and stop of the first gap that ends after a time; None without one."""
        at = bisect_right(self.stops, time)
        return (self.starts[at], self.stops[at]) if at < len(self.stops) else None

    def is_between(self, since: int, until: int) -> bool:
        """Whether something may have been lost after `since` and before `until`."""
        gap = self.first_after(since)
        return gap is not None and gap[0] < until


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
