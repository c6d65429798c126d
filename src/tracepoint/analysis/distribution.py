"""Samples with their quantiles, and the bounds of what lost events may have changed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import ceil
from typing import TYPE_CHECKING

from tracepoint.decode.numbers import sort_numbers
from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Bounds(NamedTuple):
    """The true figure is from `low` to `high`; None: there is no limit on that side."""

    low: float
    high: float | None

    @property
    def is_exact(self) -> bool:
        """Whether both are the same."""
        return self.low == self.high


class Samples(ABC):
    """The figures of samples, of which `n_hidden` more may have happened than are known.

    Each of those is from 0 to `longest_hidden`; None where it is not known how many, or how long.
    """

    n_hidden: int | None
    longest_hidden: int | None

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def values(self) -> Sequence[int]:
        """The samples in order, as near as they are known."""

    @property
    @abstractmethod
    def total(self) -> int:
        """The sum of the samples that are known."""

    @abstractmethod
    def ranked(self, rank: int) -> Bounds:
        """Return the sample of a rank, 1 for the smallest one that is known."""

    @property
    def count(self) -> Bounds:
        """How many samples there were."""
        n = len(self)
        return Bounds(n, None if self.n_hidden is None else n + self.n_hidden)

    @property
    def sum(self) -> Bounds:
        """The sum of the samples."""
        total = self.total
        if self.n_hidden == 0:
            return Bounds(total, total)
        if self.n_hidden is None or self.longest_hidden is None:
            return Bounds(total, None)
        return Bounds(total, total + self.n_hidden * self.longest_hidden)

    @property
    def mean(self) -> float | None:
        """The mean of the samples that are known; None without any."""
        return self.total / len(self) if len(self) else None

    def quantile(self, q: float) -> Bounds | None:
        """Return between which values a quantile is, `q` from 0 to 1; 1 is the largest sample.

        None without samples, and where it is not known how many there were.

        Of N samples it is the one of rank ceil(q N): with K hidden ones, between two of those that are known.
        """
        n, hidden = len(self), self.n_hidden
        if not n or hidden is None:
            return None
        rank = max(ceil(q * (n + hidden)), 1)
        low = self.ranked(rank - hidden).low if rank > hidden else min(self.ranked(1).low, 0)
        if rank <= n:
            return Bounds(low, self.ranked(rank).high)
        largest = self.ranked(n).high
        if self.longest_hidden is None or largest is None:
            return Bounds(low, None)
        return Bounds(low, max(self.longest_hidden, largest))

    def quantiles(self, *qs: float) -> list[Bounds | None]:
        """Return the bounds of several quantiles."""
        return [self.quantile(q) for q in qs]


class Distribution(Samples):
    """Samples that are not negative, such as latencies in ns, each with its exact value.

    >>> latency = Distribution([10, 20, 30, 40], n_hidden=1)
    >>> latency.count, latency.quantile(0.5), latency.sum
    (Bounds(low=4, high=5), Bounds(low=20, high=30), Bounds(low=100, high=None))
    """

    def __init__(
        self, values: Iterable[int], n_hidden: int | None = 0, longest_hidden: int | None = None
    ) -> None:
        self._values, self._total = sort_numbers(values)
        self.n_hidden = n_hidden
        self.longest_hidden = longest_hidden

    def __repr__(self) -> str:
        return f"<Distribution of {len(self._values):,} samples>"

    def __len__(self) -> int:
        return len(self._values)

    @property
    def values(self) -> memoryview[int]:
        """The samples in order, exactly, as int64."""
        return self._values

    @property
    def total(self) -> int:
        """The sum of the samples that are known."""
        return self._total

    def ranked(self, rank: int) -> Bounds:
        """Return the sample of a rank, 1 for the smallest one that is known."""
        value = self._values[rank - 1]
        return Bounds(value, value)
