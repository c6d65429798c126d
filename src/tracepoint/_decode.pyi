"""Records out of pages, and their columns, in C.

The twins are `tracepoint.record.pages.read_pages_slowly`, and in `tracepoint.decode` rows and fill,
and `tracepoint.control.drain.drain_slowly`, and in `tracepoint.analysis`; the Arrow functions have none.
"""

from array import array
from collections.abc import Iterator
from typing import TypeAlias, final

from tracepoint.record.page import Buffer as _Bytes

def read_pages(
    data: _Bytes,
    data_offset: int,
    data_size: int,
    commit_offset: int,
    long_size: int,
    is_big_endian: bool,
    /,
) -> tuple[
    Buffer,
    Buffer,
    Buffer,
    list[tuple[int, int, int, int, tuple[tuple[int, int], ...], str, int]],
    list[tuple[int, int]],
]: ...

@final
class Buffer:
    def __len__(self) -> int: ...
    # A method that Python can call since 3.12; before, only C sees it.
    def __buffer__(self, flags: int, /) -> memoryview: ...

class _Clock: ...
class _Sieve: ...
class _Pool: ...
class _Zstd: ...
class _Collector: ...
class _Rows: ...
class _Columns: ...
class _Machine: ...

_Layout: TypeAlias = tuple[int, int, int, int, bool]
_Numbers: TypeAlias = tuple[_Bytes, str, _Bytes | None]
_Names: TypeAlias = tuple[_Bytes, _Bytes, _Bytes | None]
_Filled: TypeAlias = tuple[int, Buffer | None, Buffer, Buffer | None, Buffer | None]

def sieve(
    slots: _Bytes,
    new_ids: _Bytes,
    programs: tuple[bytes, ...],
    layout: _Layout,
    start: int,
    stop: int,
    clock: _Clock | None,
    /,
) -> _Sieve: ...
def clock(
    mult: int, n_bits: int, offset: int, interpolates: bool, samples: tuple[bytes, ...], /
) -> _Clock: ...
def sift_pages(
    sieve: _Sieve, data: _Bytes, cpu: int, keeps_losses: bool, /
) -> tuple[Buffer, list[tuple[str, int]], int]: ...
def count_pages(
    data: _Bytes, layout: _Layout, counts: array[int], /
) -> tuple[list[tuple[int, int, str, int]], int, int, bool]: ...
def count_tasks(data: _Bytes, layout: _Layout, pid_at: int, /) -> dict[int, int]: ...
def drain(
    source: int,
    target: int,
    end: int,
    page_size: int,
    wait_ms: int,
    n_ring: int,
    counts: array[int],
    room: array[int],
    /,
) -> tuple[int, int]: ...
def free_space(handle: int, at: int, size: int, /) -> bool: ...
def zstd_version() -> str: ...
def zstd_context() -> _Zstd: ...
def zstd_compress(context: _Zstd, data: _Bytes, level: int, /) -> bytes: ...
def zstd_expand(data: _Bytes, room: int, /) -> bytes: ...
def pool() -> _Pool: ...
def collector(
    pool: _Pool, slots: _Bytes, n_slots: int, layout: _Layout, start: int, stop: int, /
) -> _Collector: ...
def collect_pages(collector: _Collector, data: _Bytes, cpu: int, /) -> None: ...
def collect_file(collector: _Collector, fd: int, at: int, size: int, cpu: int, /) -> int: ...
def collected(collector: _Collector, /) -> tuple[int, int, int]: ...
def remap(indices: _Bytes, table: _Bytes, /) -> Buffer: ...
def join_ends(parts: tuple[_Bytes, ...], /) -> Buffer: ...
def show_times(collector: _Collector, clock: _Clock, /) -> None: ...
def merge_rows(collectors: tuple[_Collector, ...], slot: int, /) -> tuple[_Rows, int]: ...
def start_columns(
    rows: _Rows, plan: tuple[tuple[int, int, int, int, int], ...], is_big_endian: bool, n_slices: int, /
) -> _Columns: ...
def fill_columns(columns: _Columns, number: int, /) -> None: ...
def finish_columns(columns: _Columns, /) -> list[_Filled]: ...
def sort_numbers(numbers: _Bytes, /) -> tuple[Buffer, int]: ...
def null_bits(numbers: _Bytes, size: int, null: int, /) -> tuple[int, Buffer]: ...
def count_up(n: int, /) -> Buffer: ...
def add_lengths(starts: _Bytes, lengths: _Bytes, /) -> Buffer: ...
def times_before(
    stamps: _Bytes, cpus: _Bytes, wanted: tuple[tuple[int, _Bytes], ...], /
) -> tuple[tuple[int, int, Buffer], ...]: ...
def sched_machine(
    has_wakings: bool,
    has_wakes: bool,
    has_new: bool,
    gaps: tuple[tuple[int, _Bytes, _Bytes], ...],
    all_gaps: tuple[_Bytes, _Bytes],
    /,
) -> _Machine: ...
def sched_run(
    machine: _Machine,
    heads: tuple[_Numbers, _Bytes, _Bytes],
    events: tuple[tuple[int, int, tuple[_Numbers | None, ...], tuple[_Names | None, ...]], ...],
    row: int,
    /,
) -> int: ...
def sched_state(machine: _Machine, value: int, number: int, kind: int, /) -> None: ...
def sched_rows(
    machine: _Machine, stop: int, /
) -> tuple[
    tuple[Buffer, ...],
    tuple[Buffer, ...],
    tuple[Buffer, ...],
    tuple[Buffer, ...],
    tuple[int, int, int, int, int, int],
]: ...
def sched_cpu_sums(
    dur: _Bytes, cpu: _Bytes, utid: _Bytes, tids: _Bytes, /
) -> list[tuple[int, int, int, int]]: ...
def sched_task_sums(
    dur: _Bytes, utid: _Bytes, state: _Bytes, flags: _Bytes, /
) -> list[tuple[int, int, int, int, int]]: ...
def sched_ends(utid: _Bytes, end: _Bytes, classes: _Bytes, n_threads: int, /) -> Buffer: ...
def sched_closed(
    machine: _Machine, /
) -> tuple[
    tuple[Buffer, ...],
    tuple[Buffer, ...],
    tuple[Buffer, ...],
    tuple[Buffer, ...],
    tuple[Buffer, ...],
]: ...
def sched_waits(
    dur: _Bytes,
    utid: _Bytes,
    state: _Bytes,
    flags: _Bytes,
    priority: _Bytes,
    preempted: _Bytes,
    causes: int,
    /,
) -> tuple[Buffer, Buffer, Buffer]: ...
def sched_fold(
    utid: _Bytes, priority: _Bytes, length: _Bytes, precision: int, /
) -> tuple[list[tuple[int, int, int, int, int, int]], list[tuple[int, int, int]]]: ...
def symbol_lines(text: _Bytes, /) -> tuple[bytes, bytes, bytes, bool] | None: ...
def arrow_schema(array: tuple[object, ...], /) -> object: ...
def arrow_array(array: tuple[object, ...], /) -> tuple[object, object]: ...
def arrow_stream(array: tuple[object, ...], /) -> object: ...
def arrow_parts(array: tuple[object, ...], parts: Iterator[tuple[object, ...]], /) -> object: ...
def load_prints(
    programs: list[tuple[int, bytes, tuple[object, ...]]], facts: int, is_big_endian: bool, /
) -> object: ...
def render_prints(
    prints: object,
    texts: _Bytes,
    data: _Bytes,
    offsets: _Bytes,
    lengths: _Bytes,
    wants_strings: bool,
    /,
) -> tuple[list[str], bytes, bytes]: ...
def line_writer(
    prints: object,
    pids: _Bytes,
    task_ends: _Bytes,
    tasks: _Bytes,
    name_ends: _Bytes,
    names: _Bytes,
    unknown_ends: _Bytes,
    unknown: _Bytes,
    flags: int,
    /,
) -> tuple[object, int]: ...
def render_lines(
    writer: object,
    symbols: _Bytes,
    out: bytearray,
    start: int,
    sources: tuple[tuple[_Bytes, _Bytes, _Bytes, _Bytes, _Bytes, array[int]], ...],
    /,
) -> tuple[int, list[tuple[int, int, int]]]: ...
def line_notes(writer: object, /) -> list[tuple[int, int, int, int]]: ...
