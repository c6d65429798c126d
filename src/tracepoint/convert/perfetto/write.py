"""A recording as a Perfetto trace, record by record in bounded memory."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.convert.perfetto.encode import encode_unknown, encoder_of
from tracepoint.convert.perfetto.messages import (
    PACKET,
    Bundle,
    FtraceEvent,
    Packet,
    ProcessTree,
    Stats,
    SystemInfo,
)
from tracepoint.convert.protobuf import bytes_key, message, number, number_key, text, varint
from tracepoint.errors import TracepointError
from tracepoint.tracefile.options import uname_of
from tracepoint.tracefile.recording import read_pairs, read_tgids, stats_by_cpu
from tracepoint.tracefile.sieve import signed_time
from tracepoint.tree.writing import write_whole

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator

    from tracepoint.decode.trace import Trace
    from tracepoint.record.raw import RawRecord
    from tracepoint.tracefile.buffers import TraceBuffer
    from tracepoint.tracefile.container import Container
    from tracepoint.tracefile.cpudata import CpuData

    Progress = Callable[[int], None]

_BUNDLE_BYTES = 1 << 17
_SEQUENCE = 1
# A state that sched_switch has had since Linux 4.14, when the numbers of others changed.
_IDLE = re.compile(r'\{\s*0x0*80,\s*"I"\s*\}')
# Of times there are too many different ones for a cache.
_stamp = varint.__wrapped__


def write_perfetto(
    trace: Trace,
    path: str | os.PathLike[str],
    progress: Progress = lambda _: None,
) -> None:
    r"""Write the selected records of a trace as a Perfetto trace.

    `progress` is called with the number of records written since the last call.  The file appears when it is
    complete.  Raises OSError, and TracepointError for a trace without pages.

    >>> import tempfile, tracepoint as tp
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "cut.pftrace")
    ...     with tp.open_trace("tests/tracefile/golden/cut.v6.dat") as trace:
    ...         write_perfetto(trace.select("sched"), path)
    ...     path.read_bytes()[:1]
    b'\n'
    """
    if trace.buffer is None:
        raise TracepointError(f"{trace.file.path}: a trace without pages cannot be converted")
    write_whole(Path(path), _packets(trace, trace.buffer, progress), 0o644)


def _packets(trace: Trace, buffer: TraceBuffer, progress: Progress) -> Iterator[bytes]:
    file = trace.file
    encoders = {number: encoder_of(form) for number, form in file.events.items()}
    yield from _machine(file)
    yield from _tasks(file, max(trace.span[0], 0))
    yield _losses(file, buffer, Stats.BEGIN)
    for cpu in buffer.cpus:
        for bundle, n_records in _bundles(cpu, encoders, file.is_big_endian):
            yield _packet(message(Packet.FTRACE_EVENTS, bundle))
            progress(n_records)
    yield _losses(file, buffer, Stats.END)


def _packet(data: bytes) -> bytes:
    return message(PACKET, data + number(Packet.SEQUENCE, _SEQUENCE))


def _bundles(
    cpu: CpuData,
    encoders: dict[int, Callable[[bytes], bytes]],
    is_big: bool,
) -> Iterator[tuple[bytes, int]]:
    """Yield bundles of one CPU with the number of their events; each loss begins a new one."""
    parts: list[bytes] = []
    n_bytes, n_events, is_after_loss = 0, 0, False
    where = cpu.cpu
    for record in cpu.records():
        if (record.lost or n_bytes > _BUNDLE_BYTES or record.cpu != where) and parts:
            yield _bundle(where, parts, is_after_loss), n_events
            parts, n_bytes, n_events, is_after_loss = [], 0, 0, False
        where, is_after_loss = record.cpu, is_after_loss or bool(record.lost)
        encode = encoders.get(record.id(is_big_endian=is_big), encode_unknown)
        event = _event(record, signed_time(record.timestamp), encode(record.data), is_big)
        parts.append(event)
        n_bytes, n_events = n_bytes + len(event), n_events + 1
    if parts or is_after_loss:
        yield _bundle(where, parts, is_after_loss), n_events


_CPU, _LOST = number_key(Bundle.CPU), number(Bundle.LOST_EVENTS, 1)
_EVENT = bytes_key(Bundle.EVENT)
_TIME, _PID = number_key(FtraceEvent.TIMESTAMP), number_key(FtraceEvent.PID)


def _bundle(cpu: int, events: Iterable[bytes], is_after_loss: bool) -> bytes:
    return b"".join([_CPU, varint(cpu), *events, _LOST if is_after_loss else b""])


def _event(record: RawRecord, stamp: int, body: bytes, is_big: bool) -> bytes:
    pid = varint(record.pid(is_big_endian=is_big))
    data = b"".join((_TIME, _stamp(stamp), _PID, pid, body))
    return _EVENT + varint(len(data)) + data


def _machine(file: Container) -> Iterator[bytes]:
    """Yield the packet with the words of uname, from which the release decides how states are read."""
    words = uname_of(file.options)
    if len(words) < 3:
        # Without a release states are read as those of the oldest kernels.
        if any(form.name == "sched_switch" and _IDLE.search(form.print_fmt) for form in file.events.values()):
            oldest = text(SystemInfo.SYSTEM, "Linux") + text(SystemInfo.RELEASE, "4.14")
            yield _packet(message(Packet.SYSTEM_INFO, message(SystemInfo.UTSNAME, oldest)))
        return
    fields = (
        text(SystemInfo.SYSTEM, words[0]),
        text(SystemInfo.VERSION, " ".join(words[3:-1])),
        text(SystemInfo.RELEASE, words[2]),
        text(SystemInfo.MACHINE, words[-1]),
    )
    yield _packet(message(Packet.SYSTEM_INFO, message(SystemInfo.UTSNAME, b"".join(fields))))


def _tasks(file: Container, stamp: int) -> Iterator[bytes]:
    """Yield the packet with the names of processes and threads, for which the recording has saved_tgids."""
    comms, tgids = read_pairs(file.saved_cmdlines), read_tgids(file.saved_tgids or "")
    parts = []
    for pid in sorted({tgid for tgid in tgids.values() if tgid}):
        name = text(ProcessTree.COMMAND, comms[pid]) + number(ProcessTree.IS_COMM, 1) if pid in comms else b""
        parts.append(message(ProcessTree.PROCESS, number(ProcessTree.PID, pid) + name))
    for pid, tgid in sorted(tgids.items()):
        if pid and tgid:
            name = text(ProcessTree.NAME, comms[pid]) if pid in comms else b""
            parts.append(
                message(
                    ProcessTree.THREAD, number(ProcessTree.TID, pid) + number(ProcessTree.TGID, tgid) + name
                )
            )
    if parts:
        yield _packet(number(Packet.TIMESTAMP, stamp) + message(Packet.PROCESS_TREE, b"".join(parts)))


# What the recorder counted of each CPU, and the field of FtraceCpuStats.
_COUNTS = {"overrun": Stats.OVERRUN, "commit overrun": Stats.COMMIT_OVERRUN, "dropped events": Stats.DROPPED}


def _losses(file: Container, buffer: TraceBuffer, phase: int) -> bytes:
    """Return the packet with what the recorder counted: nothing at the begin, all at the end."""
    stats = number(Stats.PHASE, phase)
    for cpu, counts in stats_by_cpu(file.options, buffer.name).items():
        shown = {field: counts.get(name, 0) if phase == Stats.END else 0 for name, field in _COUNTS.items()}
        fields = b"".join(number(field, n) for field, n in shown.items())
        stats += message(Stats.CPU_STATS, number(Stats.CPU, max(cpu, 0)) + fields)
    return _packet(message(Packet.FTRACE_STATS, stats))
