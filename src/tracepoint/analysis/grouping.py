"""Rows that are chosen of a report, counted by what they are."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tracepoint.analysis.distribution import Bounds
    from tracepoint.analysis.records import AnalysisRecords
    from tracepoint.analysis.sections import Choice

K = TypeVar("K")
C = TypeVar("C")


def most_common(counts: Mapping[C, int], key: Callable[[C], K]) -> list[tuple[K, int]]:
    """Return how many rows have each key of what was counted, the most first.

    >>> most_common({(1, 7): 2, (2, 8): 4, (3, 7): 3}, lambda pair: pair[1])
    [(7, 5), (8, 4)]
    """
    found: Counter[K] = Counter()
    for counted, n in counts.items():
        found[key(counted)] += n
    return found.most_common()


class ChosenFigures:
    """Counts and sums of what is chosen of a report, as figures: with their bounds, or by time."""

    def __init__(self, records: AnalysisRecords, choice: Choice) -> None:
        self.records = records
        self.choice = choice
        self._seconds = records.coverage.duration / 1e9 or 1.0

    def rate(self, n: int) -> float:
        """Return how often something happened in a second of the trace."""
        return n / self._seconds

    def bound(self, n: int, n_unsure: int = 0) -> Bounds:
        """Return a count with its bounds; `n_unsure` more may belong to it."""
        return self.records.coverage.bound(n, n_unsure)

    def at_least(self, n: int) -> Bounds:
        """Return a sum of sizes or times with its bounds."""
        return self.records.coverage.at_least(n)


class Grouping(ChosenFigures):
    """The rows of the chosen tasks and CPUs, of columns with the task and the CPU of each row."""

    def __init__(
        self, records: AnalysisRecords, choice: Choice, tids: Sequence[int], cpus: Sequence[int]
    ) -> None:
        super().__init__(records, choice)
        self.rows: Sequence[int] = range(len(tids))
        if choice.cpus is not None or choice.tasks:
            chosen = choice.chosen(tids, cpus, records.names)
            self.rows = [row for row, is_chosen in enumerate(chosen) if is_chosen]

    def by(self, key: Callable[[int], K]) -> list[tuple[K, int]]:
        """Return how many rows have each key, the most first."""
        return Counter(map(key, self.rows)).most_common()
