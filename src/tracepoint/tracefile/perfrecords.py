"""The records of perf.data: how samples are laid out, and what is compressed among them.

tools/perf/Documentation/perf.data-file-format.txt and include/uapi/linux/perf_event.h describe them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from tracepoint.errors import DecodeError, LayoutError
from tracepoint.layout.compressed import new_expander
from tracepoint.named import NamedTuple
from tracepoint.tracefile.damage import Damage
from tracepoint.tracefile.filebytes import read_at, shorter_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.tracefile.cpudata import Report
    from tracepoint.tracefile.filebytes import Bytes

TRACEPOINT = 2
_HEAD = 8
_MIN_ATTR = 64
# Sizes have 16 bits.
_MAX_RECORD = 1 << 16
_WINDOW = 1 << 20
_SAMPLE_ID_ALL, _USE_CLOCKID = 18, 25
_CLOCKID_AT = 92
_CLOCKS = {1: "mono", 4: "mono_raw", 7: "boot", 11: "tai"}
_GROUP = 1 << 3


class RecordType(IntEnum):
    """The records that are looked at."""

    LOST = 2
    COMM = 3
    FORK = 7
    SAMPLE = 9
    LOST_SAMPLES = 13
    ATTR = 64
    TRACING_DATA = 66
    FINISHED_ROUND = 68
    AUXTRACE = 71
    FEATURE = 80
    COMPRESSED = 81
    COMPRESSED2 = 83


class Sample(IntEnum):
    """The bits of `sample_type`."""

    IP = 1 << 0
    TID = 1 << 1
    TIME = 1 << 2
    ADDR = 1 << 3
    READ = 1 << 4
    CALLCHAIN = 1 << 5
    ID = 1 << 6
    CPU = 1 << 7
    PERIOD = 1 << 8
    STREAM_ID = 1 << 9
    RAW = 1 << 10
    IDENTIFIER = 1 << 16


# In the order in which a sample has them, each 8 bytes; what has another size follows.
_FIXED = (Sample.IDENTIFIER, Sample.IP, Sample.TID, Sample.TIME, Sample.ADDR, Sample.ID, Sample.STREAM_ID,
          Sample.CPU, Sample.PERIOD)  # fmt: skip
_TRAILER = (Sample.TID, Sample.TIME, Sample.ID, Sample.STREAM_ID, Sample.CPU, Sample.IDENTIFIER)


@dataclass(frozen=True, slots=True)
class Attr:
    """What one event of a recording was asked to put into its records; offsets are those in a sample."""

    type: int
    sample_type: int
    read_format: int
    has_trailer: bool
    clock: str
    time_at: int
    cpu_at: int
    id_at: int
    fixed_size: int


def read_attr(data: bytes, *, is_big_endian: bool) -> Attr:
    """Read a `struct perf_event_attr`; raises DecodeError when it is cut off."""
    if len(data) < _MIN_ATTR:
        raise DecodeError(f"a perf_event_attr of {len(data)} bytes")
    order = ">" if is_big_endian else "<"
    kind, _, _, _, sample_type, read_format, flags = struct.unpack_from(order + "IIQQQQQ", data)

    def has(bit: int) -> bool:
        return bool(flags >> (63 - bit if is_big_endian else bit) & 1)

    clock = "perf"
    if has(_USE_CLOCKID) and len(data) >= _CLOCKID_AT + 4:
        clock = _CLOCKS.get(struct.unpack_from(order + "i", data, _CLOCKID_AT)[0], "perf")
    places, at = {}, _HEAD
    for bit in _FIXED:
        if sample_type & bit:
            places[bit] = at
            at += 8
    identifier = places.get(Sample.IDENTIFIER, places.get(Sample.ID, 0))
    return Attr(
        kind, sample_type, read_format, has(_SAMPLE_ID_ALL), clock, places.get(Sample.TIME, 0),
        places.get(Sample.CPU, 0), identifier, at
    )  # fmt: skip


def trailer_places(attr: Attr) -> dict[Sample, int]:
    """Return where the fields of a record's trailer are, in bytes before its end."""
    found, back = {}, 0
    for bit in reversed(_TRAILER):
        if attr.has_trailer and attr.sample_type & bit:
            back += 8
            found[bit] = back
    return found


def raw_place(record: bytes, attr: Attr, order: str) -> tuple[int, int]:
    """Return offset and length of a sample's raw data, the record of the tracepoint.

    Raises struct.error when the sample is too short for what it should hold.
    """
    at = attr.fixed_size
    if attr.sample_type & Sample.READ:
        width = 8 * sum(attr.read_format >> bit & 1 for bit in (2, 4))
        times = 8 * sum(attr.read_format >> bit & 1 for bit in (0, 1))
        if attr.read_format & _GROUP:
            at += 8 + times + struct.unpack_from(order + "Q", record, at)[0] * (8 + width)
        else:
            at += 8 + times + width
    if attr.sample_type & Sample.CALLCHAIN:
        at += 8 + 8 * struct.unpack_from(order + "Q", record, at)[0]
    # An offset that no int of C holds would be another error.
    at = min(at, len(record))
    size = struct.unpack_from(order + "I", record, at)[0]
    if at + 4 + size > len(record):
        raise struct.error("raw data past the end of its sample")
    return at + 4, size


class PerfRecord(NamedTuple):
    """One record with its head; `at` is its place in the file, or that of the compressed data it was in."""

    kind: int
    data: bytes
    at: int


def _is_possible(kind: int, size: int) -> bool:
    """Whether a record can have a size: the kernel's own are whole words, perf's need not be."""
    return size >= _HEAD and (kind >= RecordType.ATTR or not size % 8)


class RecordReader:
    """Yields the records between two offsets of a file, expanding those that are compressed."""

    def __init__(self, data: Bytes, start: int, end: int, report: Report, *, is_big_endian: bool) -> None:
        self._data = data
        self._start = start
        self._end = end
        self._report = report
        self._head = struct.Struct(">IHH" if is_big_endian else "<IHH")
        self._long = struct.Struct(">Q" if is_big_endian else "<Q")
        self._word = struct.Struct(">I" if is_big_endian else "<I")
        self._expander: Any = None
        self._rest = b""

    def __iter__(self) -> Iterator[PerfRecord]:
        at, head = self._start, self._head
        base, block = at, b""
        while at + _HEAD <= self._end:
            if at + _MAX_RECORD > base + len(block) < self._end:
                base, block = at, read_at(self._data, at, min(at + _WINDOW, self._end))
            kind, _, size = head.unpack(block[at - base : at - base + _HEAD].ljust(_HEAD, b"\0"))
            if not _is_possible(kind, size) or at + size > self._end:
                self._report(Damage(None, at, f"a record of {size} bytes where {self._end - at} are left"))
                return
            record = PerfRecord(kind, block[at - base : at - base + size], at)
            if len(record.data) < size:
                self._report(Damage(None, at, shorter_by(self._end - base - len(block))))
                return
            at += size
            if kind in (RecordType.COMPRESSED, RecordType.COMPRESSED2):
                yield from self._expanded(record)
            elif kind == RecordType.TRACING_DATA and size >= _HEAD + 4:
                n_bytes = min(self._word.unpack_from(record.data, _HEAD)[0], self._end - at)
                yield record._replace(data=read_at(self._data, at, at + n_bytes))
                at += n_bytes + -n_bytes % 8
            elif kind == RecordType.AUXTRACE and size >= _HEAD + 8:
                at += self._long.unpack_from(record.data, _HEAD)[0]
            else:
                yield record
        if at < self._end:
            self._report(Damage(None, at, f"{self._end - at} bytes are left over after the last record"))

    def _expand(self, packed: bytes, at: int) -> bytes:
        reason = "it is not zstd"
        try:
            if self._expander is None:
                self._expander = new_expander(packed[:16])
            if self._expander is not None:
                made: bytes = self._expander.decompress(packed)
                return made
        except (ValueError, OSError, EOFError, LayoutError) as error:
            reason = str(error)
        self._report(Damage(None, at, f"a compressed record: {reason}"))
        return b""

    def _expanded(self, record: PerfRecord) -> Iterator[PerfRecord]:
        """Yield the records in a piece of a zstd stream; the last may go on in the next piece."""
        packed = record.data[_HEAD:]
        if record.kind == RecordType.COMPRESSED2 and len(packed) >= 8:
            packed = packed[8 : 8 + self._long.unpack_from(packed)[0]]
        made = self._rest + self._expand(packed, record.at)
        at = 0
        while at + _HEAD <= len(made):
            kind, _, size = self._head.unpack_from(made, at)
            if not _is_possible(kind, size):
                self._report(Damage(None, record.at, f"a compressed record of {size} bytes"))
                made, at = b"", 0
                break
            if at + size > len(made):
                break
            yield PerfRecord(kind, made[at : at + size], record.at)
            at += size
        self._rest = made[at:]
