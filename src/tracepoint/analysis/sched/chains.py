"""Wake-up chains: who woke the threads that waited longest for a CPU, and who had woken those."""

from __future__ import annotations

from heapq import nlargest
from typing import TYPE_CHECKING, NamedTuple

from tracepoint.analysis.sched.rows import RowFlag
from tracepoint.analysis.sched.threads import IDLE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from tracepoint.analysis.sched.follow import Timeline, WakeUp

INTERRUPT = "interrupt"
_KNOWN = RowFlag.RAN | RowFlag.WOKEN
_FLAGS = _KNOWN | RowFlag.CUT | RowFlag.LATE
_MOST_LINKS = 16


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


def wake_chains(lines: Timeline, most: int | None, utids: Collection[int] | None) -> list[WakeChain]:
    """Return the longest waits after a wake-up with who woke whom; `utids` chooses threads."""
    states = lines.rows.states
    waits = [
        row
        for row, flags in enumerate(states.flags)
        if flags & _FLAGS == _KNOWN and (utids is None or states.utid[row] in utids)
    ]
    longest = nlargest(len(waits) if most is None else most, waits, key=lambda row: states.dur[row])
    return [_chain(lines, row) for row in longest]


def _chain(lines: Timeline, row: int) -> WakeChain:
    states, rows = lines.rows.states, lines.rows
    wakes = tuple(_links(lines, row))
    names = [rows.task_of(states.utid[row])]
    names += (INTERRUPT if wake.in_interrupt else rows.task_of(wake.waker) for wake in wakes)
    return WakeChain(states.utid[row], states.ts[row], states.dur[row], wakes, " < ".join(names))


def _links(lines: Timeline, row: int) -> Iterator[WakeUp]:
    wake = lines.wake_up(row)
    for _ in range(_MOST_LINKS):
        if wake is None:
            return
        yield wake
        if wake.in_interrupt or lines.rows.threads.tid[wake.waker] == IDLE:
            return
        wake = lines.waking_of(wake.waker, wake.ts)
