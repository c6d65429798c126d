"""From the records of contended locks to waits.

include/trace/events/lock.h: a begin and an end for each slow path.  A mutex has several begins and one end,
as its waiter spins and sleeps in turn (kernel/locking/mutex.c: __mutex_lock_common()).
"""

from __future__ import annotations

from array import array
from enum import IntFlag
from typing import TYPE_CHECKING

from tracepoint.analysis.growing import GrowingRows
from tracepoint.analysis.locks.needs import BEGIN, END
from tracepoint.analysis.pairs import NO_ROW, EndScope, Order, PairMachine
from tracepoint.analysis.spans import OPEN, SpanTally
from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.analysis.growing import ClosedPart
    from tracepoint.analysis.pairs import Pairs
    from tracepoint.analysis.records import AnalysisRecords, RecordPart, Take


class LockFlag(IntFlag):
    """What a begin says of a lock: LCB_F_* of include/trace/events/lock.h."""

    SPIN = 1
    READ = 2
    WRITE = 4
    RT = 8
    PERCPU = 16
    MUTEX = 32


class LockRows(NamedTuple):
    """Waits by their begin in ns (`dur`: OPEN without an end), with address and flags of the lock.

    `is_failed` says that the task did not get it, `is_cut` that a loss may hide the end.
    """

    ts: array[int]
    dur: array[int]
    cpu: array[int]
    tid: array[int]
    address: array[int]
    flags: array[int]
    is_failed: array[int]
    is_cut: array[int]


def no_waits() -> LockRows:
    """Return no rows."""
    return LockRows(*(array(code) for code in "qqiqQQbb"))


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


class LockReader:
    """Reads the waits of a recording, as often as they are asked for.

    `names` are those of locks by address, `tally` says how many waits have no end or no begin.
    """

    def __init__(self, records: AnalysisRecords) -> None:
        self.records = records
        self.names: dict[int, str] = {}
        self.tally = SpanTally()

    def read(self, take: Callable[[ClosedPart[LockRows]], object]) -> None:
        """Give the waits to `take`, part by part."""
        reading = _Reading(self.records)

        def give(closed: ClosedPart[LockRows]) -> None:
            rows = closed.rows
            reading.tally.add(rows.ts, rows.dur, rows.is_cut)
            for address in {*rows.address} - self.names.keys():
                self.names[address] = self.records.function(address) or hex(address)
            take(closed)

        self.records.run_parts(reading.takes, lambda: give(reading.closed()))
        give(reading.finish(self.records.coverage.stop))
        self.tally = reading.tally


class _Reading:
    """One reading of the records: what is open, and the rows that may still change."""

    def __init__(self, records: AnalysisRecords) -> None:
        gaps = records.coverage.gaps
        self._machines = _Machines(
            PairMachine(Order.LAST, EndScope.CPU, gaps),
            PairMachine(Order.FIRST, EndScope.ALL, gaps),
            PairMachine(Order.LAST, EndScope.ALL, gaps),
        )
        self._rows = GrowingRows(no_waits())
        # The end of a wait does not have the flags, so those of the last begin of a lock count.
        self._last: dict[int, tuple[PairMachine, bool]] = {}
        self.tally = SpanTally()

    def takes(self, part: RecordPart) -> dict[str, Take]:
        """Return what takes the records of a part."""
        machines, rows, columns, last = self._machines, self._rows, self._rows.columns, self._last
        tids, addresses, flags = part.numbers(BEGIN, "common_pid", "lock_addr", "flags")
        end_tids, end_addresses, returns = part.numbers(END, "common_pid", "lock_addr", "ret")

        def begin(row: int, ts: int, cpu: int) -> None:
            address, tid = addresses[row], tids[row]
            machine, is_of_cpu = last[address] = machines.of(flags[row])
            if not machine.begin((address, cpu if is_of_cpu else tid), rows.last + 1, ts, cpu):
                return
            columns.ts.append(ts)
            columns.dur.append(OPEN)
            columns.cpu.append(cpu)
            columns.tid.append(tid)
            columns.address.append(address)
            columns.flags.append(flags[row])
            columns.is_failed.append(0)
            columns.is_cut.append(0)

        def end(row: int, ts: int, cpu: int) -> None:
            machine, is_of_cpu = last.get(end_addresses[row], (machines.sleep, False))
            number = machine.end((end_addresses[row], cpu if is_of_cpu else end_tids[row]), NO_ROW, ts)
            if number != NO_ROW:
                at = rows.place(number)
                columns.dur[at] = ts - columns.ts[at]
                columns.is_failed[at] = returns[row] != 0

        return {BEGIN: begin, END: end}

    def closed(self) -> ClosedPart[LockRows]:
        """Hand over the waits that no record can change any more."""
        for machine in self._machines:
            self._settle(machine.closed())
        return self._rows.close({row for machine in self._machines for row in machine.open_rows})

    def finish(self, stop: int) -> ClosedPart[LockRows]:
        """Hand over the other waits, at the end of the trace."""
        for machine in self._machines:
            self._settle(machine.finish(stop))
        return self._rows.finish()

    def _settle(self, pairs: Pairs) -> None:
        self.tally.n_orphans += len(pairs.orphans)
        self._rows.mark(self._rows.columns.is_cut, pairs.cut)
