"""The rings of Python processes as a recording: those in a folder, or those that a running process maps.

Event numbers differ from process to process.  Here a number identifies one format: records of events that
have the same name and the same fields get the same one.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tracepoint.errors import DecodeError
from tracepoint.layout.format import write_format
from tracepoint.layout.process_events import ADDRESS_STEP, FIRST_ID, MARK_ADDRESS, OWN_EVENTS
from tracepoint.named import NamedTuple
from tracepoint.record.layout import header_page_text
from tracepoint.record.pages import ring_records
from tracepoint.tracefile.container import Parts, PartsContainer
from tracepoint.tracefile.content import TraceContent
from tracepoint.tracefile.damage import Damage
from tracepoint.tracefile.recording import CpuStats, stats_options
from tracepoint.tracefile.ringfiles import read_ring_files, rings_mapped_by
from tracepoint.tracefile.spool import PageSpool, spool_layout
from tracepoint.tracefile.statstext import counts_text
from tracepoint.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tracepoint.layout.format import EventFormat
    from tracepoint.record.layout import PageLayout
    from tracepoint.record.raw import RawRecord
    from tracepoint.tracefile.container import DamageLog
    from tracepoint.tracefile.cpudata import Report
    from tracepoint.tracefile.filebytes import Bytes
    from tracepoint.tracefile.ringfiles import MappedRing, RingFiles

_N_IDS = 1 << 16
_COUNTS = ("overrun", "commit_overrun", "dropped", "entries", "bytes", "read")
# The one name that all processes have at the same address, and where it ends.
_NAMES = f"{MARK_ADDRESS:016x} t tracing_mark_write\n{MARK_ADDRESS + ADDRESS_STEP:016x} t _end_of_names\n"


def open_ring_folder(folder: Path, log: DamageLog, pid: int | None = None, clock: str = "") -> PartsContainer:
    """Read the rings of a folder as they are now, those of all processes or of one.

    Where a `clock` is given, rings with another are left out, and reported.
    Raises OSError, and DecodeError without the C core and where rings have several clocks.
    """
    opened: list[Bytes] = []
    files = read_ring_files(folder, pid)
    if clock:
        for ring in files.rings:
            if ring.clock != clock:
                log.report(Damage(None, 0, f"{ring.path.name}: its clock is {ring.clock}, not {clock}"))
        files = files._replace(rings=tuple(ring for ring in files.rings if ring.clock == clock))
    made = merge_rings(files, spool_layout(), log.report, opened)
    form = "rings of Python processes" if pid is None else f"rings of the Python process {pid}"
    return PartsContainer(str(folder), form, lambda _: made.parts, opened, log)


def open_process(pid: int, log: DamageLog) -> PartsContainer:
    """Read the rings that a running process maps, as they are now; the process may be stopped.

    Raises DecodeError for a process whose rings are not in files of one directory.
    """
    name = f"pid:{pid}"
    try:
        folders = rings_mapped_by(pid)
    except (FileNotFoundError, ProcessLookupError):
        raise DecodeError("no such process", name) from None
    except PermissionError:
        raise DecodeError("the process belongs to another user", name) from None
    if not folders:
        raise DecodeError(
            "the process has no rings in files: start it with TRACEPOINT_DIRECTORY=DIRECTORY; what a process "
            f"keeps in its own memory is saved by `tracepoint ps --pid {pid} --record FILE`",
            name,
        )
    if len(folders) > 1:
        words = ", ".join(map(str, folders))
        raise DecodeError(f"the process has rings in several directories; open one of {words}", name)
    return open_ring_folder(folders[0], log, pid)


class MergedRings(NamedTuple):
    """Rings as a recording, and what each CPU recorded and lost."""

    parts: Parts
    cpus: tuple[CpuStats, ...]


def merge_rings(files: RingFiles, layout: PageLayout, report: Report, opened: list[Bytes]) -> MergedRings:
    """Write the records of rings into pages of each CPU by time; what is open is added to `opened`.

    What a ring lost counts for the CPU of its first record.  Raises DecodeError for several clocks.
    """
    for name, reason in files.damage:
        report(Damage(None, 0, f"{name}: {reason}"))
    merging = _Merging(files)
    clock = merging.clock
    spool = PageSpool(layout, report)
    n_records: dict[int, int] = {}
    for record in heapq.merge(*map(merging.records, files.rings), key=lambda r: r.timestamp):
        spool.lose(record.cpu, record.timestamp, record.lost)
        spool.add(record.cpu, record.timestamp, record.data)
        n_records[record.cpu] = n_records.get(record.cpu, 0) + 1
    if merging.n_unknown:
        n_unknown = counted(merging.n_unknown, "record")
        report(Damage(None, 0, f"{n_unknown} of events that have no format"))
    buffer = spool.finish(opened, clock)
    counts = merging.counts()
    n_pages = {cpu.cpu: cpu.size // layout.page_size for cpu in buffer.cpus}
    shown = sorted(n_pages.keys() | counts.keys())
    texts = {cpu: counts_text(counts.get(cpu, {}), clock, merging.now) for cpu in shown}
    content = TraceContent(
        (),
        tuple((form.system, write_format(form)) for form in (*OWN_EVENTS, *merging.formats)),
        header_page_text(layout),
        kallsyms=_NAMES,
        saved_cmdlines="".join(f"{ring.tid} {ring.comm}\n" for ring in files.rings),
        saved_tgids="".join(f"{ring.tid} {ring.pid}\n" for ring in files.rings),
        options=stats_options(texts),
        n_cpus=1 + max(shown, default=0),
        page_size=layout.page_size,
    )
    cpus = (_cpu_stats(n, n_pages.get(n, 0), n_records.get(n, 0), counts.get(n, {})) for n in shown)
    return MergedRings(Parts(content, (buffer,)), tuple(cpus))


def _cpu_stats(cpu: int, n_pages: int, n_records: int, counts: dict[str, int]) -> CpuStats:
    overrun = counts.get("overrun", 0) + counts.get("commit_overrun", 0)
    return CpuStats(cpu, n_pages, n_records, overrun, counts.get("dropped", 0))


@dataclass
class _Merging:
    """Rings under one set of event numbers.

    `formats` are the events with their new numbers; `now` is the time of the last record, `n_unknown` the
    number of records whose event has no format.
    """

    files: RingFiles
    formats: list[EventFormat] = field(default_factory=list)
    now: int = 0
    n_unknown: int = 0
    _numbers: dict[int, dict[int, int]] = field(default_factory=dict)
    _first_cpu: dict[Path, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known: dict[tuple[str, str], int] = {}
        own = {form.id: form.id for form in OWN_EVENTS}
        for pid, layouts in self.files.formats.items():
            self._numbers[pid] = dict(own)
            for number, layout in layouts.items():
                key = (layout.system, write_format(replace(layout, id=0)))
                if key not in known and FIRST_ID + len(known) < _N_IDS:
                    known[key] = FIRST_ID + len(known)
                    self.formats.append(replace(layout, id=known[key]))
                if key in known:
                    self._numbers[pid][number] = known[key]

    @property
    def clock(self) -> str:
        """The clock of all rings; raises DecodeError where they have several."""
        clocks = sorted({ring.clock for ring in self.files.rings})
        if len(clocks) > 1:
            raise DecodeError(
                f"the rings have the clocks {', '.join(clocks)}, whose times do not belong in one file",
                str(self.files.directory),
            )
        return clocks[0] if clocks else "local"

    def records(self, ring: MappedRing) -> Iterator[RawRecord]:
        """Yield the records of a ring whose events are known, with their new numbers."""
        numbers = self._numbers.get(ring.pid, {})
        for record in ring_records(ring.pages):
            number = numbers.get(record.id())
            if number is None:
                self.n_unknown += 1
                continue
            self.now = max(self.now, record.timestamp)
            self._first_cpu.setdefault(ring.path, record.cpu)
            yield record._replace(data=number.to_bytes(2, "little") + record.data[2:])

    def counts(self) -> dict[int, dict[str, int]]:
        """Return the counts of the rings, those of each under the CPU of its first record."""
        found: dict[int, dict[str, int]] = {}
        for ring in self.files.rings:
            mine = found.setdefault(self._first_cpu.get(ring.path, 0), {})
            for name in _COUNTS:
                mine[name] = mine.get(name, 0) + ring.stats.get(name, 0)
        return found
