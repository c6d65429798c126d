"""Wake-up chains: who woke the threads that waited longest for a CPU, and who had woken those."""

from __future__ import annotations

from heapq import nsmallest
from typing import TYPE_CHECKING

from tracepoint.analysis.sched.follow import WakeUp, wake_up_of
from tracepoint.analysis.sched.rows import NONE, OPEN, RUNNING, RowFlag, StateClass
from tracepoint.analysis.sched.threads import IDLE
from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from typing import TypeAlias

    from tracepoint.analysis.sched.rows import AnyRows, SchedRows

    #: When a row ended; nothing where a later part of the recording says it.
    End: TypeAlias = list[int]
    #: A wake-up and the end of the row in which its waker ran then, and those that led to it.
    Links: TypeAlias = tuple[tuple[WakeUp, End | None], ...]

INTERRUPT = "interrupt"
_KNOWN = int(RowFlag.RAN | RowFlag.WOKEN)
_FLAGS = _KNOWN | int(RowFlag.CUT | RowFlag.LATE)
_CUT, _BEGUN = int(RowFlag.CUT), int(RowFlag.WOKEN | RowFlag.NEW)
_MOST_LINKS = 16
_READY = (StateClass.RUNNING, StateClass.RUNNABLE)
# So many more waits than are asked for are kept before those that are not among the longest are left out.
_SPARE = 4096


class WakeChain(NamedTuple):
    """A wait of a thread for a CPU, from `ts`, for `wait` ns, and the wake-ups that led to it.

    The last wake-up is the first of `wakes`; the next one made its waker run, and so on: up to an interrupt,
    or where more is not known.  `text` has the threads in this order, the one that waited first.
    """

    utid: int
    ts: int
    wait: int
    wakes: tuple[WakeUp, ...]
    text: str


class _Row:
    """A row of states: `links` are the wake-ups that made its thread ready, `early` those of an early waking.

    What later rows link to is its `end` alone: with it, all that was before would stay.
    """

    __slots__ = ("early", "end", "is_ready", "is_running", "links", "ts")

    def __init__(self, ts: int, links: Links, *, is_running: bool, is_ready: bool) -> None:
        self.ts = ts
        self.links = links
        self.is_running = is_running
        self.is_ready = is_ready
        self.end: End = []
        self.early: Links = ()


class _Wait(NamedTuple):
    """A wait for a CPU; those of one length are ordered by their begin."""

    minus_length: int
    ts: int
    utid: int
    number: int
    links: Links


class ChainFinder:
    """Takes rows part by part, and finds the `most` longest waits after a wake-up, None: all.

    `rows` are the last ones, with all threads, `stop` is the end of the trace in ns, and `utids` chooses
    threads.  Of what is past it keeps the last rows of each thread, and the wake-ups that led to them.
    """

    def __init__(
        self, rows: SchedRows, stop: int, most: int | None = None, utids: Collection[int] | None = None
    ) -> None:
        self._rows = rows
        self._stop = stop
        self._most = most
        self._utids = None if utids is None else frozenset(utids)
        self._waits: list[_Wait] = []
        self._n_waits = 0
        # Of each thread the last row, those of the same time, and the one before.
        self._last: dict[int, list[_Row]] = {}

    def add(self, part: AnyRows) -> None:
        """Take the rows of a part, in the order in which they began."""
        states = part.states
        are_ready = [kind in _READY for kind in part.names.classes]
        held = sorted(zip(*part.held, strict=True))
        at, n_held = 0, len(held)
        columns = states.ts, states.dur, states.utid, states.state, states.flags, states.waker, states.irq
        for ts, dur, utid, state, flags, waker, irq in zip(*columns, strict=True):
            while at < n_held and held[at][0] < ts:
                self._hold(held[at], are_ready)
                at += 1
            wake = wake_up_of(flags, waker, ts, irq) if flags & _BEGUN else None
            row = self._row(utid, ts, wake, is_running=state == RUNNING, is_ready=are_ready[state])
            row.end.append(ts + dur if dur != OPEN else ts if flags & _CUT else self._stop)
            if flags & _FLAGS == _KNOWN and (self._utids is None or utid in self._utids):
                self._wait(utid, ts, dur, row.links)
        for facts in held[at:]:
            self._hold(facts, are_ready)

    def _hold(self, facts: tuple[int, ...], are_ready: Sequence[bool]) -> None:
        ts, utid, state, flags, waker, irq = facts
        wake, is_ready = wake_up_of(flags, waker, ts, irq), are_ready[state]
        row = self._row(utid, ts, wake, is_running=state == RUNNING, is_ready=is_ready)
        if not is_ready and waker != NONE:
            row.early = self._links(WakeUp(waker, ts, irq == 1))

    def _row(self, utid: int, ts: int, wake: WakeUp | None, *, is_running: bool, is_ready: bool) -> _Row:
        """Return the row of a thread that begins at a time: that which it was in, or the next one."""
        own = self._last.get(utid)
        before = own[-1] if own else None
        if before is not None and not before.end and before.ts == ts:
            if is_ready and not before.is_ready:
                before.is_ready, before.links = True, before.early
            return before
        links: Links = ()
        if is_ready and wake is not None:
            links = self._links(wake)
        elif is_ready and before is not None and before.is_ready and before.end == [ts]:
            links = before.links
        row = _Row(ts, links, is_running=is_running, is_ready=is_ready)
        if own is None or before is None:
            self._last[utid] = [row]
        elif before.ts == ts:
            own.append(row)
        else:
            own[:] = before, row
        return row

    def _links(self, wake: WakeUp) -> Links:
        for row in reversed(self._last.get(wake.waker, ())):
            if row.ts < wake.ts:
                return ((wake, row.end), *row.links[: _MOST_LINKS - 1]) if row.is_running else ((wake, None),)
        return ((wake, None),)

    def _wait(self, utid: int, ts: int, length: int, links: Links) -> None:
        self._n_waits += 1
        self._waits.append(_Wait(-length, ts, utid, self._n_waits, links))
        if self._most is not None and len(self._waits) > self._most + _SPARE:
            self._waits = nsmallest(self._most, self._waits)

    def chains(self) -> list[WakeChain]:
        """Return the longest waits of all parts, each with who woke whom."""
        waits = sorted(self._waits)[: self._most]
        return [self._chain(wait) for wait in waits]

    def _chain(self, wait: _Wait) -> WakeChain:
        rows, wakes = self._rows, tuple(self._known(wait.links))
        names = [rows.task_of(wait.utid)]
        names += (INTERRUPT if wake.in_interrupt else rows.task_of(wake.waker) for wake in wakes)
        return WakeChain(wait.utid, wait.ts, -wait.minus_length, wakes, " < ".join(names))

    def _known(self, links: Links) -> Iterator[WakeUp]:
        """Yield wake-ups up to one of an interrupt, or of a thread that is not known to have run then."""
        for wake, end in links:
            yield wake
            if wake.in_interrupt or self._rows.threads.tid[wake.waker] == IDLE:
                return
            if not end or end[0] < wake.ts:
                return
