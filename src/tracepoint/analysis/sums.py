"""Figures of rows that add up part by part, and come out as if all rows had been given at once."""

from __future__ import annotations

from array import array
from collections import Counter
from heapq import nlargest
from itertools import compress, islice, repeat
from typing import TYPE_CHECKING, Generic, TypeVar

from tracepoint.analysis.histogram import PRECISION, Histogram
from tracepoint.analysis.spans import OPEN
from tracepoint.record.decode import DECODE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from tracepoint.analysis.distribution import Samples
    from tracepoint.analysis.spans import Hiding

    #: Of each row whether it is chosen; None: all are.
    Flags: TypeAlias = Sequence[bool] | None

Key = TypeVar("Key", bound="Hashable")
Name = TypeVar("Name", bound="Hashable")
Row = TypeVar("Row")
#: So many samples are kept each by itself; more are folded into histograms.
MAX_EXACT = 4_000_000
# So many rows are looked at together: all of a part, as tuples, would take more memory than the part.
_CHUNK = 1 << 16
# A histogram takes more memory than so few samples.
_FEW = 1024


def fold_samples(
    keys: Iterable[int], others: Iterable[int], values: Iterable[int]
) -> Iterator[tuple[tuple[int, int], Histogram]]:
    """Yield a histogram of PRECISION bits for each pair of int32 keys, in the order in which they come.

    Each is an array with a number for each sample; the values are int64.

    >>> found = fold_samples(array("i", [7, 8, 7]), array("i", [0, 0, 0]), array("q", [5, 6, 9]))
    >>> [(key, list(histogram.values)) for key, histogram in found]
    [((7, 0), [5, 9]), ((8, 0), [6])]
    """
    if DECODE is None:
        own: dict[tuple[int, int], list[int]] = {}
        for key, other, value in zip(keys, others, values, strict=True):
            own.setdefault((key, other), []).append(value)
        yield from ((pair, Histogram(found)) for pair, found in own.items())
        return
    groups, buckets = DECODE.sched_fold(keys, others, values, PRECISION)
    counts: list[list[tuple[int, int]]] = [[] for _ in groups]
    for group, bucket, n in buckets:
        counts[group].append((bucket, n))
    facts = {"p": PRECISION, "n_hidden": 0, "longest_hidden": None}
    for (key, other, *figures), held in zip(groups, counts, strict=True):
        facts |= dict(zip(("n", "sum", "min", "max"), figures, strict=True)) | {"buckets": held}
        yield (key, other), Histogram.from_facts(facts)


def _first_of(keys: Sequence[Key], numbers: Sequence[int]) -> dict[Key, int]:
    """Return the number of the first row of each key."""
    return dict(zip(reversed(keys), reversed(numbers), strict=True))


class KeyCounts(Generic[Key]):
    """How many rows have each key.

    >>> counts = KeyCounts()
    >>> counts.add(["b", "a"], [1, 2])
    >>> counts.add(["c", "c", "a"], [0, 3, 4])
    >>> counts.most_common()
    [('c', 2), ('a', 2), ('b', 1)]
    """

    def __init__(self) -> None:
        self._counts: Counter[Key] = Counter()
        self._first: dict[Key, int] = {}

    def add(self, keys: Sequence[Key], numbers: Sequence[int]) -> None:
        """Add the keys of rows, with the numbers of the rows."""
        self._counts.update(keys)
        for key, number in _first_of(keys, numbers).items():
            self._first[key] = min(number, self._first.get(key, number))

    @property
    def counts(self) -> Mapping[Key, int]:
        """How many rows have each key, those of which rows began first before others."""
        return {key: self._counts[key] for key in sorted(self._counts, key=self._first.__getitem__)}

    def most_common(self) -> list[tuple[Key, int]]:
        """Return how many rows have each key, the most first; of equal ones those that began first."""
        return sorted(self.counts.items(), key=lambda one: -one[1])


class RowCounts:
    """How many rows are equal in some columns, those of which rows began first before others.

    With `is_in_order` they come by their numbers, which then take no time.

    >>> counts = RowCounts(is_in_order=False)
    >>> counts.add([[7, 8], [1, 2]], [3, 5])
    >>> counts.add([[9, 8], [0, 2]], [2, 9], [True, True])
    >>> counts.counts
    {(9, 0): 1, (7, 1): 1, (8, 2): 2}
    """

    def __init__(self, *, is_in_order: bool) -> None:
        self._in_order: Counter[tuple[int, ...]] | None = Counter() if is_in_order else None
        self._keys: KeyCounts[tuple[int, ...]] = KeyCounts()
        #: How many rows there are.
        self.n = 0

    def add(self, columns: Sequence[Sequence[int]], numbers: Sequence[int], flags: Flags = None) -> None:
        """Add rows by their columns, with the numbers of the rows."""
        rows: Iterable[tuple[int, ...]] = zip(*columns, strict=True)
        if flags is not None:
            rows, numbers = compress(rows, flags), list(compress(numbers, flags))
        self.n += len(numbers)
        if self._in_order is not None:
            self._in_order.update(rows)
            return
        at = 0
        while chunk := list(islice(rows, _CHUNK)):
            self._keys.add(chunk, numbers[at : at + len(chunk)])
            at += len(chunk)

    @property
    def counts(self) -> Mapping[tuple[int, ...], int]:
        """How many rows there are of each combination of numbers."""
        return self._keys.counts if self._in_order is None else self._in_order


class SampleSums(Generic[Key]):
    """Times in ns by what they are of.

    When there are more than MAX_EXACT, those of which there are many are folded into histograms: then their
    quantiles are ranges, at most 2^-PRECISION wide, and memory does not grow with time.

    >>> from tracepoint.analysis.spans import Hiding
    >>> sums = SampleSums()
    >>> sums.add(["read", "write", "read"], [5, 30, OPEN], [0, 0, 1], range(3))
    >>> sums.samples(Hiding(0, 40))
    {'write': <Distribution of 1 samples>, 'read': <Distribution of 1 samples>}
    >>> sums.samples(Hiding(0, 40))["read"].count
    Bounds(low=1, high=2)
    """

    def __init__(self) -> None:
        self._exact: dict[Key, array[int]] = {}
        self._folded: dict[Key, Histogram] = {}
        self._first: dict[Key, int] = {}
        self._n_cut: Counter[Key] = Counter()
        self._n = 0

    def add(
        self,
        groups: Sequence[Key],
        durs: Sequence[int],
        is_cut: Sequence[int],
        numbers: Sequence[int],
        flags: Flags = None,
    ) -> None:
        """Add times by their group; of those without an end (OPEN), how many end in a loss (`is_cut`)."""
        rows: Iterable[tuple[Key, int, int]] = zip(groups, durs, numbers, strict=True)
        found: dict[Key, array[int]] = {}
        adders: dict[Key, Callable[[int], None]] = {}
        for group, dur, number in rows if flags is None else compress(rows, flags):
            if dur == OPEN:
                continue
            try:
                adders[group](dur)
            except KeyError:
                found[group] = array("q", (dur,))
                adders[group] = found[group].append
                self._first[group] = min(number, self._first.get(group, number))
        if 1 in is_cut:
            cut = zip(groups, is_cut, durs, strict=True)
            chosen = cut if flags is None else compress(cut, flags)
            self._n_cut.update(group for group, is_hidden, dur in chosen if is_hidden and dur == OPEN)
        self.add_values(found)

    def add_values(self, found: Mapping[Key, array[int]]) -> None:
        """Add int64 values by group, in arrays that are not used after; of equal groups any is first."""
        for group, values in found.items():
            if group in self._exact:
                self._exact[group] += values
            else:
                self._exact[group] = values
            self._n += len(values)
        if self._n > MAX_EXACT:
            self._fold()

    def _fold(self) -> None:
        groups = [group for group, own in self._exact.items() if len(own) > _FEW or group in self._folded]
        keys, values = array("i"), array("q")
        for at, group in enumerate(groups):
            own = self._exact.pop(group)
            keys.extend(repeat(at, len(own)))
            values += own
        for (at, _), histogram in fold_samples(keys, array("i", bytes(4 * len(keys))), values):
            self._folded.setdefault(groups[at], Histogram()).add(histogram)
        self._n -= len(values)

    @property
    def _values(self) -> Mapping[Key, array[int] | Histogram]:
        """The times by group, each by itself or folded."""
        if self._folded:
            self._fold()
        return {**self._exact, **self._folded}

    def joined(self, hiding: Hiding, groups: Collection[Key] = ()) -> Samples:
        """Return the times of some groups as one; without any, those of all.

        >>> from tracepoint.analysis.spans import Hiding
        >>> sums = SampleSums()
        >>> sums.add(["read", "write", "read"], [5, 30, 7], (), range(3))
        >>> list(sums.joined(Hiding(0, 0)).values), list(sums.joined(Hiding(0, 0), ["read"]).values)
        ([5, 7, 30], [5, 7])
        """
        exact, folded = array("q"), Histogram()
        for group, own in self._values.items():
            if groups and group not in groups:
                continue
            if isinstance(own, Histogram):
                folded.add(own)
            else:
                exact += own
        if not len(folded):
            return hiding.samples(exact)
        # Of groups with few times each is known by itself.
        folded.add(Histogram(exact))
        return hiding.samples(folded)

    @property
    def groups(self) -> Iterable[Key]:
        """The groups of which there are times, or ends in losses."""
        return {*self._exact, *self._folded, *self._n_cut}

    def count(self, group: Key) -> int:
        """Return how many times a group has, with those whose end a loss may hide."""
        known = self._exact.get(group, ()), self._folded.get(group, ())
        return sum(map(len, known)) + self._n_cut[group]

    def by_name(
        self, groups: Mapping[Name, Sequence[Key]], hiding: Hiding, n_dropped: Mapping[Name, int]
    ) -> dict[Name, Samples]:
        """Return the times of several groups put together, those with most time first.

        `hiding` is what losses hide of them, besides `n_dropped`.

        >>> from tracepoint.analysis.spans import Hiding
        >>> sums = SampleSums()
        >>> sums.add(["a", "b", "c"], [3, 5, OPEN], [0, 0, 1], range(3))
        >>> sums.by_name({"both": ["a", "b"], "none": ["c"]}, Hiding(0, 9), {"both": 2})["both"].count
        Bounds(low=2, high=4)
        """
        made = []
        for name, own in groups.items():
            n_cut = sum(self._n_cut[group] for group in own)
            found = self.joined(hiding.dropping(n_cut + n_dropped.get(name, 0)), own)
            if len(found):
                first = min(self._first[group] for group in own if group in self._first)
                made.append((-found.total, first, name, found))
        return {name: found for _, _, name, found in sorted(made, key=lambda one: one[:2])}

    def samples(self, hiding: Hiding) -> dict[Key, Samples]:
        """Return the times by group, those with most time first; `hiding` is what losses hide of them."""
        made = {group: hiding.samples(own, self._n_cut[group]) for group, own in self._values.items()}
        first = self._first
        return dict(sorted(made.items(), key=lambda one: (-one[1].total, first.get(one[0], 0))))


class LongestRows(Generic[Row]):
    """The rows with the longest times, as many as asked for; None: all.

    >>> longest = LongestRows(2)
    >>> longest.add([5, OPEN, 9, 9], range(4), lambda at: f"row {at}")
    >>> longest.add([7, 9], [4, 5], lambda at: f"row {at} of the second part")
    >>> longest.rows(2), longest.n
    (['row 2', 'row 3'], 5)
    """

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._rows: list[Row] = []
        self._durs, self._numbers = array("q"), array("q")
        #: How many have an end.
        self.n = 0

    def add(
        self, durs: Sequence[int], numbers: Sequence[int], row_of: Callable[[int], Row], flags: Flags = None
    ) -> None:
        """Add rows with their lengths; `row_of` makes what is shown of one, by its place."""
        places: Iterable[int] = range(len(durs))
        ended = [at for at in (places if flags is None else compress(places, flags)) if durs[at] != OPEN]
        self.n += len(ended)
        if self._most is not None:
            ended = nlargest(self._most, ended, key=durs.__getitem__)
        self._rows.extend(map(row_of, ended))
        self._durs.extend(map(durs.__getitem__, ended))
        self._numbers.extend(map(numbers.__getitem__, ended))
        self._keep_most()

    def extend(self, other: LongestRows[Row]) -> None:
        """Add the rows of another."""
        self.n += other.n
        self._rows += other._rows
        self._durs += other._durs
        self._numbers += other._numbers
        self._keep_most()

    def _keep_most(self) -> None:
        if self._most is not None:
            kept = self._order()[: self._most]
            self._rows = [self._rows[at] for at in kept]
            self._durs, self._numbers = (
                array("q", map(column.__getitem__, kept)) for column in (self._durs, self._numbers)
            )

    def _order(self) -> list[int]:
        found = sorted(range(len(self._rows)), key=self._numbers.__getitem__)
        return sorted(found, key=self._durs.__getitem__, reverse=True)

    def rows(self, most: int | None) -> list[Row]:
        """Return what is shown of the longest, the longest first; of equal ones those that began first."""
        return [self._rows[at] for at in self._order()[:most]]
