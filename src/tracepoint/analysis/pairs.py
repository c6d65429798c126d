"""Begins and ends that belong together: entry and exit, queue and complete, allocate and free.

A key is a task whose calls follow each other, a task whose functions are a stack, or a block of a device
whose requests are first in, first out.  A loss hides ends: which ones depends on where the events of a key
are written, its `EndScope`.
"""

from __future__ import annotations

from array import array
from collections import deque
from enum import Enum, auto
from typing import TYPE_CHECKING

from tracepoint.analysis.coverage import join_gaps
from tracepoint.named import NamedTuple
from tracepoint.tracefile.sieve import MIN_TIME

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from tracepoint.analysis.coverage import Gap

    _Opened: TypeAlias = deque[tuple[int, int, int]] | list[tuple[int, int, int]]

#: The row of an end that is not there.
NO_ROW = -1
# After all times of int64.
_NEVER = 1 << 63


class Order(Enum):
    """Which begin of a key an end belongs to, where several are open.

    STACK: the last one, of which there may be many.  QUEUE: the first of many.  LAST: there is one, and
    another begin takes its place, the first without an end.  FIRST: there is one, and another begin is part
    of it; after a loss it is not known whether the next begin is the first.
    """

    STACK = auto()
    QUEUE = auto()
    LAST = auto()
    FIRST = auto()


class EndScope(Enum):
    """Which losses hide the end of a key.

    CPU: those of the CPU of its begin, where it ends too.  ALL: those of any CPU, as its end may be written
    on any, such as for a key of a task or a device.
    """

    CPU = auto()
    ALL = auto()


class Pairs(NamedTuple):
    """The rows of begins and of their ends, in the order of the ends.

    `begins` and `ends` are of the same length; `opens` are begins without an end, `cut` those among them
    whose end a loss hides; `orphans` are ends without a begin.  `n_inner` is how many begins were part of
    another.
    """

    begins: array[int]
    ends: array[int]
    opens: list[int]
    cut: list[int]
    orphans: array[int]
    n_inner: int


class PairMachine:
    """Pairs begins and ends that come by time.

    A row is any number that the caller knows a begin or an end by; in a recording that is read in parts it is
    one that goes on from part to part.

    >>> machine = PairMachine(Order.STACK)
    >>> machine.begin("task", 0, 10, 0), machine.begin("task", 1, 20, 0)
    (True, True)
    >>> machine.end("task", 2, 30), machine.end("task", 3, 40), machine.end("task", 4, 50)
    (1, 0, -1)
    >>> machine.finish(60).begins
    array('q', [1, 0])
    """

    def __init__(
        self, order: Order, scope: EndScope = EndScope.ALL, gaps: Mapping[int, Sequence[Gap]] | None = None
    ) -> None:
        self._order = order
        self._is_one = order in (Order.LAST, Order.FIRST)
        gaps = gaps or {}
        self._by_cpu = {cpu: join_gaps(own) for cpu, own in gaps.items()} if scope is EndScope.CPU else {}
        everywhere = [gap for own in gaps.values() for gap in own] if scope is EndScope.ALL else []
        self._everywhere = join_gaps(everywhere) if everywhere else None
        self._has_losses = bool(everywhere or self._by_cpu)
        # Of each key what is open: the row of the begin, when a loss begins that may hide its end, and the
        # first such time of this one and of those before it.
        self._open: dict[Hashable, _Opened] = {}
        self._found()
        # When the last record of a key was, where a loss may hide the first of several begins.
        self._seen: dict[Hashable, int] | None = {} if order is Order.FIRST and gaps else None

    def _found(self) -> None:
        """Begin to collect pairs."""
        self._begins, self._ends, self._orphans = array("q"), array("q"), array("q")
        self._without_end: list[int] = []
        self._cut: list[int] = []
        self._n_inner = 0

    def begin(self, key: Hashable, row: int, ts: int, cpu: int) -> bool:
        """Take a begin; return whether it is one, and not part of another (`Order.FIRST`)."""
        found = self._open.get(key)
        if self._seen is not None:
            since = self._seen.get(key, MIN_TIME)
            self._seen[key] = ts
            if not found:
                ts = self._first_possible(since, ts, cpu)
        hidden = self._hidden_from(ts, cpu) if self._has_losses else _NEVER
        if not found:
            one = (row, hidden, hidden)
            # Of a queue there may be many, from whose start they are taken.
            self._open[key] = deque((one,)) if self._order is Order.QUEUE else [one]
            return True
        self._drop_hidden(found, ts)
        if found and self._is_one:
            if self._order is Order.FIRST:
                self._n_inner += 1
                return False
            self._without_end.append(found.pop()[0])
        found.append((row, hidden, min(hidden, found[-1][2]) if found else hidden))
        return True

    def end(self, key: Hashable, row: int, ts: int) -> int:
        """Take an end; return the row of its begin, NO_ROW without one."""
        found = self._open.get(key)
        if self._seen is not None:
            self._seen[key] = ts
        if found:
            self._drop_hidden(found, ts)
        if not found:
            self._orphans.append(row)
            return NO_ROW
        begin = (found.popleft() if isinstance(found, deque) else found.pop())[0]
        if not found:
            del self._open[key]
        self._begins.append(begin)
        self._ends.append(row)
        return begin

    def _first_possible(self, since: int, ts: int, cpu: int) -> int:
        """Return when a begin may have been the second, in a loss since the last record of its key."""
        finder = self._everywhere or self._by_cpu.get(cpu)
        gap = finder.first_after(since) if finder is not None else None
        return gap[0] if gap is not None and gap[0] < ts else ts

    def drop(self, key: Hashable) -> None:
        """Forget what is open of a key, which has no end: a task or a request that is gone."""
        self._without_end.extend(row for row, _, _ in self._open.pop(key, ()))

    def move(self, key: Hashable, other: Hashable) -> None:
        """Give what is open of a key another key, whose own has no end: a task takes over an id."""
        if found := self._open.pop(key, None):
            self.drop(other)
            self._open[other] = found

    def _drop_hidden(self, found: _Opened, ts: int) -> None:
        """Drop begins whose end a loss before `ts` may hide."""
        # Most often there is nothing to drop: looking at each open begin would take quadratic time.
        if not found or found[-1][2] >= ts:
            return
        kept, soonest = [], _NEVER
        for row, hidden, _ in found:
            if hidden < ts:
                self._cut.append(row)
            else:
                soonest = min(soonest, hidden)
                kept.append((row, hidden, soonest))
        found.clear()
        found.extend(kept)

    def _hidden_from(self, ts: int, cpu: int) -> int:
        """Return when the first loss begins that may hide the end of a begin."""
        finder = self._everywhere or self._by_cpu.get(cpu)
        gap = finder.first_after(ts) if finder is not None else None
        return _NEVER if gap is None else gap[0]

    def drop_hidden(self, ts: int) -> None:
        """Drop begins whose end a loss before `ts` may hide: the next record of their key would do so."""
        # After a loss it is not known which begin is the first.
        if self._seen is None:
            for key, found in list(self._open.items()):
                self._drop_hidden(found, ts)
                if not found:
                    del self._open[key]

    @property
    def open_rows(self) -> Iterator[int]:
        """The rows of begins that an end may still come for."""
        return (row for found in self._open.values() for row, _, _ in found)

    def closed(self) -> Pairs:
        """Return the pairs that were found since the last call, and what has no end: those are not kept."""
        opens = sorted([*self._without_end, *self._cut])
        found = Pairs(self._begins, self._ends, opens, sorted(self._cut), self._orphans, self._n_inner)
        self._found()
        return found

    def finish(self, ts: int) -> Pairs:
        """Return the pairs that were not returned before, at the time of the end of the trace."""
        for found in self._open.values():
            self._drop_hidden(found, ts)
            self._without_end.extend(row for row, _, _ in found)
        self._open.clear()
        return self.closed()
