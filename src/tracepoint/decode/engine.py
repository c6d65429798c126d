"""From the pages of CPUs to the columns of events: in C over several threads, or with the twins in Python.

Records are found in slices of pages, put in the order of time, and their fields copied in slices of rows.
Pages are read where the file is mapped, or expanded a chunk at a time; only the records of the
chosen events are kept.
"""

from __future__ import annotations

import mmap
import os
from array import array
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from tracepoint.decode.column import Column
from tracepoint.decode.fill import fill_slowly
from tracepoint.decode.plan import plan_columns
from tracepoint.decode.rows import (
    ALL_TIMES,
    MAX_TIME,
    MIN_TIME,
    N_IDS,
    NO_ID,
    Found,
    HeadFacts,
    Window,
    collect_slowly,
    count_pages_slowly,
    count_tasks_slowly,
    merge_slowly,
    shown_time,
)
from tracepoint.record.decode import DECODE
from tracepoint.record.extension import is_main_interpreter
from tracepoint.tracefile.compression import codec_named
from tracepoint.tracefile.damage import Damage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import ModuleType
    from typing import Any, TypeVar

    from tracepoint.decode.rows import Row, TimeMap
    from tracepoint.layout.format import EventFormat
    from tracepoint.record.layout import PageLayout
    from tracepoint.tracefile.buffers import CpuData

    Given = TypeVar("Given")
    Made = TypeVar("Made")
    Run = Callable[[Callable[[Given], Made], Sequence[Given]], list[Made]]
    # The pages of a CPU that one thread reads: from offset to offset of the file, all when it is compressed.
    Part = tuple[CpuData, int, int]

_PART_BYTES = 8 << 20
_SLICE_ROWS = 1 << 16
_NO_SLOT = 0xFFFF


def n_threads() -> int:
    """Return how many threads read: one for each CPU that this process may run on.

    An interpreter that is not the main one may not be allowed threads.
    """
    if not is_main_interpreter():
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _running(threads: int) -> Iterator[Run[Any, Any]]:
    """Give a function that calls another with each of several things, on threads when there are some."""
    if threads < 2:
        yield lambda function, given: [function(one) for one in given]
        return
    with ThreadPoolExecutor(threads) as pool:
        yield (
            lambda function, given: (
                list(pool.map(function, given)) if len(given) > 1 else [*map(function, given)]
            )
        )


def _parts(cpus: Iterable[CpuData], window: Window) -> list[Part]:
    parts: list[Part] = []
    for cpu in sorted(cpus, key=lambda c: c.cpu):
        if cpu.codec is not None:
            parts.append((cpu, 0, 0))
            continue
        start, end = find_pages(cpu, window)
        step = max(_PART_BYTES // cpu.layout.page_size, 1) * cpu.layout.page_size
        parts += [(cpu, at, min(at + step, end)) for at in range(start, end, step)]
    return parts


def find_pages(cpu: CpuData, window: Window) -> tuple[int, int]:
    """Return from where to where in the file the pages stand that can hold records of a window.

    Pages of one CPU follow each other in time, so they are found by halving; the one before the first is
    among them, as its records go on to the begin of the next.
    """
    size, whole = cpu.layout.page_size, cpu.size // cpu.layout.page_size
    order = "big" if cpu.layout.is_big_endian else "little"

    def first_from(time: int) -> int:
        low, high = 0, whole
        while low < high:
            middle = (low + high) // 2
            at = cpu.offset + middle * size
            stamp = int.from_bytes(cpu.data[at : at + 8], order)  # type: ignore[arg-type]
            shown = stamp if cpu.time_map is None else cpu.time_map(stamp, cpu.cpu)
            low, high = (middle + 1, high) if shown < time else (low, middle)
        return low

    start = 0 if window.start == MIN_TIME else max(first_from(window.start) - 1, 0)
    if window.stop == MAX_TIME:
        return cpu.offset + start * size, cpu.offset + cpu.size
    return cpu.offset + start * size, cpu.offset + first_from(window.stop) * size


def _blocks(part: Part) -> Iterator[tuple[memoryview | bytes, int, bool]]:
    """Yield the pages of a part, where they stand in the file, and whether that is exactly so."""
    cpu, start, end = part
    if cpu.codec is None:
        yield memoryview(cpu.data)[start:end], start, True
        _forget(cpu, start, end)
    else:
        # A decompressor serves one thread at a time.
        own = replace(cpu, codec=codec_named(cpu.codec.name))
        yield from ((block, at, False) for block, at in own.blocks_at())


def _forget(cpu: CpuData, start: int, end: int) -> None:
    """Let go of a mapped part of the file that was read: it would count as memory of this process."""
    if isinstance(cpu.data, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        start = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
        if end - start >= mmap.PAGESIZE:
            cpu.data.madvise(mmap.MADV_DONTNEED, start, end - start)


def _raw_window(window: Window, convert: TimeMap | None) -> Window:
    """Return the window in which stamps are looked at before they are converted."""
    return window if convert is None else ALL_TIMES


def _numbers(layout: PageLayout) -> tuple[int, int, int, int, bool]:
    return (
        layout.data_offset, layout.data_size, layout.commit_offset, layout.long_size, layout.is_big_endian
    )  # fmt: skip


def _count_block(data: memoryview | bytes, cpu: CpuData, window: Window, counts: array[int]) -> Found:
    convert = cpu.time_map
    # The C form knows stamps only, which is enough where all of them count.
    if DECODE is None or (convert is not None and window != ALL_TIMES):
        return count_pages_slowly(data, cpu.layout, window, counts, convert=convert, cpu=cpu.cpu)
    heads, first, last = DECODE.count_pages(data, _numbers(cpu.layout), *window, counts)
    if first <= last:
        first, last = shown_time(convert, first, cpu.cpu), shown_time(convert, last, cpu.cpu)
    return Found([HeadFacts(*head) for head in heads], first, last)


class PartCounts(NamedTuple):
    """What a part of a CPU's pages holds: its records by event id and by task, and what its pages report."""

    cpu: int
    by_id: dict[int, int]
    found: list[Found]
    by_task: dict[int, int]


def _count_tasks(data: memoryview | bytes, cpu: CpuData, pid_at: int) -> dict[int, int]:
    if DECODE is None:
        return count_tasks_slowly(data, cpu.layout, pid_at)
    found: dict[int, int] = DECODE.count_tasks(data, _numbers(cpu.layout), pid_at)
    return found


def sum_counts(counts: Iterable[dict[int, int]]) -> dict[int, int]:
    """Add counts up by their keys."""
    found: Counter[int] = Counter()
    for part in counts:
        found.update(part)
    return dict(found)


def count_by_id(parts: Iterable[PartCounts]) -> dict[int, int]:
    """Return the number of records of each event id, those too short for one under NO_ID."""
    return sum_counts(part.by_id for part in parts)


def count_records(
    cpus: Iterable[CpuData], window: Window, threads: int, pid_at: int | None = None
) -> list[PartCounts]:
    """Return what the pages of CPUs hold, in any order; damage is reported to the file.

    Tasks are counted when `pid_at`, where all records have their id, is given; then every record counts,
    whatever the window.
    """

    def count(part: Part) -> PartCounts:
        cpu, counts, all_found = part[0], array("Q", bytes(8 * (N_IDS + 1))), []
        by_task: Counter[int] = Counter()
        for data, at, is_exact in _blocks(part):
            found = _count_block(data, cpu, window, counts)
            for head in found.heads:
                if head.fault:
                    cpu.report(Damage(cpu.cpu, at + head.fault_at if is_exact else at, head.fault))
            all_found.append(found)
            if pid_at is not None:
                by_task.update(_count_tasks(data, cpu, pid_at))
        by_id = {number: n for number, n in enumerate(counts) if n}
        if N_IDS in by_id:
            by_id[NO_ID] = by_id.pop(N_IDS)
        return PartCounts(cpu.cpu, by_id, all_found, dict(by_task))

    with _running(threads) as run:
        return run(count, _parts(cpus, window))


def read_columns(
    cpus: Sequence[CpuData], forms: Sequence[EventFormat], window: Window, threads: int
) -> list[list[Column]]:
    """Return the columns of events, their rows by time; of equal times the lower CPU comes first."""
    convert = cpus[0].time_map if cpus else None
    if DECODE is None:
        return _read_slowly(cpus, forms, window, convert)
    with _running(threads) as run:
        return _read_quickly(DECODE, cpus, forms, window, run)


def _read_slowly(
    cpus: Sequence[CpuData], forms: Sequence[EventFormat], window: Window, convert: TimeMap | None
) -> list[list[Column]]:
    rows: dict[int, list[Row]] = {form.id: [] for form in forms}
    for part in _parts(cpus, window):
        cpu = part[0]
        for data, _, _ in _blocks(part):
            found = collect_slowly(data, cpu.layout, cpu.cpu, rows, _raw_window(window, convert))
            for number, row in found:
                rows[number].append(row)
    return [
        fill_slowly(
            merge_slowly(rows[form.id], convert, window),
            plan_columns(form),
            is_big_endian=form.is_big_endian,
        )
        for form in forms
    ]


def _read_quickly(
    decode: ModuleType,
    cpus: Sequence[CpuData],
    forms: Sequence[EventFormat],
    window: Window,
    run: Run[Any, Any],
) -> list[list[Column]]:
    slots = array("H", [_NO_SLOT]) * N_IDS
    for number, form in enumerate(forms):
        if form.id < N_IDS:
            slots[form.id] = number
    convert = cpus[0].time_map if cpus else None
    raw = _raw_window(window, convert)

    def collect(part: Part) -> object:
        cpu = part[0]
        collector = decode.collector(slots, len(forms), _numbers(cpu.layout), *raw)
        for data, _, _ in _blocks(part):
            decode.collect_pages(collector, data, cpu.cpu)
        return collector

    sources = tuple(run(collect, _parts(cpus, window)))

    def fill(number: int) -> list[Column]:
        form = forms[number]
        rows, n_rows = decode.merge_rows(sources, number, convert, *window)
        plan = plan_columns(form)
        n_slices = n_rows // _SLICE_ROWS + 1 if len(forms) == 1 else 1
        columns = decode.start_columns(rows, tuple(c.numbers for c in plan), form.is_big_endian, n_slices)
        fills = run if n_slices > 1 else _one_by_one
        fills(lambda part: decode.fill_columns(columns, part), range(n_slices))
        filled = decode.finish_columns(columns)
        return [Column(c, n_rows, *memory) for c, memory in zip(plan, filled, strict=True)]

    return run(fill, range(len(forms)))


def _one_by_one(function: Callable[[Given], Made], given: Iterable[Given]) -> list[Made]:
    return [function(one) for one in given]
