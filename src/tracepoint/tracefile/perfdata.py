"""perf.data, in file and pipe mode: the samples of tracepoints, written into pages of each CPU.

The raw data of a sample is the record that the kernel's own ring buffer would hold.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.errors import DecodeError
from tracepoint.record.layout import HEADER_EVENT, header_page_text
from tracepoint.tracefile import sections
from tracepoint.tracefile.container import Parts, PartsContainer
from tracepoint.tracefile.content import TraceContent
from tracepoint.tracefile.cursor import Cursor
from tracepoint.tracefile.damage import Damage
from tracepoint.tracefile.folder import find_formats
from tracepoint.tracefile.head import MAGIC, PERF_MAGICS
from tracepoint.tracefile.options import OptionId, text_option
from tracepoint.tracefile.perfrecords import (
    TRACEPOINT,
    Attr,
    RecordReader,
    RecordType,
    Sample,
    raw_place,
    read_attr,
    trailer_places,
)
from tracepoint.tracefile.spool import PageSpool, spool_layout

if TYPE_CHECKING:
    from tracepoint.tracefile.container import DamageLog
    from tracepoint.tracefile.cpudata import Report
    from tracepoint.tracefile.filebytes import Bytes
    from tracepoint.tracefile.options import Option
    from tracepoint.tracefile.perfrecords import PerfRecord

_PIPE_SIZE = 16
_FILE_SIZE = 104
_IDS_ENTRY = 16
_N_FEATURES = 256
_FEATURE_TRACING_DATA, _FEATURE_HOSTNAME, _FEATURE_RELEASE, _FEATURE_NRCPUS = 1, 3, 4, 7
# Those of the kernel and of perf.
_N_KINDS = 128
_MAX_ATTRS = 1 << 16
_MAX_IDS = 1 << 22
# The head, pid and tid before the name of a task.
_COMM_AT = 16


def open_perfdata(data: Bytes, path: str, log: DamageLog) -> PartsContainer:
    """Open a perf.data; raises DecodeError when its head cannot be read."""
    is_big = bytes(data[:8]) == PERF_MAGICS[1]
    size = Cursor(data, 8, big=is_big, path=path).u64()
    if size != _PIPE_SIZE and (size < _FILE_SIZE or len(data) < _FILE_SIZE):
        raise DecodeError(f"a perf.data with a head of {size} bytes", path, 8)
    opened = [data]

    def load(report: Report) -> Parts:
        return _PerfData(data, path, opened, report, is_big_endian=is_big).load()

    return PartsContainer(path, "perf.data", load, opened, log)


@dataclass(slots=True)
class _TracingData:
    """The formats and names that perf saved: a trace.dat of a version of its own, without pages."""

    long_size: int = 8
    formats: tuple[tuple[str, str], ...] = ()
    kallsyms: str = ""
    printk_formats: str = ""
    saved_cmdlines: str = ""
    is_found: bool = field(default=False, repr=False)


def _read_tracing_data(data: bytes, path: str, report: Report) -> _TracingData:
    found = _TracingData()
    cursor = Cursor(data, path=path)
    try:
        if cursor.take(len(MAGIC)) != MAGIC:
            raise cursor.error("not the data of tracepoints")
        version = cursor.c_string("the version", 16)
        is_big, long_size = cursor.take(2)
        if long_size not in (4, 8):
            raise cursor.error(f"a long of {long_size} bytes")
        found.long_size = long_size
        cursor = Cursor(data, cursor.at + 4, big=is_big == 1, path=path)
        sections.read_header_info(cursor)
        found.is_found = True
        found.formats = tuple(sections.read_ftrace_formats(cursor))
        found.formats += tuple(sections.read_system_formats(cursor))
        found.kallsyms = sections.read_sized(cursor, "kallsyms", is_wide=False)
        found.printk_formats = sections.read_sized(cursor, "printk_formats", is_wide=False)
        if version not in ("0.3", "0.4", "0.5"):
            found.saved_cmdlines = sections.read_sized(cursor, "saved_cmdlines", is_wide=True)
    except DecodeError as error:
        report(Damage(None, error.offset or 0, f"the data of tracepoints: {error.reason}"))
    return found


class _PerfData:
    """A perf.data while it is read."""

    def __init__(
        self, data: Bytes, path: str, opened: list[Bytes], report: Report, *, is_big_endian: bool
    ) -> None:
        self._data = data
        self._path = path
        self._opened = opened
        self._report = report
        self._is_big_endian = is_big_endian
        self._order = ">" if is_big_endian else "<"
        self._pair = struct.Struct(self._order + "II")
        self._long = struct.Struct(self._order + "Q")
        self._word = struct.Struct(self._order + "I")
        self._attrs: list[Attr] = []
        self._by_id: dict[int, Attr] = {}
        self._only: Attr | None = None
        self._texts: dict[int, str] = {}
        self._n_cpus = 0
        self._tracing = _TracingData()
        self._spool = PageSpool(spool_layout(is_big_endian=is_big_endian), report)
        self._comms: dict[int, str] = {0: "swapper"}
        self._tgids: dict[int, int] = {}
        self._latest = self._before = 0
        self._left_out: dict[str, int] = {}

    def load(self) -> Parts:
        start, end = self._read_head()
        for record in RecordReader(self._data, start, end, self._report, is_big_endian=self._is_big_endian):
            try:
                self._take(record)
            except (struct.error, DecodeError) as error:
                self._leave_out(f"damaged records ({error})")
        for what, n_records in self._left_out.items():
            self._report(Damage(None, start, f"{n_records} {what} were left out"))
        clock = next((attr.clock for attr in self._attrs if attr.type == TRACEPOINT), "perf")
        buffer = self._spool.finish(self._opened, clock)
        return Parts(self._content(max((cpu.cpu + 1 for cpu in buffer.cpus), default=1)), (buffer,))

    def _content(self, n_cpus: int) -> TraceContent:
        tracing = self._tracing
        formats = tracing.formats
        has_tracepoints = any(attr.type == TRACEPOINT for attr in self._attrs)
        if has_tracepoints and not tracing.is_found and self._path not in ("", "-"):
            folder = Path(self._path).absolute().parent
            formats = tuple(find_formats((folder, folder.parent), self._report))
        saved = {tid: name for tid, name in self._comms.items() if tid}
        lines = "".join(f"{tid} {name}\n" for tid, name in saved.items())
        layout = self._spool.layout
        options: tuple[Option, ...] = ()
        if release := self._texts.get(_FEATURE_RELEASE):
            uname = f"Linux {self._texts.get(_FEATURE_HOSTNAME, '-')} {release}"
            options = (text_option(OptionId.UNAME, uname),)
        return TraceContent(
            (),
            formats,
            header_page_text(layout),
            HEADER_EVENT,
            tracing.kallsyms,
            tracing.printk_formats,
            tracing.saved_cmdlines + lines,
            "".join(f"{tid} {tgid}\n" for tid, tgid in self._tgids.items()) or None,
            options=options,
            n_cpus=max(n_cpus, min(self._n_cpus, 1 << 16)),
            is_big_endian=self._is_big_endian,
            long_size=layout.long_size,
            page_size=layout.page_size,
        )

    def _leave_out(self, what: str) -> None:
        self._left_out[what] = self._left_out.get(what, 0) + 1

    # The head of a file; a pipe has records instead.

    def _read_head(self) -> tuple[int, int]:
        """Read attributes and features; return where the records are."""
        cursor = Cursor(self._data, 8, big=self._is_big_endian, path=self._path)
        if cursor.u64() == _PIPE_SIZE:
            return _PIPE_SIZE, len(self._data)
        attr_size = cursor.u64()
        attrs, (start, size), _ = [(cursor.u64(), cursor.u64()) for _ in range(3)]
        bits = [cursor.u64() for _ in range(_N_FEATURES // 64)]
        end = start + size
        if not size:
            self._report(Damage(None, start, "no size of the data: the recording was never finished"))
            end = len(self._data)
        elif end > len(self._data):
            self._report(Damage(None, start, f"{size} bytes of data where the file has fewer"))
        try:
            self._read_attrs(*attrs, attr_size)
            if size:
                self._read_features(end, bits)
        except DecodeError as error:
            self._report(Damage(None, error.offset or 0, error.reason))
        return min(start, len(self._data)), min(end, len(self._data))

    def _read_attrs(self, offset: int, size: int, attr_size: int) -> None:
        if attr_size <= _IDS_ENTRY:
            raise DecodeError(f"attributes of {attr_size} bytes", self._path, offset)
        for n_attr in range(min(size // attr_size, _MAX_ATTRS)):
            cursor = Cursor(self._data, offset + n_attr * attr_size, big=self._is_big_endian, path=self._path)
            attr = cursor.take(attr_size - _IDS_ENTRY, "an attribute")
            ids_at, ids_size = cursor.u64(), cursor.u64()
            ids = Cursor(self._data, ids_at, big=self._is_big_endian, path=self._path)
            self._add_attr(attr, ids.take(ids_size, "the ids of an attribute"))

    def _add_attr(self, data: bytes, ids: bytes) -> None:
        attr = read_attr(data, is_big_endian=self._is_big_endian)
        self._attrs.append(attr)
        self._only = attr if len(self._attrs) == 1 else None
        for (number,) in self._long.iter_unpack(ids[: len(ids) // 8 * 8]):
            if len(self._by_id) < _MAX_IDS:
                self._by_id[number] = attr

    def _read_features(self, end: int, bits: list[int]) -> None:
        cursor = Cursor(self._data, end, big=self._is_big_endian, path=self._path)
        for feature in range(_N_FEATURES):
            if bits[feature // 64] >> feature % 64 & 1:
                offset, size = cursor.u64(), cursor.u64()
                if feature in (_FEATURE_TRACING_DATA, _FEATURE_HOSTNAME, _FEATURE_RELEASE, _FEATURE_NRCPUS):
                    part = Cursor(self._data, offset, big=self._is_big_endian, path=self._path)
                    self._take_feature(feature, part.take(min(size, part.left)))

    def _take_feature(self, feature: int, data: bytes) -> None:
        if feature == _FEATURE_TRACING_DATA:
            self._take_tracing_data(data)
        elif feature == _FEATURE_NRCPUS:
            self._n_cpus = self._word.unpack_from(data.ljust(8, b"\0"), 4)[0]
        else:
            self._texts[feature] = data[4:].split(b"\0", 1)[0].decode("utf-8", "replace")

    def _take_tracing_data(self, data: bytes) -> None:
        self._tracing = _read_tracing_data(data, self._path, self._report)
        if self._tracing.long_size != self._spool.layout.long_size:
            layout = spool_layout(long_size=self._tracing.long_size, is_big_endian=self._is_big_endian)
            self._spool = PageSpool(layout, self._report)

    # The records.

    def _take(self, record: PerfRecord) -> None:
        kind, data = record.kind, record.data
        if kind == RecordType.SAMPLE:
            self._take_sample(data)
        elif kind == RecordType.FINISHED_ROUND:
            # Later rounds have nothing from before the one that ended last: tools/perf/util/ordered-events.c.
            self._spool.advance(self._before)
            self._before = self._latest
        elif kind in (RecordType.LOST, RecordType.LOST_SAMPLES):
            self._take_lost(data, 8 if kind == RecordType.LOST else 0)
        elif kind in (RecordType.COMM, RecordType.FORK):
            self._take_task(kind, data)
        elif kind == RecordType.ATTR:
            size = self._pair.unpack_from(data, 8)[1]
            self._add_attr(data[8 : 8 + size], data[8 + size :])
        elif kind == RecordType.TRACING_DATA:
            self._take_tracing_data(data)
        elif kind == RecordType.FEATURE and len(data) >= _COMM_AT:
            feature = self._long.unpack_from(data, 8)[0]
            if feature in (_FEATURE_HOSTNAME, _FEATURE_RELEASE, _FEATURE_NRCPUS):
                self._take_feature(feature, data[_COMM_AT:])
        elif not 0 < kind < _N_KINDS:
            self._leave_out("records of a kind that perf does not have")

    def _take_sample(self, data: bytes) -> None:
        attr = self._only
        if attr is None:
            if not self._attrs:
                self._leave_out("samples without attributes")
                return
            id_at = self._attrs[0].id_at
            number = self._long.unpack_from(data, id_at)[0] if id_at else 0
            attr = self._by_id.get(number, self._attrs[0])
        if attr.type != TRACEPOINT or not attr.sample_type & Sample.RAW:
            self._leave_out("samples of other events than tracepoints")
            return
        start, size = raw_place(data, attr, self._order)
        stamp = self._long.unpack_from(data, attr.time_at)[0] if attr.time_at else self._latest
        cpu = self._word.unpack_from(data, attr.cpu_at)[0] if attr.cpu_at else 0
        self._latest = max(self._latest, stamp)
        self._spool.add(cpu, stamp, data[start : start + size])

    def _take_lost(self, data: bytes, skip: int) -> None:
        n_lost = self._long.unpack_from(data, 8 + skip)[0]
        places = trailer_places(self._attrs[0]) if self._attrs else {}
        cpu, stamp = 0, self._latest
        if Sample.CPU in places:
            cpu = self._word.unpack_from(data, len(data) - places[Sample.CPU])[0]
        if Sample.TIME in places:
            stamp = self._long.unpack_from(data, len(data) - places[Sample.TIME])[0]
        self._spool.lose(cpu, stamp, min(n_lost, (1 << 31) - 1))

    def _take_task(self, kind: int, data: bytes) -> None:
        """Remember the name of a task; a new one has that of its parent."""
        if kind == RecordType.COMM:
            pid, tid = self._pair.unpack_from(data, 8)
            name = data[_COMM_AT:].split(b"\0", 1)[0]
            self._comms[tid] = name.decode("utf-8", "surrogateescape").replace("\n", "?")
        else:
            pid, _ = self._pair.unpack_from(data, 8)
            tid, parent = self._pair.unpack_from(data, 16)
            if parent in self._comms:
                self._comms.setdefault(tid, self._comms[parent])
        self._tgids[tid] = pid
