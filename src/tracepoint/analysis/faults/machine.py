"""Page faults by time: what belongs to each of them of the records that came after it."""

from __future__ import annotations

from array import array
from enum import IntEnum, IntFlag
from typing import TYPE_CHECKING, Any

from tracepoint.analysis.coverage import join_gaps
from tracepoint.analysis.faults.mappings import AddressSpaces, blocks_of, region_of, region_of_block
from tracepoint.analysis.growing import ClosedPart, GrowingRows
from tracepoint.analysis.numbered import Numbered
from tracepoint.analysis.pairs import NO_ROW, Order, PairMachine
from tracepoint.analysis.spans import OPEN, CutTally
from tracepoint.decode.numbers import numbers_of
from tracepoint.named import NamedTuple
from tracepoint.tracefile.sieve import MIN_TIME

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.analysis.coverage import Gap
    from tracepoint.analysis.faults.mappings import MappedRegion
    from tracepoint.analysis.pairs import Pairs


class FaultCode(IntEnum):
    """The bits of an error code on x86: enum x86_pf_error_code in arch/x86/include/asm/trap_pf.h."""

    PROTECTION = 1
    WRITE = 2
    USER = 4
    RESERVED = 8
    FETCH = 16
    KEY = 32
    SHADOW_STACK = 64


class FaultResult(IntEnum):
    """The bits of what handle_mm_fault() returns: enum vm_fault_reason in include/linux/mm_types.h.

    FAILED are those of VM_FAULT_ERROR.
    """

    MAJOR = 4
    RETRY = 0x400
    FAILED = 0x873


class FaultOutcome(IntEnum):
    """What became of a fault, as far as its end was recorded.

    RETRIED: it waited for a lock or a read, and then needed none.  Where the kernel tries faults without the
    lock of all mappings first (6.4 and later) it counts most of them as minor, before as major.
    """

    UNKNOWN = 0
    MINOR = 1
    MAJOR = 2
    RETRIED = 3
    FAILED = 4


class Waiting(IntEnum):
    """How far a fault without a recorded end has come to be a major one."""

    NOTHING = 0
    READ = 1
    SLEPT = 2


class Doubt(IntFlag):
    """What losses hide of a fault: its end, whether it read and waited, and what was mapped where it was."""

    CUT = 1
    WAIT = 2
    REGION = 4


class FaultColumns(NamedTuple):
    """What is recorded of faults, by time; the processor gives the address, instruction and error code."""

    ts: Sequence[int]
    cpu: Sequence[int]
    tid: Sequence[int]
    address: Sequence[int]
    ip: Sequence[int]
    code: Sequence[int]
    is_kernel: Sequence[int]


class FaultRows(NamedTuple):
    """Faults by time: what is recorded of them, how long they took in ns, and what they were.

    `dur` is OPEN (-1) where that is not known, `region` is the number of one of `known_regions`, and `doubt`
    has bits of `Doubt`.
    """

    ts: Sequence[int]
    cpu: Sequence[int]
    tid: Sequence[int]
    address: Sequence[int]
    ip: Sequence[int]
    code: Sequence[int]
    is_kernel: Sequence[int]
    dur: array[int]
    region: array[int]
    outcome: array[int]
    waiting: array[int]
    doubt: array[int]


def no_faults() -> FaultRows:
    """Return no rows."""
    return FaultRows(*(array(code) for code in "qiiQQQbqibbb"))


def access_of(code: int) -> str:
    """Return what a fault was for.

    >>> access_of(0x14), access_of(6), access_of(0)
    ('fetch', 'write', 'read')
    """
    return "fetch" if code & FaultCode.FETCH else "write" if code & FaultCode.WRITE else "read"


def cause_of(code: int) -> str:
    """Return why there was a fault.

    >>> cause_of(6), cause_of(7), cause_of(0x25)
    ('not present', 'protection', 'protection key')
    """
    for bit, name in (
        (FaultCode.RESERVED, "reserved bit"), (FaultCode.KEY, "protection key"),
        (FaultCode.SHADOW_STACK, "shadow stack"), (FaultCode.PROTECTION, "protection"),
    ):  # fmt: skip
        if code & bit:
            return name
    return "not present"


class FaultMachine:
    """Takes records by time; what no record can change any more is handed over on the way.

    `processes` are the processes of tasks where they are known; a task without one is its own.
    """

    def __init__(self, gaps: Mapping[int, Sequence[Gap]], processes: Mapping[int, int]) -> None:
        #: How many faults there are.
        self.n = 0
        # There are few of them, and millions of faults.
        self._regions: Numbered[MappedRegion] = Numbered()
        self.spaces = AddressSpaces()
        self._rows = GrowingRows(no_faults())
        # The number of the fault that begins next.
        self._next = 0
        #: Faults that get_user_pages() and its like made, without a trap.
        self.n_without_trap = 0
        #: Ends whose fault was not recorded, or lies before a loss.
        self.n_orphans = 0
        #: The faults with an end that a loss hides.
        self.cut = CutTally()
        self._processes = processes
        self._pairs = PairMachine(Order.LAST, gaps=gaps)
        self._gaps = join_gaps(gap for own in gaps.values() for gap in own)
        self._first_gap = self._next_gap = self._gaps.first_after(MIN_TIME)
        # Of each task: whether a try of its fault was a major one, and whether there was one at all.
        self._tries: dict[int, bool] = {}
        self._last: dict[int, int] = {}

    @property
    def known_regions(self) -> list[MappedRegion]:
        """The regions of faults, by number."""
        return self._regions.all

    def process_of(self, tid: int) -> int:
        """Return the process of a task, the task itself where it is not known."""
        return self._processes.get(tid, tid)

    def processes_of(self, tids: Sequence[int]) -> Sequence[int]:
        """Return the processes of tasks."""
        return array("i", map(self.process_of, tids)) if self._processes else tids

    def _made(self, faults: FaultColumns) -> FaultRows:
        """Return faults of which nothing else is known."""
        n = len(faults.ts)
        self.n += n
        blocks = blocks_of(faults.address)
        places = {block: self._regions[region_of_block(block)] for block in dict.fromkeys(blocks)}
        region = array("i", map(places.__getitem__, blocks))
        outcome, waiting, doubt = (array("b", bytes(n)) for _ in range(3))
        return FaultRows(*faults, array("q", [OPEN]) * n, region, outcome, waiting, doubt)

    def take_alone(self, faults: FaultColumns) -> ClosedPart[FaultRows]:
        """Hand over faults of a recording that has nothing else, and no losses: nothing changes them."""
        first, rows = self.n, self._made(faults)
        return ClosedPart(range(first, self.n), rows)

    def take(self, faults: FaultColumns) -> None:
        """Take the faults of a part of a recording, none of which has begun."""
        columns: Any = self._rows.columns
        for column, values in zip(columns, self._made(faults), strict=True):
            column.frombytes(numbers_of(values, column.typecode).cast("B"))

    def fault(self, ts: int, cpu: int) -> None:
        """The next fault begins."""
        self.follow(ts)
        number = self._next
        self._next += 1
        rows, at = self._rows.columns, self._rows.place(number)
        tid, address = rows.tid[at], rows.address[at]
        region = self.spaces.find(self.process_of(tid), address)
        rows.region[at] = self._regions[region]
        if self._first_gap is not None and ts > self._first_gap[0] and region == region_of(address):
            rows.doubt[at] = Doubt.REGION
        self._pairs.begin(tid, number, ts, cpu)
        self._tries.pop(tid, None)
        self._last[tid] = number

    def handled(self, ts: int, tid: int, result: int | None, is_trap: bool) -> None:
        """handle_mm_fault() returned `result` to a task; None: what is not known."""
        if not is_trap:
            self.n_without_trap += 1
            return
        if result is not None and result & FaultResult.RETRY:
            self._tries[tid] = self._tries.get(tid, False) or bool(result & FaultResult.MAJOR)
            return
        number = self._pairs.end(tid, NO_ROW, ts)
        if number == NO_ROW:
            self.n_orphans += 1
            return
        rows, at = self._rows.columns, self._rows.place(number)
        rows.dur[at] = ts - rows.ts[at]
        self._last.pop(tid, None)
        if result is not None:
            rows.outcome[at] = self._outcome(result, self._tries.pop(tid, None))

    @staticmethod
    def _outcome(result: int, was_major: bool | None) -> FaultOutcome:
        # mm_account_fault() in mm/memory.c: a failed one is not counted; one after a major try is major.
        if result & FaultResult.FAILED:
            return FaultOutcome.FAILED
        if result & FaultResult.MAJOR or was_major:
            return FaultOutcome.MAJOR
        return FaultOutcome.MINOR if was_major is None else FaultOutcome.RETRIED

    def read(self, ts: int, tid: int) -> None:
        """A task asks a device for blocks."""
        self._wait(ts, tid, Waiting.NOTHING, Waiting.READ)

    def sleep(self, ts: int, tid: int) -> None:
        """A task waits without being interruptible."""
        self._wait(ts, tid, Waiting.READ, Waiting.SLEPT)

    def _wait(self, ts: int, tid: int, before: Waiting, after: Waiting) -> None:
        number = self._last.get(tid)
        if number is None:
            return
        rows, at = self._rows.columns, self._rows.place(number)
        if rows.waiting[at] != before:
            return
        # What a loss hides may have ended the fault, so that this is of a system call.
        if self._gaps.is_between(rows.ts[at], ts):
            rows.doubt[at] |= Doubt.WAIT
        else:
            rows.waiting[at] = after

    def follow(self, ts: int) -> None:
        """Forget mappings in and before a loss, in which they may have changed, before a record at `ts`."""
        if self._next_gap is not None and ts > self._next_gap[0]:
            self.spaces.forget()
            if ts >= self._next_gap[1]:
                self._next_gap = self._gaps.first_after(ts)

    @property
    def has_losses(self) -> bool:
        """Whether anything was lost."""
        return self._first_gap is not None

    def leave(self, tid: int) -> None:
        """A task enters a system call: its fault has ended."""
        self._last.pop(tid, None)

    def _settle(self, pairs: Pairs) -> None:
        rows = self._rows.columns
        places = list(map(self._rows.place, pairs.cut))
        for at in places:
            rows.doubt[at] |= Doubt.CUT
        self.cut.cut(map(rows.ts.__getitem__, places))

    def closed(self) -> ClosedPart[FaultRows]:
        """Hand over the faults that no record can change any more."""
        self._settle(self._pairs.closed())
        return self._rows.close({*self._pairs.open_rows, *self._last.values()})

    def finish(self, ts: int) -> ClosedPart[FaultRows]:
        """Hand over the other faults, at the time of the end of the trace."""
        self._settle(self._pairs.finish(ts))
        return self._rows.finish()
