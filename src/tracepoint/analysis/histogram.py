"""Histograms that add up: buckets whose width grows with the value, so that the relative error is stated."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from itertools import accumulate, repeat
from typing import TYPE_CHECKING, Any

from tracepoint.analysis.distribution import Bounds, Samples
from tracepoint.decode.column import number_column
from tracepoint.decode.table import ColumnTable
from tracepoint.errors import TracepointError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tracepoint.decode.column import Column

#: Bits of the value that a bucket keeps: an error of at most 0.4 % from the middle of a bucket.
PRECISION = 7
_MAX_PRECISION = 30
_FORM = "p, n, sum, min, max, n_hidden, longest_hidden and buckets"


def bucket_of(value: int, p: int) -> int:
    """Return the number of the bucket of a value; a negative one has buckets of its own, below 0.

    A value below 2^p is its own bucket.  Of a larger one, with e = floor(log2 value), the p bits after the
    first one say which of the 2^p buckets of that power: each is 2^(e-p) wide.

    >>> bucket_of(127, 7), bucket_of(256, 7), bucket_of(257, 7), bucket_of(2**64 - 1, 7), bucket_of(-1, 7)
    (127, 256, 256, 7423, -2)
    """
    if value < 0:
        return ~bucket_of(-value, p)
    shift = value.bit_length() - 1 - p
    return value if shift <= 0 else (shift << p) + (value >> shift)


def edges_of(bucket: int, p: int) -> tuple[int, int]:
    """Return the smallest and the largest whole number of a bucket.

    >>> edges_of(127, 7), edges_of(256, 7), edges_of(7423, 7) == (2**64 - 2**56, 2**64 - 1)
    ((127, 127), (256, 257), True)
    """
    if bucket < 0:
        low, high = edges_of(~bucket, p)
        return -high, -low
    shift = (bucket >> p) - 1
    if shift <= 0:
        return bucket, bucket
    low = (bucket - (shift << p)) << shift
    return low, low + (1 << shift) - 1


class Histogram(Samples):
    """How many samples had which value, as counts of buckets; histograms of any precision add up.

    Counts are exact, values are known to within their bucket: its middle is at most `error` = 2^-(p+1) off,
    its edges 2^-p, both relative to the value.  `n`, `total`, `min` and `max` are exact.  `n_hidden` more
    samples may have happened, each from 0 to `longest_hidden`; None: not known.

    >>> histogram = Histogram([10, 20, 30, 1000])
    >>> histogram.quantile(0.5), histogram.quantile(1), histogram.merge(histogram).n
    (Bounds(low=20, high=20), Bounds(low=1000, high=1000), 8)

    Raises ValueError for a precision that is not from 0 to 30.
    """

    def __init__(
        self,
        values: Iterable[int] = (),
        p: int = PRECISION,
        n_hidden: int | None = 0,
        longest_hidden: int | None = None,
    ) -> None:
        if not 0 <= p <= _MAX_PRECISION:
            raise ValueError(f"a precision of {p} bits: give 0 to {_MAX_PRECISION}")
        known = list(values)
        self.p = p
        self.n_hidden = n_hidden
        self.longest_hidden = longest_hidden
        self.buckets: Counter[int] = Counter()
        for value, n in Counter(known).items():
            self.buckets[bucket_of(value, p)] += n
        self.n, self._total = len(known), sum(known)
        self.min: int | None = min(known, default=None)
        self.max: int | None = max(known, default=None)
        self._ranks: tuple[list[int], list[int]] | None = None

    def __repr__(self) -> str:
        return f"<Histogram of {self.n:,} samples in {len(self.buckets):,} buckets>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Histogram) and self.facts() == other.facts()

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return self.n

    @property
    def total(self) -> int:
        """The sum of the samples that are known."""
        return self._total

    @property
    def values(self) -> Sequence[int]:
        """The samples in order, each as the middle of its bucket, no less than `min` and no more than `max`.

        >>> list(Histogram([10, 5000, 9000], p=4).values)
        [10, 4991, 8959]
        """
        found = array("q")
        for bucket in sorted(self.buckets):
            low, high = edges_of(bucket, self.p)
            middle = min(max((low + high) // 2, self.min or low), high if self.max is None else self.max)
            found.extend(repeat(middle, self.buckets[bucket]))
        return found

    @property
    def error(self) -> float:
        """How far a value is at most from the middle of its bucket, as a part of the value."""
        return 0.5 ** (self.p + 1)

    def merge(self, other: Histogram) -> Histogram:
        """Return the histogram of the samples of both, in the lower of the two precisions."""
        p = min(self.p, other.p)
        a, b = self.coarser(p), other.coarser(p)
        found = Histogram((), p)
        found.add(a)
        found.add(b)
        return found

    def add(self, other: Histogram) -> None:
        """Add the samples of another histogram to this one; raises ValueError for another precision.

        >>> histogram = Histogram([1, 2])
        >>> histogram.add(Histogram([2, 300]))
        >>> list(histogram.values)
        [1, 2, 2, 300]
        """
        if other.p != self.p:
            raise ValueError(f"a histogram of {other.p} bits is not added to one of {self.p}")
        self.n_hidden, self.longest_hidden = _added(self.n_hidden, other.n_hidden), _longest(self, other)
        self.buckets.update(other.buckets)
        self.n, self._total = self.n + other.n, self.total + other.total
        self.min = min((v for v in (self.min, other.min) if v is not None), default=None)
        self.max = max((v for v in (self.max, other.max) if v is not None), default=None)
        self._ranks = None

    def hiding(self, n: int | None, longest: int | None) -> Histogram:
        """Return the same samples, and how many more are hidden, each of which is at most `longest`."""
        found = Histogram((), self.p)
        found.add(self)
        found.n_hidden, found.longest_hidden = n, longest
        return found

    def coarser(self, p: int) -> Histogram:
        """Return the same samples in a precision of `p` bits; raises ValueError for a higher one."""
        if p == self.p:
            return self
        if p > self.p:
            raise ValueError(f"{self.p} bits were kept of each value, not {p}")
        found = Histogram((), p, self.n_hidden, self.longest_hidden)
        for bucket, n in self.buckets.items():
            found.buckets[bucket_of(edges_of(bucket, self.p)[0], p)] += n
        found.n, found._total, found.min, found.max = self.n, self.total, self.min, self.max
        return found

    def seen(self) -> Histogram:
        """Return the same without what may be hidden: the figures of the samples that are known."""
        return self.hiding(0, None)

    def ranked(self, rank: int) -> Bounds:
        """Return the sample of a rank, 1 for the smallest: the edges of its bucket, exact for both ends."""
        for known, value in ((1, self.min), (self.n, self.max)):
            if rank == known and value is not None:
                return Bounds(value, value)
        if self._ranks is None:
            ordered = sorted(self.buckets)
            self._ranks = ordered, list(accumulate(self.buckets[bucket] for bucket in ordered))
        ordered, ends = self._ranks
        low, high = edges_of(ordered[bisect_left(ends, rank)], self.p)
        return Bounds(low if self.min is None else max(low, self.min), min(high, self.max or 0))

    def facts(self) -> dict[str, Any]:
        """Return the histogram as values for JSON; `buckets` has the number and the count of each."""
        return {
            "p": self.p,
            "n": self.n,
            "sum": self.total,
            "min": self.min,
            "max": self.max,
            "n_hidden": self.n_hidden,
            "longest_hidden": self.longest_hidden,
            "buckets": [[bucket, self.buckets[bucket]] for bucket in sorted(self.buckets)],
        }

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> Histogram:
        """Return the histogram that `facts` gave; raises TracepointError for what it cannot have given."""
        try:
            found = cls((), facts["p"], facts["n_hidden"], facts["longest_hidden"])
            found.buckets = Counter({int(bucket): int(n) for bucket, n in facts["buckets"]})
            found.n, found._total = int(facts["n"]), int(facts["sum"])
            found.min, found.max = facts["min"], facts["max"]
            is_whole = found.n == sum(found.buckets.values()) and min(found.buckets.values(), default=1) > 0
            ends = [bucket_of(value, found.p) for value in (found.min, found.max) if value is not None]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise TracepointError(f"not a histogram ({error!r}): it has {_FORM}") from None
        if not is_whole or ends != ([min(found.buckets), max(found.buckets)] if found.buckets else []):
            raise TracepointError("not a histogram: its buckets do not agree with its n, min and max")
        return found

    def table(self) -> ColumnTable:
        """Return the buckets by value as a table that Arrow takes: `low`, `high` (both in it) and `n`.

        Raises OverflowError for samples of more than 64 bits.
        """

        def columns() -> list[Column]:
            ordered = sorted(self.buckets)
            edges = [edges_of(bucket, self.p) for bucket in ordered]
            return [
                number_column("low", [low for low, _ in edges], "q"),
                number_column("high", [high for _, high in edges], "q"),
                number_column("n", [self.buckets[bucket] for bucket in ordered], "q"),
            ]

        return ColumnTable("histogram", columns)


def histogram_of(samples: Samples) -> Histogram:
    """Return samples as a histogram.

    >>> from tracepoint.analysis.distribution import Distribution
    >>> histogram_of(Distribution([3, 5], n_hidden=1)).count
    Bounds(low=2, high=3)
    """
    known = samples if isinstance(samples, Histogram) else Histogram(samples.values)
    return known.hiding(samples.n_hidden, samples.longest_hidden)


def _added(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _longest(a: Histogram, b: Histogram) -> int | None:
    """Return the longest that a hidden sample of either can be; what hides nothing says nothing."""
    found = [one.longest_hidden for one in (a, b) if one.n_hidden != 0]
    known = [longest for longest in found if longest is not None]
    return max(known, default=None) if len(known) == len(found) else None
