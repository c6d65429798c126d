"""The keys with the largest counts, in a bounded number of counters that add up."""

from __future__ import annotations

from typing import Any

from tracepoint.analysis.distribution import Bounds
from tracepoint.errors import TracepointError

#: Counters that are kept: exact for as many keys.
CAPACITY = 1024


class TopK:
    """Counts of keys: exact while at most `capacity` have been seen, then with a stated over-count.

    Space-Saving (Metwally, Agrawal and El Abbadi, 2005): a key that finds no counter takes the smallest one
    over.  `floor` is the most that a key without a counter can have, and the most that a count is too high:
    at most `n` / `capacity`, after merges too.

    >>> top = TopK(2)
    >>> for name in "aababca":
    ...     top.add(name)
    >>> top.largest(1), top.count("c"), top.is_exact
    ([('a', Bounds(low=4, high=4))], Bounds(low=1, high=3), False)

    Raises ValueError for a capacity below 1.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        if capacity < 1:
            raise ValueError(f"{capacity} counters: give 1 or more")
        self.capacity = capacity
        self.n = self.floor = 0
        #: The count of each key, and how much of it may be too high.
        self._counters: dict[str, tuple[int, int]] = {}

    def __repr__(self) -> str:
        return f"<TopK of {len(self._counters):,} keys, {self.n:,} counted>"

    def __len__(self) -> int:
        return len(self._counters)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TopK) and self.facts() == other.facts()

    __hash__ = None  # type: ignore[assignment]

    @property
    def is_exact(self) -> bool:
        """Whether each key has a counter, and each count is exact."""
        return not self.floor

    def add(self, key: str, n: int = 1) -> None:
        """Count a key `n` times; raises ValueError for a negative number."""
        if n < 0:
            raise ValueError(f"{key!r} cannot be counted {n} times")
        if not n:
            return
        self.n += n
        if key not in self._counters and len(self._counters) >= self.capacity:
            smallest = min(self._counters, key=lambda k: (self._counters[k][0], k))
            self.floor = self._counters.pop(smallest)[0]
        count, over = self._counters.get(key, (self.floor, self.floor))
        self._counters[key] = count + n, over

    def count(self, key: str) -> Bounds:
        """Return how often a key was counted."""
        count, over = self._counters.get(key, (self.floor, self.floor))
        return Bounds(count - over, count)

    def largest(self, most: int | None = None) -> list[tuple[str, Bounds]]:
        """Return the keys with the largest counts, the largest first."""
        return [(key, self.count(key)) for key in _by_count(self._counters)[:most]]

    def merge(self, other: TopK) -> TopK:
        """Return the counts of both in the smaller of the two capacities.

        Counts and their errors add up; a key that has no counter in one of them has its `floor` there.
        """
        found = TopK(min(self.capacity, other.capacity))
        found.n, found.floor = self.n + other.n, self.floor + other.floor
        a, b = (self.floor, self.floor), (other.floor, other.floor)
        for key in self._counters.keys() | other._counters.keys():
            (one, over), (two, more) = self._counters.get(key, a), other._counters.get(key, b)
            found._counters[key] = one + two, over + more
        for key in _by_count(found._counters)[found.capacity :]:
            found.floor = max(found.floor, found._counters.pop(key)[0])
        return found

    def facts(self) -> dict[str, Any]:
        """Return the counts as values for JSON; `top` has key, count and over-count, the largest first."""
        ordered = _by_count(self._counters)
        top = [[key, *self._counters[key]] for key in ordered]
        return {"capacity": self.capacity, "n": self.n, "floor": self.floor, "top": top}

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> TopK:
        """Return the counts that `facts` gave; raises TracepointError for what it cannot have given."""
        try:
            found = cls(facts["capacity"])
            found.n, found.floor = int(facts["n"]), int(facts["floor"])
            found._counters = {str(key): (int(count), int(over)) for key, count, over in facts["top"]}
        except (KeyError, TypeError, ValueError) as error:
            raise TracepointError(f"not a top list ({error!r}): it has capacity, n, floor and top") from None
        if len(found) > found.capacity or any(not 0 <= over < n for n, over in found._counters.values()):
            raise TracepointError(
                "not a top list: it has more keys than counters, or counts below their error"
            )
        return found


def _by_count(counters: dict[str, tuple[int, int]]) -> list[str]:
    return sorted(counters, key=lambda key: (-counters[key][0], key))
