"""A folder of CTF 1.8 as a recording: one trace, or the session of LTTng with several below it.

An event `provider:name` is of the system `provider`, as LTTng-UST, perf and we name events; others are of the
system that the tracer has the name of: `lttng`, `barectf`, else `ctf`.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from heapq import heappop, heappush
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.errors import DecodeError
from tracepoint.layout.format import write_format
from tracepoint.named import NamedTuple
from tracepoint.record.layout import header_page_text
from tracepoint.tracefile.container import Parts, PartsContainer
from tracepoint.tracefile.content import TraceContent
from tracepoint.tracefile.ctf.classes import StreamReader, TraceReader
from tracepoint.tracefile.ctf.grammar import read_tsdl
from tracepoint.tracefile.ctf.records import EventRecords
from tracepoint.tracefile.ctf.scopes import (
    EVENT_CONTEXT,
    EVENT_HEADER,
    FIELDS,
    HEADER,
    PACKET_CONTEXT,
    STREAM_CONTEXT,
    CtfScope,
)
from tracepoint.tracefile.ctf.stream import CtfRecord, StreamCounts, StreamFile
from tracepoint.tracefile.ctf.tasks import TaskFields, TaskTable
from tracepoint.tracefile.ctf.tokens import is_metadata, metadata_text
from tracepoint.tracefile.damage import Damage
from tracepoint.tracefile.filebytes import close_bytes, open_bytes
from tracepoint.tracefile.options import OptionId, text_option
from tracepoint.tracefile.spool import PageSpool, spool_layout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.layout.format import EventFormat
    from tracepoint.tracefile.container import DamageLog
    from tracepoint.tracefile.cpudata import Report
    from tracepoint.tracefile.ctf.classes import ReadEvent
    from tracepoint.tracefile.ctf.metadata import CtfEvent, CtfMetadata, CtfStream
    from tracepoint.tracefile.filebytes import Bytes

METADATA = "metadata"
# A session has ust/uid/1000/64-bit, below archives/NAME when it was rotated.
# What LTTng's sessions have whose traces are deeper: ust/uid/1000/64-bit, archives/…/kernel.
_SESSION_FOLDER = re.compile(r"ust|archives|snapshot-.*")
_MAX_DEPTH = 7
_MAX_FOLDERS = 1 << 14
_MAX_NUMBER = 0xFFFF
MIN_TIME, MAX_TIME = -(1 << 63), (1 << 63) - 1
_HEAD = 16
# Each of its fragments of JSON begins so: RFC 7464.
_CTF2_MARK = b"\x1e"
_TRACERS = re.compile(r"[a-z]+", re.ASCII)
_KNOWN_TRACERS = ("lttng", "barectf")
_NOT_IN_NAMES = re.compile(r"[\s:/]")


def ctf_folders(folder: Path, *, is_deep: bool) -> list[Path]:
    """Return the folders with CTF metadata: the folder itself, or where `is_deep` those of a session.

    They are sub-folders, or below the sub-folders in which LTTng's sessions have deeper ones.
    """
    if _has_metadata(folder) or not is_deep:
        return [folder] if _has_metadata(folder) else []
    found = []
    for n_folders, (top, folders, _) in enumerate(os.walk(folder)):
        folders.sort()
        parts = Path(top).relative_to(folder).parts
        is_of_session = not parts or _SESSION_FOLDER.fullmatch(parts[0]) is not None
        if n_folders > _MAX_FOLDERS or len(parts) >= _MAX_DEPTH or not is_of_session:
            folders.clear()
        if _has_metadata(Path(top)):
            found.append(Path(top))
            folders.clear()
    return found


def _has_metadata(folder: Path) -> bool:
    path = folder / METADATA
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if head.startswith(_CTF2_MARK):
        raise DecodeError("CTF 2 is not read yet, CTF 1.8 is", str(path))
    return is_metadata(head)


def open_ctf(folder: Path, folders: list[Path], log: DamageLog) -> PartsContainer:
    """Open the traces in `folders`, which are in `folder`.

    Raises DecodeError when the metadata of none can be read, and OSError.
    """
    traces, faults = [], []
    for place in folders:
        try:
            traces.append((place, _read_metadata(place, log.report)))
        except DecodeError as error:
            faults.append(error)
    if not traces:
        raise faults[0]
    for fault in faults:
        log.report(Damage(None, fault.offset or 0, f"{fault.path}: {fault.reason}"))
    opened: list[Bytes] = []

    def load(report: Report) -> Parts:
        return _Session(traces, opened, report).load()

    return PartsContainer(str(folder), "CTF 1.8", load, opened, log)


def _read_metadata(folder: Path, report: Report) -> CtfMetadata:
    path = folder / METADATA
    data = open_bytes(path, report)
    try:
        found = read_tsdl(metadata_text(data, str(path), report), str(path))
    finally:
        close_bytes(data)
    for clock in found.clocks.values():
        if not MIN_TIME <= clock.origin_ns <= MAX_TIME:
            reason = f"the clock {clock.name[:80]} begins at a time that no record holds: it counts from 1970"
            report(Damage(None, 0, reason))
            clock.offset = clock.offset_s = 0
    return found


class _Waiting(NamedTuple):
    """A stream that has records: `order` decides between equal times."""

    stamp: int
    order: int
    record: CtfRecord
    others: Iterator[CtfRecord]


class _Session:
    """Some traces while they are read into one ring buffer."""

    def __init__(self, traces: list[tuple[Path, CtfMetadata]], opened: list[Bytes], report: Report) -> None:
        self._traces = traces
        self._opened = opened
        self._report = report
        self._is_big_endian = traces[0][1].is_big_endian
        self._spool = PageSpool(spool_layout(is_big_endian=self._is_big_endian), report)
        self._tasks = TaskTable()
        self._formats: dict[tuple[str, str], EventFormat] = {}
        self._numbers: set[int] = set()

    def load(self) -> Parts:
        files = [file for folder, metadata in self._traces for file in self._files(folder, metadata)]
        for record in _by_time(files):
            if record.lost:
                self._spool.lose(record.cpu, record.stamp, record.lost)
            self._spool.add(record.cpu, record.stamp, record.data)
        clocks = [clock for _, metadata in self._traces for clock in metadata.clocks]
        buffer = self._spool.finish(self._opened, next(iter(clocks), ""))
        layout = self._spool.layout
        formats = ((form.system, write_format(form)) for form in self._formats.values())
        content = TraceContent(
            (),
            tuple(formats),
            header_page_text(layout),
            saved_cmdlines=self._tasks.comm_lines(),
            saved_tgids=self._tasks.process_lines(),
            options=tuple(text_option(OptionId.UNAME, text) for text in self._machine()),
            n_cpus=max((cpu.cpu + 1 for cpu in buffer.cpus), default=1),
            is_big_endian=self._is_big_endian,
            long_size=layout.long_size,
            page_size=layout.page_size,
        )
        return Parts(content, (buffer,))

    def _machine(self) -> Iterator[str]:
        """Yield the words of uname, of the first trace that says them."""
        for _, metadata in self._traces:
            env = {name: str(value) for name, value in metadata.env.items()}
            if "kernel_release" in env:
                words = [env.get(word) or "-" for word in ("sysname", "hostname", "kernel_release")]
                words += [env[word] for word in ("kernel_version", "machine") if env.get(word)]
                yield " ".join(words).replace("\n", " ")
                return

    def _files(self, folder: Path, metadata: CtfMetadata) -> list[StreamFile]:
        """Return the streams of a trace."""
        try:
            needed: set[tuple[str, ...]] = set()
            streams = {
                number: StreamReader(metadata, stream, self._events(metadata, stream, needed), needed)
                for number, stream in metadata.streams.items()
            }
            trace = TraceReader(metadata, streams, needed)
        except DecodeError as error:
            self._report(Damage(None, 0, f"{folder}: {error.reason}"))
            return []
        paths = [path for path in sorted(folder.iterdir()) if path.name != METADATA and path.is_file()]
        paths = [path for path in paths if not path.name.startswith(".")]
        counts: dict[tuple[StreamReader, int], StreamCounts] = {}
        return [StreamFile(path, trace, counts, cpu, self._report) for cpu, path in enumerate(paths)]

    def _events(
        self, metadata: CtfMetadata, stream: CtfStream, needed: set[tuple[str, ...]]
    ) -> dict[int, ReadEvent]:
        """Return what reads the events of a class of streams; one that cannot be read is reported."""
        found = {}
        for number, event in stream.events.items():
            try:
                found[number] = self._reader(metadata, stream, event, needed)
            except DecodeError as error:
                self._report(Damage(None, 0, f"the event {event.name[:80]!r} cannot be read: {error.reason}"))
        return found

    def _reader(
        self, metadata: CtfMetadata, stream: CtfStream, event: CtfEvent, needed: set[tuple[str, ...]]
    ) -> ReadEvent:
        scope = CtfScope(
            {
                HEADER: metadata.packet_header,
                PACKET_CONTEXT: stream.packet_context,
                EVENT_HEADER: stream.event_header,
                STREAM_CONTEXT: stream.event_context,
                EVENT_CONTEXT: event.context,
                FIELDS: event.fields,
            }
        )
        plan = EventRecords(
            scope,
            TaskFields(scope, self._tasks),
            is_big_endian=self._is_big_endian,
            is_trace_big_endian=metadata.is_big_endian,
        )
        plan.build((stream.event_context, event.context), event.fields)
        needed |= {target for path, target in scope.targets.items() if path[0] == "event"}
        needed |= {target for path, target in scope.targets.items() if path[:3] == STREAM_CONTEXT}
        return plan.reader(self._number(plan.format(*_names(metadata, event)), event.id or 0))

    def _number(self, form: EventFormat, wanted: int) -> int:
        """Return the number of an event: its own where that is free.

        Events of one name and format share it; of another format, they have names that end in `_2`, `_3`, ….
        """
        name, n_same = form.name, 1
        while (known := self._formats.get((form.system, name))) is not None:
            if replace(known, name=form.name, id=0) == form:
                return known.id
            n_same += 1
            name = f"{form.name}_{n_same}"
        if not 0 < wanted <= _MAX_NUMBER or wanted in self._numbers:
            wanted = next((n for n in range(1, _MAX_NUMBER + 1) if n not in self._numbers), 0)
        if not wanted:
            raise DecodeError(f"more than {_MAX_NUMBER:,} events")
        self._numbers.add(wanted)
        self._formats[form.system, name] = replace(form, name=name, id=wanted)
        return wanted


def _names(metadata: CtfMetadata, event: CtfEvent) -> tuple[str, str]:
    """Return the system and the name of an event."""
    system, colon, name = event.name.partition(":")
    if not colon:
        tracer = _TRACERS.match(str(metadata.env.get("tracer_name", "")))
        is_known = tracer is not None and tracer[0] in _KNOWN_TRACERS
        system, name = tracer[0] if tracer and is_known else "ctf", event.name
    return _NOT_IN_NAMES.sub("_", system) or "ctf", _NOT_IN_NAMES.sub("_", name) or "event"


def _by_time(files: list[StreamFile]) -> Iterator[CtfRecord]:
    """Yield the records of all files by time; a file is open from its first packet to its last."""
    begins = ((file.begin(), file) for file in files)
    coming = sorted(((at, n, file) for n, (at, file) in enumerate(begins) if at is not None), reverse=True)
    heap: list[_Waiting] = []
    while heap or coming:
        while coming and (not heap or coming[-1][0] <= heap[0].stamp):
            _, order, file = coming.pop()
            _wait(heap, order, file.records())
        if not heap:
            continue
        _, order, record, others = heappop(heap)
        yield record
        # Streams have many records between those of others.
        limit = min([one.stamp for one in heap[:1]] + [begin for begin, *_ in coming[-1:]], default=MAX_TIME)
        for record in others:
            if record.stamp >= limit:
                heappush(heap, _Waiting(record.stamp, order, record, others))
                break
            yield record


def _wait(heap: list[_Waiting], order: int, records: Iterator[CtfRecord]) -> None:
    record = next(records, None)
    if record is not None:
        heappush(heap, _Waiting(record.stamp, order, record, records))
