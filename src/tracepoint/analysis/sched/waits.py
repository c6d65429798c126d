"""How long threads waited for a CPU: each time, or histograms of many; in C, or with the twins here."""

from __future__ import annotations

from array import array
from itertools import chain, starmap
from typing import TYPE_CHECKING

from tracepoint.analysis.distribution import Distribution
from tracepoint.analysis.histogram import PRECISION, Histogram
from tracepoint.analysis.sched.rows import RowFlag
from tracepoint.analysis.sums import MAX_EXACT, fold_samples
from tracepoint.decode.numbers import numbers_of, view_numbers
from tracepoint.named import NamedTuple
from tracepoint.record.decode import DECODE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from typing import TypeAlias

    from tracepoint.analysis.distribution import Samples
    from tracepoint.analysis.sched.rows import AnyRows

    Key: TypeAlias = str | bool
    KeyOf: TypeAlias = Callable[[int], Key | None]
    Hidden: TypeAlias = tuple[int | None, int | None]

#: Why threads waited for a CPU, in the order in which they are shown; the C module has a bit for each.
CAUSES = ("wake-up", "preemption", "yield", "new task")
#: How many waits are hidden, and how long one of them is at most: none.
KNOWN: Hidden = (0, None)
_EXACT = RowFlag.RAN | RowFlag.CUT | RowFlag.LATE
_WOKEN, _NEW, _PREEMPTED, _YIELDED = 1, 8, 2, 4


class WaitRows(NamedTuple):
    """Waits: of which thread, the priority with which it ran then, and the length in ns."""

    utids: memoryview[int]
    priorities: memoryview[int]
    lengths: memoryview[int]


class Waits:
    """The times that threads waited for a CPU, by cause.

    More than MAX_EXACT of them are folded into histograms of PRECISION bits, one for each cause, thread and
    priority: then their quantiles are ranges, at most 2^-PRECISION wide, and memory does not grow with time.
    """

    def __init__(self) -> None:
        self._rows: dict[str, list[WaitRows]] = {cause: [] for cause in CAUSES}
        self._folded: dict[str, dict[tuple[int, int], Histogram]] = {cause: {} for cause in CAUSES}
        self._n = 0

    def add(self, rows: AnyRows) -> None:
        """Add the waits among rows that no record can change any more."""
        for cause in CAUSES:
            found = find_waits(rows, cause)
            self._rows[cause].append(found)
            self._n += len(found.lengths)
        if self._n > MAX_EXACT:
            self._fold()

    def _fold(self) -> None:
        for cause, parts in self._rows.items():
            folded = self._folded[cause]
            for key, histogram in chain.from_iterable(starmap(fold_samples, parts)):
                folded.setdefault(key, Histogram()).add(histogram)
            parts.clear()
        self._n = 0

    @property
    def is_exact(self) -> bool:
        """Whether each wait is known by itself; where some are not, the others are folded too."""
        if any(self._folded.values()):
            self._fold()
            return False
        return True

    def samples(
        self, causes: Iterable[str], hidden: Hidden = KNOWN, utids: Collection[int] | None = None
    ) -> Samples:
        """Return the waits for some of CAUSES; `utids` chooses threads, `hidden` are those not among them."""
        if not self.is_exact or utids is not None:
            chosen = None if utids is None else frozenset(utids)
            found = self.by_thread(causes, lambda utid: chosen is None or utid in chosen or None, hidden)
            return found.get(True, Distribution((), *hidden))
        lengths = array("q")
        for part in chain.from_iterable(self._rows[cause] for cause in causes):
            lengths.frombytes(bytes(part.lengths))
        return Distribution(lengths, *hidden)

    def by_thread(self, causes: Iterable[str], key_of: KeyOf, hidden: Hidden = KNOWN) -> dict[Key, Samples]:
        """Return the waits for some of CAUSES by a key of their thread; None leaves a thread out."""
        return self._grouped(causes, 0, key_of, hidden, None)

    def by_priority(
        self, key_of: KeyOf, hidden: Hidden = KNOWN, utids: Collection[int] | None = None
    ) -> dict[Key, Samples]:
        """Return the waits by a key of the priority with which threads ran then; `utids` chooses threads."""
        return self._grouped(CAUSES, 1, key_of, hidden, None if utids is None else frozenset(utids))

    def _grouped(
        self, causes: Iterable[str], at: int, key_of: KeyOf, hidden: Hidden, utids: frozenset[int] | None
    ) -> dict[Key, Samples]:
        known = list(causes)
        if self.is_exact:
            lists: dict[Key, list[int]] = {}
            for number, own in self._values(known, at, utids).items():
                if (key := key_of(number)) is not None:
                    lists.setdefault(key, []).extend(own)
            return {key: Distribution(own, *hidden) for key, own in lists.items()}
        found: dict[Key, Histogram] = {}
        for who, histogram in chain.from_iterable(self._folded[cause].items() for cause in known):
            if (utids is None or who[0] in utids) and (key := key_of(who[at])) is not None:
                found.setdefault(key, Histogram((), PRECISION, *hidden)).add(histogram)
        return dict(found)

    def _values(self, causes: Iterable[str], at: int, utids: frozenset[int] | None) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for part in chain.from_iterable(self._rows[cause] for cause in causes):
            pairs: Iterable[tuple[int, int]] = zip(part[at], part.lengths, strict=True)
            if utids is not None:
                pairs = (pair for pair, utid in zip(pairs, part.utids, strict=True) if utid in utids)
            for number, length in pairs:
                found.setdefault(number, []).append(length)
        return found


def find_waits(rows: AnyRows, cause: str) -> WaitRows:
    """Return the times that threads waited before they ran, for one of CAUSES."""
    states, wanted = rows.states, 1 << CAUSES.index(cause)
    preempted = bytes(name == "R+" for name in rows.names.names)
    columns = states.dur, states.utid, states.state, states.flags, states.priority
    if DECODE is not None:
        utids, priorities, lengths = DECODE.sched_waits(*columns, preempted, wanted)
        return WaitRows(view_numbers(utids, "i"), view_numbers(priorities, "i"), view_numbers(lengths, "q"))
    found = [
        (utid, priority, dur)
        for dur, utid, state, flags, priority in zip(*columns, strict=True)
        if _cause_of(flags, preempted[state]) & wanted
    ]
    own = list(zip(*found, strict=True)) or [(), (), ()]
    return WaitRows(*(numbers_of(column, code) for column, code in zip(own, "iiq", strict=True)))


def _cause_of(flags: int, is_preempted: int) -> int:
    """Return why a thread waited until it ran; 0 where a row is no such time, or its length is not exact."""
    if flags & _EXACT != RowFlag.RAN:
        return 0
    if flags & RowFlag.WOKEN:
        return _WOKEN
    if flags & RowFlag.NEW:
        return _NEW
    return _PREEMPTED if is_preempted else _YIELDED
