"""Records of all CPUs, in the order a file has them, written into pages of each CPU: `PageSpool`.

What is not kept in pages (perf.data, text, CTF) becomes pages once, in bounded memory: those of a CPU with
many go to a temporary file, which is then read as a part of a trace.dat is.
"""

from __future__ import annotations

import tempfile
from typing import IO, TYPE_CHECKING

from tracepoint.filter.numbers import MAX_CPUS
from tracepoint.record.layout import PageLayout
from tracepoint.record.write import PageWriter
from tracepoint.tracefile.buffers import TraceBuffer
from tracepoint.tracefile.cpudata import CpuData
from tracepoint.tracefile.damage import Damage
from tracepoint.tracefile.filebytes import file_bytes

if TYPE_CHECKING:
    from tracepoint.tracefile.cpudata import Report
    from tracepoint.tracefile.filebytes import Bytes

# Holds the longest record of perf: include/linux/perf_event.h, PERF_MAX_TRACE_SIZE.
_PAGE_BYTES = 1 << 14
_KEPT_BYTES = 1 << 20
_LONGEST_WAIT = 1 << 15


def spool_layout(*, long_size: int = 8, is_big_endian: bool = False) -> PageLayout:
    """Return the layout of the pages that records are written into."""
    return PageLayout(8 + long_size, _PAGE_BYTES - 8 - long_size, 8, long_size, is_big_endian)


class _CpuSpool:
    """The pages of one CPU: the last ones in memory, the others in a file once there are many."""

    def __init__(self, layout: PageLayout) -> None:
        self.writer = PageWriter(layout)
        self.waiting: list[tuple[int, int, bytes]] = []
        self._pages: list[bytes] = []
        self._kept = 0
        self._file: IO[bytes] | None = None

    def drain(self) -> None:
        """Take what the writer has finished."""
        pages = self.writer.take()
        self._pages.append(pages)
        self._kept += len(pages)
        if self._kept >= _KEPT_BYTES:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="tracepoint-")  # noqa: SIM115 - until finish()
            self._file.write(b"".join(self._pages))
            self._pages, self._kept = [], 0

    def finish(self) -> Bytes:
        """Return all pages; losses after the last record are on pages without data."""
        data = b"".join((*self._pages, self.writer.pages()))
        if self._file is None:
            return data
        with self._file as file:
            file.write(data)
            file.flush()
            return file_bytes(file)


class PageSpool:
    """Writes records into pages of each CPU; they may come a little out of order.

    A CPU's records wait until `advance` says that no earlier ones come, or until there are many.
    """

    def __init__(self, layout: PageLayout, report: Report) -> None:
        self.layout = layout
        self._report = report
        self._cpus: dict[int, _CpuSpool] = {}
        self._n_left_out = 0

    def _cpu(self, cpu: int) -> _CpuSpool | None:
        found = self._cpus.get(cpu)
        if found is None:
            if not 0 <= cpu < MAX_CPUS:
                self._n_left_out += 1
                return None
            found = self._cpus[cpu] = _CpuSpool(self.layout)
        return found

    def add(self, cpu: int, stamp: int, payload: bytes) -> None:
        """Add a record of a CPU at an absolute time."""
        found = self._cpu(cpu)
        if found is not None:
            found.waiting.append((stamp, 0, payload))
            if len(found.waiting) > _LONGEST_WAIT:
                self._write(found, len(found.waiting) // 2)

    def lose(self, cpu: int, stamp: int, n_events: int) -> None:
        """Say that a CPU lost events before a time; LOST_UNKNOWN: not known how many."""
        found = self._cpu(cpu)
        if found is not None and n_events:
            found.waiting.append((stamp, n_events, b""))

    def advance(self, stamp: int) -> None:
        """Say that all records up to a time have been added."""
        for found in self._cpus.values():
            waiting = found.waiting
            if waiting and waiting[0][0] <= stamp:
                waiting.sort(key=_time_of)
                n_ready = next((i for i, one in enumerate(waiting) if one[0] > stamp), len(waiting))
                self._write(found, n_ready, is_sorted=True)

    def _write(self, found: _CpuSpool, n_records: int, *, is_sorted: bool = False) -> None:
        if not is_sorted:
            found.waiting.sort(key=_time_of)
        writer = found.writer
        for stamp, n_lost, payload in found.waiting[:n_records]:
            if n_lost:
                writer.lose(n_lost)
                continue
            try:
                writer.add(stamp, payload)
            except ValueError:
                self._n_left_out += 1
        del found.waiting[:n_records]
        found.drain()

    def finish(self, opened: list[Bytes], clock: str) -> TraceBuffer:
        """Return all that was added as a ring buffer; what is open is added to `opened`."""
        cpus = []
        for cpu, found in sorted(self._cpus.items()):
            found.waiting.sort(key=_time_of)
            n_records = 1 + max((n for n, one in enumerate(found.waiting) if not one[1]), default=-1)
            self._write(found, n_records, is_sorted=True)
            for stamp, n_lost, _ in found.waiting:
                found.writer.lose_apart(stamp, n_lost)
            data = found.finish()
            opened.append(data)
            cpus.append(CpuData(cpu, 0, len(data), self.layout, data, None, self._report))
        self._cpus = {}
        if self._n_left_out:
            reason = f"{self._n_left_out} records of impossible CPUs or sizes were left out"
            self._report(Damage(None, 0, reason))
        return TraceBuffer("", clock, tuple(cpus))


def _time_of(record: tuple[int, int, bytes]) -> int:
    return record[0]
