"""From the records of contended locks to waits.

include/trace/events/lock.h: a begin and an end for each slow path.  A mutex has several begins and one end,
as its waiter spins and sleeps in turn (kernel/locking/mutex.c: __mutex_lock_common()).
"""

from __future__ import annotations

from array import array
from enum import IntFlag
from typing import TYPE_CHECKING

from tracepoint.analysis.locks.needs import BEGIN, END
from tracepoint.analysis.pairs import EndScope, Order, PairMachine, join_pairs
from tracepoint.analysis.spans import OPEN, spans_of
from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.analysis.records import AnalysisRecords
    from tracepoint.analysis.spans import Spans


class LockFlag(IntFlag):
    """What a begin says of a lock: LCB_F_* of include/trace/events/lock.h."""

    SPIN = 1
    READ = 2
    WRITE = 4
    RT = 8
    PERCPU = 16
    MUTEX = 32


class LockWaits(NamedTuple):
    """Waits by their begin (`spans`), with address and flags of the lock, the task, and whether it got it."""

    spans: Spans
    addresses: array[int]
    flags: array[int]
    tids: array[int]
    is_failed: Sequence[bool]
    names: Mapping[int, str]


def kind_of(flags: int) -> str:
    """Return the kind of a lock.

    >>> kind_of(LockFlag.SPIN | LockFlag.READ), kind_of(LockFlag.MUTEX | LockFlag.SPIN), kind_of(2)
    ('rwlock read', 'mutex', 'rwsem read')
    >>> kind_of(64), kind_of(0)
    ('flags 0x40', 'semaphore')
    """
    side = " read" if flags & LockFlag.READ else " write" if flags & LockFlag.WRITE else ""
    if flags & LockFlag.MUTEX:
        return "mutex"
    if flags & LockFlag.PERCPU:
        return f"percpu rwsem{side}"
    if flags & LockFlag.SPIN:
        return f"rwlock{side}" if side else "spinlock"
    if flags & LockFlag.RT:
        return f"rt mutex{side}"
    return f"rwsem{side}" if side else f"flags {flags:#x}" if flags else "semaphore"


class _Machines(NamedTuple):
    """One for each way in which a lock is waited for.

    Spinning is bound to a CPU, whichever task an interrupt came in: its key is the CPU.
    """

    spin: PairMachine
    mutex: PairMachine
    sleep: PairMachine

    def of(self, flags: int) -> tuple[PairMachine, bool]:
        """Return the one for these flags, and whether it is of CPUs."""
        if flags & LockFlag.MUTEX:
            return self.mutex, False
        return (self.spin, True) if flags & LockFlag.SPIN else (self.sleep, False)


def read_waits(records: AnalysisRecords) -> LockWaits:
    """Return the waits of a recording."""
    gaps = records.coverage.gaps
    machines = _Machines(
        PairMachine(Order.LAST, EndScope.CPU, gaps),
        PairMachine(Order.FIRST, EndScope.ALL, gaps),
        PairMachine(Order.LAST, EndScope.ALL, gaps),
    )
    tids, addresses, flags = records.numbers(BEGIN, "common_pid", "lock_addr", "flags")
    end_tids, end_addresses, returns = records.numbers(END, "common_pid", "lock_addr", "ret")
    # The end of a wait does not have the flags, so those of the last begin of a lock count.
    found: dict[int, tuple[PairMachine, bool]] = {}

    def begin(row: int, ts: int, cpu: int) -> None:
        machine, is_of_cpu = found[addresses[row]] = machines.of(flags[row])
        machine.begin((addresses[row], cpu if is_of_cpu else tids[row]), row, ts, cpu)

    def end(row: int, ts: int, cpu: int) -> None:
        machine, is_of_cpu = found.get(end_addresses[row], (machines.sleep, False))
        machine.end((end_addresses[row], cpu if is_of_cpu else end_tids[row]), row, ts)

    records.run({BEGIN: begin, END: end})
    pairs = join_pairs(machine.finish(records.coverage.stop) for machine in machines)
    spans = spans_of(pairs, records.times)
    locks = array("Q", (addresses[row] for row in spans.begin))
    return LockWaits(
        spans,
        locks,
        array("I", (flags[row] for row in spans.begin)),
        array("i", (tids[row] for row in spans.begin)),
        [dur != OPEN and returns[row] != 0 for row, dur in zip(spans.end, spans.dur, strict=True)],
        {address: records.function(address) or hex(address) for address in set(locks)},
    )
