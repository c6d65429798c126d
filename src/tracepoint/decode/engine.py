"""From the pages of CPUs to the columns of events: in C over several threads, or with the twins in Python.

Records are found in slices of pages, put in the order of time, and their fields copied in slices of rows.
Pages are read from the file as they are, or expanded a chunk at a time; only the records of the
chosen events are kept.
"""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from tracepoint.decode.column import Column
from tracepoint.decode.counting import IdCounts, layout_numbers
from tracepoint.decode.fill import fill_slowly
from tracepoint.decode.found import N_IDS, Found
from tracepoint.decode.join import ColumnJoiner
from tracepoint.decode.plan import plan_event
from tracepoint.decode.rows import (
    collect_slowly,
    count_tasks_slowly,
    merge_slowly,
)
from tracepoint.decode.threads import call_each
from tracepoint.named import NamedTuple
from tracepoint.record.decode import DECODE
from tracepoint.tracefile.compression import decompressor_named
from tracepoint.tracefile.order import PageOrder, samples_go_back
from tracepoint.tracefile.sieve import ALL_TIMES, MAX_TIME, MIN_TIME, Window, shown_time, stamp_window

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import ModuleType

    from tracepoint.decode.plan import TablePlan
    from tracepoint.decode.rows import Row
    from tracepoint.layout.format import EventFormat
    from tracepoint.record.page import Buffer
    from tracepoint.tracefile.cpudata import CpuData

_PART_BYTES = 8 << 20
_PART_CHUNKS = 256
# Joining slices costs a fifth of the time, which only a table of gigabytes is worth.
_SLICE_BYTES, _MIN_SLICES = 128 << 20, 8
_MAX_SLICES = 512
_SLICE_ROWS = 1 << 15
_NO_SLOT = 0xFFFF


def _parts(cpus: Iterable[CpuData]) -> list[CpuData]:
    """Cut the data of CPUs into parts for one thread each."""
    parts: list[CpuData] = []
    for cpu in sorted(cpus, key=lambda c: c.cpu):
        if not cpu.is_plain:
            parts += _chunked(cpu)
            continue
        end = cpu.offset + cpu.size
        step = max(_PART_BYTES // cpu.layout.page_size, 1) * cpu.layout.page_size
        parts += [replace(cpu, offset=at, size=min(step, end - at)) for at in range(cpu.offset, end, step)]
    return parts


def _chunked(cpu: CpuData) -> list[CpuData]:
    """Cut at chunks that are picked; else the data is one part, whose damage is found on the way."""
    if cpu.picked is None:
        return [cpu]
    return [
        replace(cpu, picked=cpu.picked[n : n + _PART_CHUNKS]) for n in range(0, len(cpu.picked), _PART_CHUNKS)
    ]


def _blocks(part: CpuData) -> Iterator[tuple[Buffer, int]]:
    """Yield the pages of a part and where they stand in the file."""
    if part.codec is not None:
        # A decompressor serves one thread at a time.
        part = replace(part, codec=decompressor_named(part.codec.name))
    yield from part.blocks_at()


def _count_block(data: Buffer, cpu: CpuData, counts: IdCounts) -> Found:
    found = counts.add(data, cpu.layout)
    if found.first > found.last:
        return found
    first, last = (shown_time(cpu.time_map, stamp, cpu.cpu) for stamp in (found.first, found.last))
    return found._replace(first=first, last=last)


class PartCounts(NamedTuple):
    """What a part of a CPU's pages holds: its records by event id and by task, and what its pages report.

    `order` is that of the pages of a part that is read by chunks.
    """

    cpu: int
    by_id: dict[int, int]
    found: list[Found]
    by_task: dict[int, int]
    order: PageOrder | None = None


def _count_tasks(data: Buffer, cpu: CpuData, pid_at: int) -> dict[int, int]:
    if DECODE is None:
        return count_tasks_slowly(data, cpu.layout, pid_at)
    found: dict[int, int] = DECODE.count_tasks(data, layout_numbers(cpu.layout), pid_at)
    return found


def sum_counts(counts: Iterable[dict[int, int]]) -> dict[int, int]:
    """Add counts up by their keys."""
    found: Counter[int] = Counter()
    for part in counts:
        found.update(part)
    return dict(found)


def cpus_in_order(parts: Iterable[PartCounts]) -> set[int]:
    """Return the CPUs of which counting saw that all pages are in the order of time."""
    last: dict[int, int] = {}
    others: set[int] = set()
    for part in parts:
        if part.order is None or part.order.goes_back or part.order.first < last.get(part.cpu, MIN_TIME):
            others.add(part.cpu)
        else:
            last[part.cpu] = max(part.order.last, last.get(part.cpu, MIN_TIME))
    return set(last) - others


def records_go_back(parts: Iterable[PartCounts]) -> bool:
    """Return whether a record is earlier than one before it on its CPU.

    The kernel writes none: then the times at which pages begin do not say which records they have.
    """
    last: dict[int, int] = {}
    for part in parts:
        for found in part.found:
            before = last.get(part.cpu, MIN_TIME)
            if found.goes_back or found.first < before:
                return True
            last[part.cpu] = max(found.last, before)
    return False


def count_by_id(parts: Iterable[PartCounts]) -> dict[int, int]:
    """Return the number of records of each event id, those too short for one under NO_ID."""
    return sum_counts(part.by_id for part in parts)


class _PartCounter:
    """Counts what a part of a CPU's pages holds while its blocks are read; damage is reported to the file."""

    def __init__(self, part: CpuData) -> None:
        self._part = part
        self._counts, self._found = IdCounts(), list[Found]()
        self._order = None if part.is_plain else PageOrder(part.layout)

    def blocks(self) -> Iterator[Buffer]:
        """Yield the pages of the part."""
        part = self._part
        for data, at in _blocks(part if self._order is None else replace(part, watch=self._order.see)):
            found = _count_block(data, part, self._counts)
            for head in found.heads:
                if head.fault:
                    part.report_fault(at, head.fault_at, head.fault)
            self._found.append(found)
            yield data

    def counts(self, by_task: dict[int, int] | None = None) -> PartCounts:
        """Return what the blocks held."""
        return PartCounts(self._part.cpu, self._counts.by_id(), self._found, by_task or {}, self._order)


def count_records(cpus: Iterable[CpuData], threads: int, pid_at: int | None = None) -> list[PartCounts]:
    """Return what the pages of CPUs hold, in any order; damage is reported to the file.

    Tasks are counted when `pid_at`, where all records have their id, is given.
    """

    def count(cpu: CpuData) -> PartCounts:
        counter, by_task = _PartCounter(cpu), Counter[int]()
        for data in counter.blocks():
            if pid_at is not None:
                by_task.update(_count_tasks(data, cpu, pid_at))
        return counter.counts(dict(by_task))

    return call_each(count, _parts(cpus), threads)


def read_columns(cpus: Sequence[CpuData], forms: Sequence[EventFormat], threads: int) -> list[list[Column]]:
    """Return the columns of events, their rows by time; of equal times the lower CPU comes first."""
    return read_tables(cpus, [plan_event(form) for form in forms], threads)


def read_tables(
    cpus: Sequence[CpuData],
    plans: Sequence[TablePlan],
    threads: int,
    counted: list[PartCounts] | None = None,
) -> list[list[Column]]:
    """Return the columns of tables as `read_columns` does; an event is in one of them.

    Rows of one CPU with equal times keep the order in which they were written, whatever their events.
    `counted` gets what `count_records` returns where all pages are read once anyway, else nothing.
    """
    if DECODE is None:
        return _read_slowly(cpus, plans)
    slices = time_slices(cpus)
    found = _read_in_slices(DECODE, [c.listed() for c in cpus], plans, slices, threads) if slices else None
    return found if found is not None else _read_quickly(DECODE, cpus, plans, threads, counted)


def _read_in_slices(
    decode: ModuleType,
    cpus: Sequence[CpuData],
    plans: Sequence[TablePlan],
    slices: Sequence[Window],
    threads: int,
) -> list[list[Column]] | None:
    """Return the columns, read window by window; None when pages are not in the order of time."""
    joiners = [[ColumnJoiner(decode, column) for column in plan.columns] for plan in plans]
    for window in slices:
        parts = _parts(cpu.at_places(cpu.places_of(window)) for cpu in cpus)
        sources = _collect(decode, parts, plans, window, threads)
        if not _are_in_order(parts, [decode.collected(source) for source in sources]):
            return None
        for event, columns in zip(joiners, _fill(decode, sources, plans, threads), strict=True):
            for joiner, column in zip(event, columns, strict=True):
                joiner.add(column)
    return [[joiner.column() for joiner in event] for event in joiners]


def time_slices(cpus: Sequence[CpuData]) -> list[Window]:
    """Return windows, one after the other, in which CPUs have some megabytes; none where all is read at once.

    What is collected of one is given up before the next is read.
    """
    is_simple = all(
        (c.sieve is None or c.sieve.in_c is not None) and (c.time_map is None or c.time_map.is_affine)
        for c in cpus
    )
    if not is_simple or len({cpu.cpu for cpu in cpus}) < len(cpus):
        return []
    found = [cpu.listed() for cpu in cpus]
    n_slices = min(sum(cpu.n_bytes for cpu in found) // _SLICE_BYTES, _MAX_SLICES)
    if n_slices < _MIN_SLICES:
        return []
    times = sorted({*max(found, key=lambda cpu: cpu.n_bytes).sample_times(n_slices + 1)[1:-1]})
    # Pages that are not in the order of time cannot be found by it.
    if any(samples_go_back(cpu) or (cpu.codec is not None and cpu.picked is None) for cpu in found):
        return []
    return [Window(*pair) for pair in pairwise([MIN_TIME, *times, MAX_TIME])]


def _read_slowly(cpus: Sequence[CpuData], plans: Sequence[TablePlan]) -> list[list[Column]]:
    rows: list[list[Row]] = [[] for _ in plans]
    table_of = {number: at for at, plan in enumerate(plans) for number in plan.ids}
    for part in _parts(cpus):
        for data, _ in _blocks(replace(part, sieve=None)):
            for number, row in collect_slowly(data, part.layout, part.cpu, table_of, part.sieve):
                rows[table_of[number]].append(
                    row._replace(stamp=shown_time(part.time_map, row.stamp, row.cpu))
                )
    return [
        fill_slowly(merge_slowly(own), plan.columns, is_big_endian=plan.is_big_endian)
        for own, plan in zip(rows, plans, strict=True)
    ]


def _read_quickly(
    decode: ModuleType,
    cpus: Sequence[CpuData],
    plans: Sequence[TablePlan],
    threads: int,
    counted: list[PartCounts] | None,
) -> list[list[Column]]:
    parts, counters = _parts(cpus), list[_PartCounter]()
    # What a sieve leaves is not known from the pages that are read here.
    if counted is not None and all(part.sieve is None for part in parts):
        counters = [_PartCounter(part) for part in parts]
    sources = _collect(decode, parts, plans, ALL_TIMES, threads, counters=counters)
    if counted is not None:
        counted += [counter.counts() for counter in counters]
    return _fill(decode, sources, plans, threads)


def _collect(
    decode: ModuleType,
    parts: Sequence[CpuData],
    plans: Sequence[TablePlan],
    window: Window,
    threads: int,
    *,
    counters: Sequence[_PartCounter] = (),
) -> tuple[object, ...]:
    """Find the records of events in a window; `counters` of the parts, if any, count all of them."""
    slots = array("H", [_NO_SLOT]) * N_IDS
    for number, plan in enumerate(plans):
        for event in plan.ids:
            if event < N_IDS:
                slots[event] = number
    pool = decode.pool()

    def collect(at: int) -> object:
        part = parts[at]
        stamps = stamp_window(window, part.time_map)
        sieve = part.sieve.in_c if part.sieve is not None else None
        collector = decode.collector(pool, sieve, slots, len(plans), layout_numbers(part.layout), *stamps)
        # Records are chosen where they are found, without pages of the chosen ones.
        whole = part if sieve is None else replace(part, sieve=None)
        if not counters and whole.file is not None:
            descriptor = whole.file.descriptor
            n_bytes = decode.collect_file(collector, descriptor.number, whole.offset, whole.size, whole.cpu)
            if n_bytes < whole.size:
                whole.report_end(whole.offset + n_bytes)
        else:
            for data in counters[at].blocks() if counters else (data for data, _ in _blocks(whole)):
                decode.collect_pages(collector, data, part.cpu)
        if part.time_map is not None:
            decode.show_times(collector, part.time_map.in_c)
        return collector

    return tuple(call_each(collect, range(len(parts)), threads))


def _fill(
    decode: ModuleType, sources: tuple[object, ...], plans: Sequence[TablePlan], threads: int
) -> list[list[Column]]:
    """Put the records of each table in the order of time, and copy their fields."""

    def fill(number: int) -> list[Column]:
        plan = plans[number]
        rows, n_rows = decode.merge_rows(sources, number)
        n_slices = n_rows // _SLICE_ROWS + 1 if len(plans) == 1 else 1
        numbers = tuple(column.numbers for column in plan.columns)
        columns = decode.start_columns(rows, numbers, plan.is_big_endian, n_slices)
        call_each(lambda part: decode.fill_columns(columns, part), range(n_slices), threads)
        filled = decode.finish_columns(columns)
        return [Column(c, n_rows, *memory) for c, memory in zip(plan.columns, filled, strict=True)]

    return call_each(fill, range(len(plans)), threads)


def _are_in_order(parts: Sequence[CpuData], found: Sequence[tuple[int, int, int]]) -> bool:
    """Return whether only the first page of a CPU has records before a window, and the last ones after it.

    `found` has the pages of each part, and the numbers of the last page with a record before the window and
    of the first with one after it.  Pages of different windows overlap by one, so then none is in neither.
    """
    n_pages: Counter[int] = Counter()
    late: dict[int, int] = {}
    for part, (n, early_page, late_page) in zip(parts, found, strict=True):
        if early_page and n_pages[part.cpu] + early_page > 1:
            return False
        if late_page:
            late.setdefault(part.cpu, n_pages[part.cpu] + late_page)
        n_pages[part.cpu] += n
    return all(page >= n_pages[cpu] for cpu, page in late.items())
