"""Samples with their quantiles, and the bounds of what lost events may have changed."""

from __future__ import annotations

from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class Bounds(NamedTuple):
    """The true figure is from `low` to `high`; None: there is no limit on that side."""

    low: float
    high: float | None

    @property
    def is_exact(self) -> bool:
        """Whether both are the same."""
        return self.low == self.high


class Distribution:
    """Samples that are not negative, such as latencies in ns.

    `n_hidden` more may have happened that are not among them, each at most `longest_hidden`; None where
    nobody knows how many, or how long.

    >>> latency = Distribution([10, 20, 30, 40], n_hidden=1)
    >>> latency.count, latency.quantile(0.5), latency.sum
    (Bounds(low=4, high=5), Bounds(low=20, high=30), Bounds(low=100, high=None))
    """

    def __init__(
        self, values: Iterable[int], n_hidden: int | None = 0, longest_hidden: int | None = None
    ) -> None:
        self.values = sorted(values)
        self.n_hidden = n_hidden
        self.longest_hidden = longest_hidden

    def __repr__(self) -> str:
        return f"<Distribution of {len(self.values):,} samples>"

    def __len__(self) -> int:
        return len(self.values)

    @property
    def count(self) -> Bounds:
        """How many samples there were."""
        n = len(self.values)
        return Bounds(n, None if self.n_hidden is None else n + self.n_hidden)

    @cached_property
    def sum(self) -> Bounds:
        """The sum of the samples."""
        total = sum(self.values)
        if self.n_hidden == 0:
            return Bounds(total, total)
        if self.n_hidden is None or self.longest_hidden is None:
            return Bounds(total, None)
        return Bounds(total, total + self.n_hidden * self.longest_hidden)

    @property
    def mean(self) -> float | None:
        """The mean of the samples that are known; None without any."""
        return self.sum.low / len(self.values) if self.values else None

    def quantile(self, q: float) -> Bounds | None:
        """Return between which values a quantile is, `q` from 0 to 1; 1 is the largest sample.

        None without samples, and where nobody knows how many there were.

        Of N samples it is the one of rank ceil(q N): with K hidden ones, between two of those that are known.
        """
        values, hidden = self.values, self.n_hidden
        if not values or hidden is None:
            return None
        rank = max(ceil(q * (len(values) + hidden)), 1)
        low = values[rank - hidden - 1] if rank > hidden else 0
        if rank <= len(values):
            return Bounds(low, values[rank - 1])
        high = None if self.longest_hidden is None else max(self.longest_hidden, values[-1])
        return Bounds(low, high)

    def quantiles(self, *qs: float) -> list[Bounds | None]:
        """Return the bounds of several quantiles."""
        return [self.quantile(q) for q in qs]
