"""From records to the allocations of a machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.analysis.memory.machine import MemoryMachine
from tracepoint.analysis.memory.needs import FREES, NEEDS, OBJECTS, PAGE_ALLOC, PAGE_FREE
from tracepoint.analysis.records import AnalysisRecords

if TYPE_CHECKING:
    from tracepoint.analysis.records import Take
    from tracepoint.decode.trace import Trace

#: What an allocation is made by; those of OBJECTS are by the first two, in turn.
KINDS = ("kmalloc", "cache", "pages")


def read_memory(trace: Trace) -> tuple[AnalysisRecords, MemoryMachine]:
    """Return the records and the allocations that they tell of."""
    records = AnalysisRecords(trace, "memory", NEEDS)
    machine = MemoryMachine(records.coverage.gaps)
    takes = {
        name: _object_take(records, machine, name, at % 2)
        for at, name in enumerate(OBJECTS)
        if name in records
    }
    takes |= {name: _free_take(records, machine, name) for name in FREES if name in records}
    records.run(takes | _page_takes(records, machine))
    machine.finish(records.coverage.stop)
    # Looked up now: a report is used after its recording was closed.
    for site in set(machine.site):
        records.function(site)
    return records, machine


def _object_take(records: AnalysisRecords, machine: MemoryMachine, name: str, kind: int) -> Take:
    tid, site, pointer, asked, size = (
        records.column(name, field).numbers
        for field in ("common_pid", "call_site", "ptr", "bytes_req", "bytes_alloc")
    )

    def take(row: int, ts: int, cpu: int) -> None:
        machine.allocate((ts, cpu, tid[row]), kind, pointer[row], (site[row], asked[row], size[row]))

    return take


def _free_take(records: AnalysisRecords, machine: MemoryMachine, name: str) -> Take:
    pointer = records.column(name, "ptr").numbers
    return lambda row, ts, _cpu: machine.free(ts, pointer[row])


def _page_takes(records: AnalysisRecords, machine: MemoryMachine) -> dict[str, Take]:
    found: dict[str, Take] = {}
    if PAGE_ALLOC in records:
        tid, frame, order = records.numbers(PAGE_ALLOC, "common_pid", "pfn", "order")
        kind = KINDS.index("pages")
        found[PAGE_ALLOC] = lambda row, ts, cpu: machine.allocate_pages(
            (ts, cpu, tid[row]), kind, frame[row], order[row]
        )
    if PAGE_FREE in records:
        freed, size = records.numbers(PAGE_FREE, "pfn", "order")
        found[PAGE_FREE] = lambda row, ts, _cpu: machine.free_pages(ts, freed[row], size[row])
    return found
