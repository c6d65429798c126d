"""From records to the pages of a machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.analysis.sums import SampleSums
from tracepoint.analysis.swap.machine import UNKNOWN, SwapMachine
from tracepoint.analysis.swap.needs import (
    ADD,
    DELETE,
    RECLAIM,
    RSS,
    SHRINK,
    SWAP_IN,
    SWAP_OUT,
    WRITE_NAMES,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tracepoint.analysis.growing import ClosedPart
    from tracepoint.analysis.records import AnalysisRecords, RecordPart, Take
    from tracepoint.analysis.swap.machine import ReclaimRows

    Numbers = Sequence[int]

#: Above what one folio can have: a damaged record has any order.
LARGEST_ORDER = 20


class SwapReader:
    """Reads what a recording says of swapping, as often as it is asked for.

    `machine` counts what it found the last time, `away` is how long pages were in a swap area by task and
    CPU, `distances` how many pages left the page cache before one came back.
    """

    def __init__(self, records: AnalysisRecords) -> None:
        self.records = records
        self.machine = SwapMachine({})
        self.away: SampleSums[tuple[int, int]] = SampleSums()
        self.distances: SampleSums[str] = SampleSums()

    def read(self, take: Callable[[ClosedPart[ReclaimRows]], object]) -> None:
        """Give the times of reclaim to `take`, part by part."""
        machine = self.machine = SwapMachine(self.records.coverage.gaps)
        self.away, self.distances = SampleSums(), SampleSums()

        def takes_of(part: RecordPart) -> dict[str, Take]:
            taker = _Taker(part, machine)
            return taker.swaps() | taker.reclaims() | taker.files()

        def give(closed: ClosedPart[ReclaimRows]) -> None:
            away, distances = machine.closed()
            self.away.add_values(away)
            self.distances.add_values({"file": distances} if distances else {})
            take(closed)

        self.records.run_parts(takes_of, lambda: give(machine.reclaims.closed()))
        give(machine.reclaims.finish(self.records.coverage.stop))


class _Taker:
    """Makes what takes the records of each event of a part."""

    def __init__(self, records: RecordPart, machine: SwapMachine) -> None:
        self._records = records
        self._machine = machine

    def swaps(self) -> dict[str, Take]:
        """Take swap-ins, swap-outs, what reclaim writes, and sizes."""
        machine = self._machine
        found: dict[str, Take] = {}
        if SWAP_IN in self._records:
            (tid,) = self._records.numbers(SWAP_IN, "common_pid")
            slot, major = self._records.optional(SWAP_IN, "entry"), self._records.optional(SWAP_IN, "major")
            found[SWAP_IN] = lambda row, ts, cpu: machine.swap_in(
                ts, cpu, tid[row], _of(slot, row), UNKNOWN if major is None else major[row]
            )
        if SWAP_OUT in self._records:
            (out,) = self._records.numbers(SWAP_OUT, "common_pid")
            place = self._records.optional(SWAP_OUT, "entry")
            n_pages = self._records.optional(SWAP_OUT, "nr_pages")
            found[SWAP_OUT] = lambda row, ts, cpu: machine.swap_out(
                ts, cpu, out[row], _of(place, row), 1 if n_pages is None else n_pages[row]
            )
        for name in WRITE_NAMES:
            if name in self._records:
                found[name] = self._write(name)
        if RSS in self._records:
            space, member, size = self._records.numbers(RSS, "mm_id", "member", "size")
            found[RSS] = lambda row, _ts, _cpu: machine.resize(space[row], member[row], size[row])
        return found

    def _write(self, name: str) -> Take:
        tid, flags = self._records.numbers(name, "common_pid", "reclaim_flags")
        return lambda row, _ts, cpu: self._machine.writes.add(cpu, tid[row], flags[row])

    def reclaims(self) -> dict[str, Take]:
        """Take begins and ends of reclaim, and what it scanned."""
        machine = self._machine
        found: dict[str, Take] = {}
        for kind, names in RECLAIM.items():
            if all(name in self._records for name in names):
                found |= self._reclaim(kind, *names)
        if SHRINK in self._records:
            scanned, freed = self._records.numbers(SHRINK, "nr_scanned", "nr_reclaimed")

            def shrink(row: int, _ts: int, _cpu: int) -> None:
                machine.n_scanned += scanned[row]
                machine.n_reclaimed += freed[row]

            found[SHRINK] = shrink
        return found

    def _reclaim(self, kind: str, begin: str, end: str) -> dict[str, Take]:
        reclaims = self._machine.reclaims
        (first,) = self._records.numbers(begin, "common_pid")
        (last,) = self._records.numbers(end, "common_pid")
        freed = self._records.optional(end, "nr_reclaimed")
        return {
            begin: lambda row, ts, cpu: reclaims.begin(kind, ts, cpu, first[row]),
            end: lambda row, ts, _cpu: reclaims.end(
                kind, ts, last[row], UNKNOWN if freed is None else freed[row]
            ),
        }

    def files(self) -> dict[str, Take]:
        """Take pages of files that leave the page cache and come back."""
        machine = self._machine
        found: dict[str, Take] = {}
        if ADD not in self._records or DELETE not in self._records:
            return {}
        dev, inode, index = self._records.numbers(DELETE, "s_dev", "i_ino", "index")
        order = self._records.optional(DELETE, "order")

        def delete(row: int, ts: int, _cpu: int) -> None:
            n_pages = 1 << min(order[row], LARGEST_ORDER) if order else 1
            machine.evict(ts, (dev[row], inode[row], index[row]), n_pages)

        to_dev, to_inode, to_index = self._records.numbers(ADD, "s_dev", "i_ino", "index")
        found[DELETE] = delete
        found[ADD] = lambda row, ts, _cpu: machine.cache(ts, (to_dev[row], to_inode[row], to_index[row]))
        return found


def _of(column: Numbers | None, row: int) -> int | None:
    return None if column is None else column[row]
