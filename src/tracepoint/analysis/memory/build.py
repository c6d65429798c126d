"""From records to allocations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.analysis.memory.machine import MemoryMachine
from tracepoint.analysis.memory.needs import FREES, OBJECTS, PAGE_ALLOC, PAGE_FREE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.analysis.growing import ClosedPart
    from tracepoint.analysis.memory.machine import AllocationRows
    from tracepoint.analysis.records import AnalysisRecords, RecordPart, Take

#: What an allocation is made by; those of OBJECTS are by the first two, in turn.
KINDS = ("kmalloc", "cache", "pages")


class AllocationReader:
    """Reads the allocations of a recording, as often as they are asked for.

    `machine` counts what it found the last time.
    """

    def __init__(self, records: AnalysisRecords) -> None:
        self._records = records
        self.machine = MemoryMachine({})

    def read(self, take: Callable[[ClosedPart[AllocationRows]], object]) -> None:
        """Give the allocations to `take`, part by part."""
        records = self._records
        machine = self.machine = MemoryMachine(records.coverage.gaps)

        def close(closed: ClosedPart[AllocationRows]) -> None:
            # Looked up now: a report is used after its recording was closed.
            for site in set(closed.rows.site):
                records.function(site)
            take(closed)

        records.run_parts(lambda part: _takes(part, machine), lambda: close(machine.closed()))
        close(machine.finish(records.coverage.stop))


def _takes(part: RecordPart, machine: MemoryMachine) -> dict[str, Take]:
    takes = {
        name: _object_take(part, machine, name, at % 2) for at, name in enumerate(OBJECTS) if name in part
    }
    takes |= {name: _free_take(part, machine, name) for name in FREES if name in part}
    return takes | _page_takes(part, machine)


def _object_take(part: RecordPart, machine: MemoryMachine, name: str, kind: int) -> Take:
    tid, site, pointer, asked, size = part.numbers(
        name, "common_pid", "call_site", "ptr", "bytes_req", "bytes_alloc", codes="iQQQQ"
    )
    allocate = machine.allocate

    def take(row: int, ts: int, cpu: int) -> None:
        allocate((ts, cpu, tid[row]), kind, pointer[row], (site[row], asked[row], size[row]))

    return take


def _free_take(part: RecordPart, machine: MemoryMachine, name: str) -> Take:
    (pointer,), free = part.numbers(name, "ptr", codes="Q"), machine.free
    return lambda row, ts, _cpu: free(ts, pointer[row])


def _page_takes(part: RecordPart, machine: MemoryMachine) -> dict[str, Take]:
    found: dict[str, Take] = {}
    if PAGE_ALLOC in part:
        tid, frame, order = part.numbers(PAGE_ALLOC, "common_pid", "pfn", "order", codes="iQQ")
        kind = KINDS.index("pages")
        found[PAGE_ALLOC] = lambda row, ts, cpu: machine.allocate_pages(
            (ts, cpu, tid[row]), kind, frame[row], order[row]
        )
    if PAGE_FREE in part:
        freed, size = part.numbers(PAGE_FREE, "pfn", "order", codes="QQ")
        found[PAGE_FREE] = lambda row, ts, _cpu: machine.free_pages(ts, freed[row], size[row])
    return found
