"""What is in a ring buffer: an outline from the heads of the file and a few pages, then exact counts."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from tracepoint.decode.engine import count_by_id, count_records, cpus_in_order, sum_counts
from tracepoint.decode.found import NO_ID
from tracepoint.decode.names import names_by_id
from tracepoint.decode.selection import unknown_name
from tracepoint.decode.threads import n_threads
from tracepoint.errors import DecodeError
from tracepoint.named import NamedTuple
from tracepoint.record.page import add_lost
from tracepoint.record.pages import read_pages
from tracepoint.tracefile.filebytes import read_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.decode.engine import PartCounts
    from tracepoint.tracefile.buffers import TraceBuffer
    from tracepoint.tracefile.container import Container
    from tracepoint.tracefile.cpudata import Chunk, CpuData

_N_SAMPLES = 64
_MAX_CHUNKS = 100_000
_PID = re.compile(r"\bcommon_pid;\s*offset:(\d{1,4});\s*size:4;")


class Outline(NamedTuple):
    """What the first and last pages of each CPU, and some between them, show.

    `n_bytes` are those of the pages once they are expanded, `n_sampled` the pages that were looked at;
    `n_records` is an estimate from these.  `first` and `last` are times in ns, 0 without records.
    """

    n_bytes: int
    n_pages: int
    n_sampled: int
    n_records: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class CpuSummary:
    """The records of one CPU: `lost` as its pages report it, LOST_UNKNOWN (-1): some, not counted."""

    cpu: int
    n_records: int
    lost: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Summary:
    """All records of a ring buffer counted: by event, by CPU, and by the id of the task."""

    events: dict[str, int]
    cpus: tuple[CpuSummary, ...]
    tasks: dict[int, int]

    @property
    def n_records(self) -> int:
        """The number of records."""
        return sum(self.events.values())

    @property
    def span(self) -> tuple[int, int]:
        """The times of the first and the last record in ns; (0, 0) without records."""
        used = [cpu for cpu in self.cpus if cpu.n_records]
        return (min(cpu.first for cpu in used), max(cpu.last for cpu in used)) if used else (0, 0)


def outline_buffer(buffer: TraceBuffer) -> Outline:
    """Look at the first and last pages of each CPU and at some between: the cost is that of 64 pages."""
    n_bytes = n_pages = n_sampled = estimate = 0
    stamps_of: list[int] = []
    used = [cpu for cpu in buffer.cpus if cpu.size]
    for cpu in used:
        size, pages = _pages_of(cpu, max(_N_SAMPLES // len(used), 3))
        n_found = n_looked = 0
        for page in pages:
            found = read_pages(page, cpu.layout)
            stamps = [s if cpu.time_map is None else cpu.time_map(s, cpu.cpu) for s in found.stamps]
            n_found, n_looked = n_found + len(stamps), n_looked + len(page) // cpu.layout.page_size
            stamps_of += stamps[:1] + stamps[-1:]
        of_cpu = size // cpu.layout.page_size
        n_bytes, n_pages, n_sampled = n_bytes + size, n_pages + of_cpu, n_sampled + n_looked
        estimate += round(n_found / n_looked * of_cpu) if n_looked else 0
    first, last = min(stamps_of, default=0), max(stamps_of, default=0)
    return Outline(n_bytes, n_pages, n_sampled, estimate, first, last)


def _pages_of(cpu: CpuData, n_samples: int) -> tuple[int, Iterator[bytes]]:
    """Return the bytes of a CPU's pages, expanded, and some of the pages."""
    if cpu.codec is None:
        step, whole = cpu.layout.page_size, cpu.size // cpu.layout.page_size
        places = [cpu.offset + n * step for n in _spread(whole, n_samples)]
        return cpu.size, (read_at(cpu.data, at, at + step) for at in places)
    chunks = cpu.chunks(_MAX_CHUNKS)
    chosen = [chunks[n] for n in _spread(len(chunks), max(n_samples // 8, 3))]
    return sum(chunk.unpacked for chunk in chunks), _expanded(cpu, chosen)


def _expanded(cpu: CpuData, chunks: list[Chunk]) -> Iterator[bytes]:
    for chunk in chunks:
        # What is damaged is reported when all is counted.
        with suppress(DecodeError):
            yield cpu.expand_chunk(chunk)


def _spread(n: int, n_wanted: int) -> list[int]:
    """Return up to `n_wanted` numbers below `n`, the first and the last among them.

    >>> _spread(10, 4), _spread(2, 4)
    ([0, 3, 6, 9], [0, 1])
    """
    return sorted({i * (n - 1) // max(n_wanted - 1, 1) for i in range(n_wanted)}) if n else []


def summarize_buffer(file: Container, buffer: TraceBuffer, threads: int = 0) -> Summary:
    """Count all records of a ring buffer; damage is reported to the file."""
    names = names_by_id(file)
    places = (_PID.search(text) for _, text in file.formats)
    pid_at = next((int(place[1]) for place in places if place is not None), None)
    parts = count_records(buffer.cpus, threads or n_threads(), pid_at)
    # Pages that go back in time are reported, too.
    known = cpus_in_order(parts)
    replace(buffer, cpus=tuple(cpu for cpu in buffer.cpus if cpu.cpu not in known)).in_order()
    by_id = count_by_id(parts)
    events = {names.get(number, unknown_name(number)): n for number, n in by_id.items() if number != NO_ID}
    cpus = (_cpu_summary(n, [p for p in parts if p.cpu == n]) for n in sorted({p.cpu for p in parts}))
    return Summary(dict(sorted(events.items())), tuple(cpus), sum_counts(part.by_task for part in parts))


def _cpu_summary(cpu: int, parts: list[PartCounts]) -> CpuSummary:
    blocks = [block for part in parts for block in part.found if block.first <= block.last]
    losses = [head.lost for part in parts for block in part.found for head in block.heads]
    lost = reduce(add_lost, losses, 0)
    n_records = sum(n for part in parts for number, n in part.by_id.items() if number != NO_ID)
    first, last = min((b.first for b in blocks), default=0), max((b.last for b in blocks), default=0)
    return CpuSummary(cpu, n_records, lost, first, last)
