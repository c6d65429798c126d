"""A recording as a CTF 1.8 trace: a folder with a stream of packets for each CPU, in bounded memory."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import NAMESPACE_URL, UUID, uuid5

from tracepoint.convert.ctf.encode import CtfEncoder, context_parts, integer_text
from tracepoint.convert.ctf.metadata import CtfTraceFacts, metadata_text
from tracepoint.decode.found import NO_ID
from tracepoint.decode.rows import id_of
from tracepoint.errors import TracepointError
from tracepoint.layout.format import COMMON_FIELDS
from tracepoint.tracefile.cursor import encode
from tracepoint.tracefile.options import uname_of
from tracepoint.tracefile.recording import read_pairs
from tracepoint.tracefile.sieve import signed_time
from tracepoint.tree.writing import making_folder
from tracepoint.wording import visible

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from tracepoint.decode.trace import Trace
    from tracepoint.layout.format import EventFormat
    from tracepoint.record.raw import RawRecord
    from tracepoint.tracefile.container import Container

    Progress = Callable[[int], None]

_MAGIC = 0xC1FC1FC1
_PACKET_BYTES = 1 << 16
_NS_PER_S = 1_000_000_000
_STEP = 1 << 14
#: The id of an event whose records are bytes: this number more than that of the record.
_RAW = 1 << 16
_RAW_FIELDS = [f"{integer_text(4)} __data_length; {integer_text(1, base=16)} _data[ __data_length ];"]
_MAX_STREAMS = 1 << 10


def write_ctf(trace: Trace, folder: str | os.PathLike[str], progress: Progress = lambda _: None) -> None:
    """Write the selected records of a trace as a CTF 1.8 trace, which babeltrace2 reads.

    `progress` is called with the number of records written since the last call.  The folder appears when it
    is complete.  Raises OSError, FileExistsError where there is such a folder, and TracepointError for a
    trace without pages.

    >>> import tempfile, tracepoint as tp
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "ctf")
    ...     with tp.open_trace("tests/tracefile/golden/cut.v6.dat") as trace:
    ...         write_ctf(trace.select("sched"), path)
    ...     with tp.open_trace(path) as read:
    ...         read.events["sched:sched_switch"]
    10
    """
    if trace.buffer is None:
        raise TracepointError(f"{trace.file.path}: a trace without pages cannot be converted")
    with making_folder(Path(folder)) as fresh:
        _CtfWriter(trace, fresh, progress).write()


class _Stream:
    """A stream file: the packet that is being filled, and what its context counts."""

    def __init__(self, path: Path, cpu: int, head: struct.Struct, uuid: UUID) -> None:
        self._path = path
        self._cpu = cpu
        self._head = head
        self._uuid = uuid
        self._data = bytearray()
        self._begin = self._n_packets = self._discarded = 0
        self.last = 0

    def add(self, stamp: int, event: bytes, lost: int) -> None:
        """Add an event; `lost` before it begin a packet, which counts them: an unknown number as one."""
        if lost or len(self._data) >= _PACKET_BYTES:
            self.flush()
            self._discarded += max(lost, 1) if lost else 0
        if not self._data:
            self._begin = stamp
        self._data += event
        self.last = stamp

    def flush(self) -> None:
        """Write the packet."""
        if not self._data:
            return
        n_bits = 8 * (self._head.size + len(self._data))
        sizes = (n_bits, n_bits, self._n_packets, self._discarded, self._cpu)
        head = self._head.pack(_MAGIC, self._uuid.bytes, 0, self._begin, self.last, *sizes)
        # Not kept open: a machine may have more CPUs than a process may have files.
        with self._path.open("ab") as file:
            file.write(head + self._data)
        self._n_packets += 1
        self._data.clear()


class _CtfWriter:
    """A trace while it is written."""

    def __init__(self, trace: Trace, folder: Path, progress: Progress) -> None:
        self._trace = trace
        self._file = trace.file
        self._folder = folder
        self._progress = progress
        self._is_big_endian = trace.file.is_big_endian
        order = ">" if self._is_big_endian else "<"
        self._packet_head = struct.Struct(f"{order}I16sIQQQQQQI")
        self._event_head = struct.Struct(f"{order}IQ").pack
        self._length = struct.Struct(f"{order}I").pack
        self._forms = self._file.events
        self._common = next((form.common_fields for form in self._forms.values()), COMMON_FIELDS)
        self._context = [field for field in self._common if field.name != "common_type"]
        self._places = context_parts(self._context)
        self._context_end = max((stop for _, stop in self._places), default=0)
        self._encoders: dict[int, CtfEncoder | None] = {}
        self._raw: dict[int, str] = {}
        names = read_pairs(self._file.saved_cmdlines)
        self._names = {pid: encode(name).replace(b"\0", b"") + b"\0" for pid, name in names.items()}
        first, _ = trace.span
        self._offset_s = min(first // _NS_PER_S, 0)
        self._uuid = uuid5(
            NAMESPACE_URL, f"{visible(Path(self._file.path).name)} {trace.span} {trace.n_records}"
        )
        self._n_files = 0

    def write(self) -> None:
        buffer = self._trace.buffer
        for cpu in buffer.cpus if buffer is not None else ():
            streams: dict[int, list[_Stream]] = {}
            n_records = 0
            for record in cpu.records():
                stamp = signed_time(record.timestamp) - self._offset_s * _NS_PER_S
                self._stream(streams, record.cpu, stamp).add(stamp, self._event(record, stamp), record.lost)
                n_records += 1
                if n_records == _STEP:
                    self._progress(n_records)
                    n_records = 0
            for stream in (stream for some in streams.values() for stream in some):
                stream.flush()
            self._progress(n_records)
        self._write_metadata()

    def _stream(self, streams: dict[int, list[_Stream]], cpu: int, stamp: int) -> _Stream:
        """Return the stream of a CPU that a time can follow: times of a stream do not go back."""
        known = streams.setdefault(cpu, [])
        for stream in known:
            if stream.last <= stamp:
                return stream
        if len(known) >= _MAX_STREAMS:
            raise TracepointError(f"{self._file.path}: the times of CPU {cpu} go back too often for CTF")
        path = self._folder / f"channel0_{cpu}{f'_{self._n_files}' if self._n_files > cpu else ''}"
        self._n_files += 1
        known.append(_Stream(path, cpu, self._packet_head, self._uuid))
        return known[-1]

    def _event(self, record: RawRecord, stamp: int) -> bytes:
        data = record.data
        number = id_of(data, is_big_endian=self._is_big_endian)
        encoder = self._encoders[number] if number in self._encoders else self._encoder(number)
        fields = None if encoder is None else encoder.encode(data)
        if fields is None:
            number = self._raw_id(number)
            fields = self._length(len(data)) + data
        name = self._names.get(record.pid(is_big_endian=self._is_big_endian), b"\0")
        if len(data) < self._context_end:
            data = data.ljust(self._context_end, b"\0")
        context = b"".join([data[start:stop] for start, stop in self._places])
        return self._event_head(number, stamp) + context + name + fields

    def _encoder(self, number: int) -> CtfEncoder | None:
        form = self._forms.get(number)
        is_known = form is not None and form.common_fields == self._common
        made = self._encoders[number] = CtfEncoder(form) if form is not None and is_known else None
        return made

    def _raw_id(self, number: int) -> int:
        """Return the id of the event that holds records as bytes: without a format, or too short for it."""
        form = self._forms.get(number)
        if number == NO_ID:
            name = "unknown:short"
        elif form is None:
            name = f"unknown:{number}"
        else:
            name = f"unknown:{form.system}.{form.name}"
        number = _RAW + (number if number != NO_ID else _RAW)
        self._raw[number] = name
        return number

    def _write_metadata(self) -> None:
        facts = CtfTraceFacts(
            self._uuid,
            self._trace.clock or "unknown",
            self._offset_s,
            _env(self._file),
            self._is_big_endian,
            self._context,
        )
        known = ((number, encoder, self._forms.get(number)) for number, encoder in self._encoders.items())
        events = [
            (n, _full_name(form), e.fields) for n, e, form in known if e is not None and form is not None
        ]
        events += [(number, name, _RAW_FIELDS) for number, name in self._raw.items()]
        text = metadata_text(facts, sorted(events))
        (self._folder / "metadata").write_bytes(encode(text))


def _full_name(form: EventFormat) -> str:
    return f"{form.system}:{form.name}"


def _env(file: Container) -> dict[str, str]:
    """Return what the trace says of the machine, by the names that LTTng uses."""
    found = {"domain": "kernel", "tracer_name": "tracepoint", "trace_name": Path(file.path).name}
    words = uname_of(file.options)
    if len(words) >= 3:
        found |= {
            "sysname": words[0],
            "hostname": words[1],
            "kernel_release": words[2],
            "kernel_version": " ".join(words[3:-1]),
            "machine": words[-1],
        }
    return found
