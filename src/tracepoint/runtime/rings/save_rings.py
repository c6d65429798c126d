"""Ring files of several processes as one trace.dat: a server with its workers, or who was killed.

Event numbers differ from process to process.  In the file a number identifies one format: records of
events that have the same name and the same fields get the same one.
"""

from __future__ import annotations

import heapq
import io
import os
import warnings
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tracepoint.errors import LossWarning, TracepointError
from tracepoint.layout.format import EventFormat, write_format
from tracepoint.record.layout import PageLayout
from tracepoint.record.write import PageWriter
from tracepoint.runtime.files.state import count_possible_cpus
from tracepoint.runtime.files.texts import OWN_EVENTS
from tracepoint.runtime.files.trace import counts_text
from tracepoint.runtime.hierarchy import FIRST_ID
from tracepoint.runtime.rings.ring import ring_records
from tracepoint.runtime.rings.symbols import marker_text
from tracepoint.tracefile.compression import default_compression
from tracepoint.tracefile.content import BufferContent, CpuPages, TraceContent
from tracepoint.tracefile.options import OptionId, text_option
from tracepoint.tracefile.recording import CpuStats, Recording, stats_options
from tracepoint.tracefile.write import write_tracedat

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tracepoint.record.raw import RawRecord
    from tracepoint.runtime.rings.files import MappedRing, RingFiles

LOSSES = ("overrun", "commit_overrun", "dropped")


def save_rings(rings: RingFiles, path: Path, *, version: int, compression: str) -> Recording:
    """Save all rings of a directory as trace.dat; see `MappedRings.save`."""
    if version not in (6, 7):
        raise TracepointError(f"trace.dat has the versions 6 and 7, not {version}")
    if path.suffix == ".txt":
        raise TracepointError(
            f"{path}: rings of several processes are saved as trace.dat only; give another name, and "
            "`tracepoint read` prints the text"
        )
    merged = _Merged(rings)
    pages, n_records = merged.lay_out()
    counts = merged.counts()
    host = " ".join(os.uname())
    texts = {cpu: counts_text(counts.get(cpu, {}), merged.clock, merged.now) for cpu in pages}
    content = TraceContent(
        (BufferContent(tuple(CpuPages(n, (data,)) for n, data in pages.items()), "", merged.clock),),
        tuple((form.system, write_format(form)) for form in (*OWN_EVENTS, *merged.formats)),
        kallsyms=marker_text(),
        saved_cmdlines="".join(f"{ring.tid} {ring.comm}\n" for ring in rings.rings),
        saved_tgids="".join(f"{ring.tid} {ring.pid}\n" for ring in rings.rings),
        options=(text_option(OptionId.UNAME, host), *stats_options(texts)),
        n_cpus=max(pages) + 1,
    )
    stream = io.BytesIO()
    write_tracedat(stream, content, version, compression or default_compression(version))
    path.write_bytes(stream.getvalue())
    cpus = (_cpu_stats(cpu, len(data), n_records[cpu], counts.get(cpu, {})) for cpu, data in pages.items())
    saved = Recording(path, tuple(cpus))
    if problems := "; ".join(filter(None, (saved.missing, merged.damage_text()))):
        warnings.warn(f"{path}: {problems}", LossWarning, stacklevel=3)
    return saved


def _cpu_stats(cpu: int, n_bytes: int, n_records: int, counts: dict[str, int]) -> CpuStats:
    overrun = counts.get("overrun", 0) + counts.get("commit_overrun", 0)
    return CpuStats(cpu, n_bytes // PageLayout().page_size, n_records, overrun, counts.get("dropped", 0))


@dataclass
class _Merged:
    """The rings under one set of event numbers.

    `formats` are the events with their new numbers; `now` is the time of the last record.
    """

    rings: RingFiles
    formats: list[EventFormat] = field(default_factory=list)
    now: int = 0
    _numbers: dict[int, dict[int, int]] = field(default_factory=dict)
    _first_cpu: dict[Path, int] = field(default_factory=dict)
    _unknown: int = 0

    def __post_init__(self) -> None:
        known: dict[tuple[str, str], int] = {}
        own = {form.id: form.id for form in OWN_EVENTS}
        for pid, layouts in self.rings.formats.items():
            self._numbers[pid] = dict(own)
            for number, layout in layouts.items():
                bare = replace(layout, id=0)
                key = (layout.system, write_format(bare))
                if key not in known:
                    known[key] = FIRST_ID + len(known)
                    self.formats.append(replace(layout, id=known[key]))
                self._numbers[pid][number] = known[key]

    @property
    def clock(self) -> str:
        """The clock of all rings; raises TracepointError where they have several."""
        clocks = sorted({ring.clock for ring in self.rings.rings})
        if len(clocks) > 1:
            raise TracepointError(
                f"{self.rings.directory}: the rings have the clocks {', '.join(clocks)}, whose times do not "
                "belong in one file"
            )
        return clocks[0] if clocks else "local"

    def lay_out(self) -> tuple[dict[int, bytes], dict[int, int]]:
        """Return the pages of each CPU in the order of time, and how many records those hold."""
        writers = {cpu: PageWriter(PageLayout()) for cpu in range(count_possible_cpus())}
        n_records = dict.fromkeys(writers, 0)
        for record in heapq.merge(*map(self._records, self.rings.rings), key=lambda r: r.timestamp):
            writer = writers.setdefault(record.cpu, PageWriter(PageLayout()))
            if record.lost:
                writer.lose(record.lost)
            writer.add(record.timestamp, record.data)
            n_records[record.cpu] = n_records.get(record.cpu, 0) + 1
        return {cpu: writer.pages() for cpu, writer in sorted(writers.items())}, n_records

    def _records(self, ring: MappedRing) -> Iterator[RawRecord]:
        numbers = self._numbers.get(ring.pid, {})
        for record in ring_records(ring.pages):
            number = numbers.get(record.id())
            if number is None:
                self._unknown += 1
                continue
            self.now = max(self.now, record.timestamp)
            self._first_cpu.setdefault(ring.path, record.cpu)
            yield record._replace(data=number.to_bytes(2, "little") + record.data[2:])

    def counts(self) -> dict[int, dict[str, int]]:
        """Return the counts of the rings, those of each under the CPU of its first record."""
        found: dict[int, dict[str, int]] = {}
        for ring in self.rings.rings:
            mine = found.setdefault(self._first_cpu.get(ring.path, 0), {})
            for name in (*LOSSES, "entries", "bytes", "read"):
                mine[name] = mine.get(name, 0) + ring.stats.get(name, 0)
        return found

    def damage_text(self) -> str:
        """Say what could not be read; empty when all could."""
        told = [f"{name}: {reason}" for name, reason in self.rings.damage[:3]]
        if len(self.rings.damage) > len(told):
            told.append(f"{len(self.rings.damage) - len(told)} more files")
        if self._unknown:
            told.append(f"{self._unknown} records of events that have no format")
        return "; ".join(told)
