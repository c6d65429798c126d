"""Times from begins to ends, with figures of them by what they are of."""

from __future__ import annotations

from array import array
from itertools import compress
from typing import TYPE_CHECKING, overload

from tracepoint.analysis.distribution import Distribution
from tracepoint.analysis.histogram import Histogram
from tracepoint.analysis.pairs import NO_ROW
from tracepoint.decode.column import number_column
from tracepoint.decode.numbers import count_up
from tracepoint.named import NamedTuple
from tracepoint.record.page import LOST_UNKNOWN
from tracepoint.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tracepoint.analysis.coverage import Coverage
    from tracepoint.analysis.pairs import Pairs
    from tracepoint.decode.column import Column

#: The duration of what has no end.
OPEN = -1


class Spans(NamedTuple):
    """Times in ns by their begin, with the rows of begin and end; `dur` is OPEN (-1) without an end.

    `is_cut` says of those whether a loss may hide the end; `orphans` are the rows of ends without a begin.
    """

    begin: array[int]
    end: array[int]
    ts: array[int]
    dur: array[int]
    is_cut: bytearray
    orphans: array[int]

    def __len__(self) -> int:
        return len(self.ts)

    @property
    def counts(self) -> SpanTally:
        """How many have no end, and how many ends no begin."""
        found = SpanTally(len(self.orphans))
        found.add(self.ts, self.dur, self.is_cut)
        return found


class CutTally:
    """How many times have an end that a loss may hide (`n_cut`).

    `first_cut` is the first begin of these in ns, none without any.

    >>> cut = CutTally()
    >>> cut.cut([30, 20]), cut.cut([])
    (None, None)
    >>> cut.n_cut, cut.first_cut
    (2, [20])
    """

    def __init__(self) -> None:
        self.n_cut = 0
        self.first_cut: list[int] = []

    def cut(self, starts: Iterable[int]) -> None:
        """Add times by their begin."""
        found = [*starts]
        self.n_cut += len(found)
        if found:
            self.first_cut = [min([*self.first_cut, *found])]

    def hiding(self, coverage: Coverage) -> Hiding:
        """Return what losses hide of all such times, these included."""
        return hiding_of(coverage, self.first_cut).dropping(self.n_cut)


class SpanTally(CutTally):
    """How many times there are (`n`), how many without an end, and how many ends without a begin.

    `n_cut` are those whose end a loss may hide, `n_open` the others without an end.

    >>> counts = SpanTally()
    >>> counts.add([10, 20, 30], [5, OPEN, OPEN], [0, 1, 0])
    >>> counts.n, counts.n_open, counts.n_cut, counts.first_cut
    (3, 1, 1, [20])
    """

    def __init__(self, n_orphans: int = 0) -> None:
        super().__init__()
        self.n = self.n_open = 0
        self.n_orphans = n_orphans

    def add(self, ts: Sequence[int], dur: Sequence[int], is_cut: Sequence[int]) -> None:
        """Add times by their begin and length."""
        self.n += len(ts)
        self.n_open += sum(map(OPEN.__eq__, dur)) - sum(is_cut)
        self.cut(compress(ts, is_cut))


def spans_of(pairs: Pairs, times: Sequence[int]) -> Spans:
    """Return pairs as times, by their begin; `times` are those of the rows in ns.

    >>> from tracepoint.analysis.pairs import Pairs
    >>> pairs = Pairs(array("q", [0]), array("q", [2]), [1], [1], array("q", [3]), 0)
    >>> spans = spans_of(pairs, [100, 110, 150, 160])
    >>> list(zip(spans.ts, spans.dur, spans.is_cut))
    [(100, 50, 0), (110, -1, 1)]
    """
    cut = set(pairs.cut)
    rows = sorted([*zip(pairs.begins, pairs.ends, strict=True), *((row, NO_ROW) for row in pairs.opens)])
    begins, ends = array("q", (row for row, _ in rows)), array("q", (row for _, row in rows))
    ts = array("q", (times[row] for row in begins))
    dur = array(
        "q", (OPEN if end == NO_ROW else times[end] - start for start, end in zip(ts, ends, strict=True))
    )
    return Spans(begins, ends, ts, dur, bytearray(row in cut for row in begins), pairs.orphans)


class Hiding(NamedTuple):
    """How many samples losses may hide, None: not known, and how long one is at most in ns."""

    n: int | None
    longest: int | None

    def dropping(self, n: int) -> Hiding:
        """Return the same, where `n` more were dropped, each of which may be any.

        >>> Hiding(2, 90).dropping(3)
        Hiding(n=5, longest=90)
        """
        return self if self.n is None else self._replace(n=self.n + n)

    @overload
    def samples(self, values: Histogram, n_dropped: int = 0) -> Histogram: ...

    @overload
    def samples(self, values: Iterable[int], n_dropped: int = 0) -> Distribution: ...

    def samples(self, values: Iterable[int] | Histogram, n_dropped: int = 0) -> Distribution | Histogram:
        """Return the figures of the samples that are known, with those left out that were dropped."""
        hidden, longest = self.dropping(n_dropped)
        if isinstance(values, Histogram):
            return values.hiding(hidden, longest)
        return Distribution(values, hidden, longest)


def hiding_of(
    coverage: Coverage, since: Iterable[int] = (), each: int = 1, *, is_paired_surely: bool = True
) -> Hiding:
    """Return what the losses of a recording may hide of samples that end in it.

    `since` are the begins of samples that were dropped, `each` how many one lost event hides.  Where losses
    make begins and ends meet that do not belong together, nothing is known of how many are hidden.
    """
    lost = coverage.n_lost
    starts = [max(gap.start, coverage.start) for gaps in coverage.gaps.values() for gap in gaps]
    if coverage.n_unplaced or coverage.n_damaged:
        starts.append(coverage.start)
    starts.extend(since)
    longest = coverage.stop - min(starts) if starts else None
    is_known = lost != LOST_UNKNOWN and (is_paired_surely or not lost)
    return Hiding(lost * each if is_known else None, longest)


def samples_of(values: Iterable[int], coverage: Coverage, cut: Sequence[int] = ()) -> Distribution:
    """Return the figures of samples of a recording; `cut` are the begins of those whose end a loss may hide.

    >>> from tracepoint.analysis.coverage import Coverage, Gap
    >>> samples_of([5], Coverage(0, 90, {0: [Gap(70, 80, 2)]}), [40]).quantile(1.0)
    Bounds(low=5, high=50)
    """
    return hiding_of(coverage, cut).samples(values, len(cut))


def span_columns(
    ts: Sequence[int], dur: Sequence[int], cpu: Iterable[int] | None = None, tid: Iterable[int] | None = None
) -> list[Column]:
    """Return the columns that tables of times begin with: `id`, `ts` and `dur` in ns, and where they were.

    >>> [column.name for column in span_columns([10], [5], cpu=[0])]
    ['id', 'ts', 'dur', 'cpu']
    """
    places = (number_column(name, own, "i") for name, own in (("cpu", cpu), ("tid", tid)) if own is not None)
    return [
        number_column("id", count_up(len(ts)), "q"),
        number_column("ts", ts, "q"),
        number_column("dur", dur, "q"),
        *places,
    ]


def unpaired_notes(counts: SpanTally, begin: str, end: str, n_final: int = 0) -> Iterator[str]:
    """Yield how many begins have no end, but for `n_final` that never have one, and ends no begin."""
    if n_open := counts.n_open - n_final:
        yield f"{counted(n_open, 'begin')} without an end ({begin})"
    if counts.n_cut:
        yield f"{counted(counts.n_cut, 'begin')} whose end a loss may hide ({begin})"
    if counts.n_orphans:
        yield f"{counted(counts.n_orphans, 'end')} without a begin ({end})"
