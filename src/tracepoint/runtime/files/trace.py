"""The files that show what was recorded: trace, trace_pipe, trace_pipe_raw, snapshot, stats."""

from __future__ import annotations

import errno
import heapq
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from tracepoint.layout.process_events import OWN_EVENTS
from tracepoint.printk.facts import RenderFacts
from tracepoint.record.pages import ring_records
from tracepoint.runtime.dynamic.event_probe import EventProbe
from tracepoint.runtime.files.file import File, Handle, StreamHandle, failure, read_decimal
from tracepoint.runtime.files.text_writer import ProcessWriter
from tracepoint.runtime.files.texts import CPU_SNAPSHOT_HELP, SNAPSHOT_HELP
from tracepoint.runtime.fire.locks import make_process_lock
from tracepoint.runtime.rings.symbols import symbols
from tracepoint.tracefile.statstext import counts_text
from tracepoint.tracefile.textoptions import TextOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tracepoint.record.raw import RawRecord
    from tracepoint.runtime.files.state import InstanceState

POLL_S = 0.01
# Connections open files in threads of their own.
_opening = make_process_lock()


def never() -> bool:
    """Return False: a read is not interrupted; a file system replaces this."""
    return False


def records_by_time(pages: dict[int, list[bytes]]) -> list[RawRecord]:
    """Return the records of pages in the order of time."""
    found = [record for blocks in pages.values() for record in ring_records(blocks)]
    return sorted(found, key=_time_of)


def peeked_records(state: InstanceState, cpu: int = -1) -> Iterator[RawRecord]:
    """Yield what the rings hold now in the order of time; each ring is in that order already."""
    return heapq.merge(*map(ring_records, state.peek_rings(cpu)), key=_time_of)


def _time_of(record: RawRecord) -> int:
    return record.timestamp


def text_writer(state: InstanceState) -> ProcessWriter:
    """Return the writer of text for an instance as it is set now."""
    events = {e.id: e.layout for e in state.tracing.events} | {form.id: form for form in OWN_EVENTS}
    options = state.options
    comms = state.comms()
    shown = TextOptions(
        clock=state.instance.clock,
        irq_info=options["irq-info"],
        record_tgid=options["record-tgid"],
        context_info=options["context-info"],
        latency_format=options["latency-format"],
        verbose=options["verbose"],
        annotate=options["annotate"],
        release=os.uname().release,
        raw=options["raw"],
        hex=options["hex"],
        bin=options["bin"],
    )
    facts = RenderFacts(kallsyms=symbols(), comms=comms if options["record-cmd"] else {})
    probes = {e.id: e for e in state.tracing.events if isinstance(e, EventProbe)}
    return ProcessWriter(events, facts, shown, dict.fromkeys(comms, os.getpid()), probes)


def trace_lines(state: InstanceState, cpu: int = -1) -> Iterator[str]:
    """Yield what `trace` shows: the heading, then line by line what the rings held at the begin.

    The heading counts the records of all CPUs, also for one: print_event_info() in kernel/trace/trace.c.
    """
    stats = state.stats()
    entries, overrun = stats.get("entries", 0), stats.get("overrun", 0)
    writer = text_writer(state)
    yield writer.header(entries, entries + overrun, state.n_cpus)
    yield from writer.lines(peeked_records(state, cpu), has_overruns=overrun > 0)


def trace_text(state: InstanceState, cpu: int = -1) -> str:
    """Return all that `trace` shows."""
    return "".join(trace_lines(state, cpu))


def snapshot_text(state: InstanceState, cpu: int = -1) -> str:
    """Return what `snapshot` shows."""
    held = state.snapshot or {}
    shown = held if cpu < 0 else {cpu: held.get(cpu, [])}
    records = records_by_time(shown)
    if not records:
        word = "freed" if state.snapshot is None else "allocated"
        told = SNAPSHOT_HELP if cpu < 0 else CPU_SNAPSHOT_HELP
        return f"# tracer: nop\n#\n#\n# * Snapshot is {word} *\n#\n{told}"
    writer = text_writer(state)
    total = len(records_by_time(held))
    return writer.header(total, total, state.n_cpus) + "".join(writer.lines(records))


def snapshot_file(state: InstanceState, cpu: int = -1) -> File:
    """Make the file `snapshot`: tracing_snapshot_write() in kernel/trace/trace.c."""

    def write(data: bytes) -> None:
        value = read_decimal(data)
        if value < 2 and cpu >= 0:
            raise failure(errno.EINVAL)
        if value == 0:
            state.snapshot = None
        elif value == 1:
            state.take_snapshot()
        elif state.snapshot is not None:
            # Made again: a reader may have the old one.
            state.snapshot = {n: pages for n, pages in state.snapshot.items() if cpu not in (-1, n)}

    return File(lambda: snapshot_text(state, cpu), write)


def trace_file(state: InstanceState, cpu: int = -1) -> File:
    """Make the file `trace`."""
    plain = File(lambda: trace_text(state, cpu), lambda _: None, lambda: state.clear(cpu))

    def open_it(flags: int) -> StreamHandle:
        # The option is looked at when the file is opened: __tracing_open() in kernel/trace/trace.c.
        is_pausing = state.options["pause-on-trace"] and flags & os.O_ACCMODE != os.O_WRONLY
        if is_pausing:
            state.stop()
        is_reading = flags & os.O_ACCMODE != os.O_WRONLY
        return StreamHandle(plain, lambda: trace_lines(state, cpu), state.start if is_reading else None)

    return replace(plain, open=open_it)


def stats_text(state: InstanceState, cpu: int) -> str:
    """Return what per_cpu/cpuN/stats shows: tracing_stats_read() in kernel/trace/trace.c."""
    return counts_text(state.stats(cpu), state.instance.clock, state.instance.buffer.now())


class _Consumer(Handle):
    """An open file that takes records out; waits while there are none."""

    def __init__(self, state: InstanceState, cpu: int, flags: int) -> None:
        self._state = state
        self._cpu = cpu
        self._is_waiting = not flags & os.O_NONBLOCK
        self._held = b""
        self._has_read = False
        self.is_interrupted: Callable[[], bool] = never

    def _more(self) -> bytes:
        raise NotImplementedError

    def _is_ended(self) -> bool:
        return self._has_read and not self._state.instance.is_on

    def read(self, size: int, offset: int) -> bytes:
        """Return what there is; nothing at the end, which comes when tracing is off."""
        del offset
        while not self._held:
            # Before: what was recorded until it was turned off comes first.
            is_ended = self._is_ended()
            self._held = self._more()
            if self._held:
                self._has_read = True
            elif not self._is_waiting:
                raise failure(errno.EAGAIN)
            elif is_ended:
                return b""
            elif self.is_interrupted():
                raise failure(errno.EINTR)
            else:
                time.sleep(POLL_S)
        made, self._held = self._held[:size], self._held[size:]
        return made


class PipeHandle(_Consumer):
    """`trace_pipe`: text, taken out of the rings; only one reader."""

    def __init__(self, state: InstanceState, cpu: int, flags: int) -> None:
        with _opening:
            if cpu in state.readers or (state.readers and (cpu < 0 or -1 in state.readers)):
                raise failure(errno.EBUSY)
            state.readers.add(cpu)
        super().__init__(state, cpu, flags)

    def _more(self) -> bytes:
        records = records_by_time(self._state.take_pages(self._cpu))
        if not records:
            return b""
        return "".join(text_writer(self._state).lines(records)).encode(errors="surrogateescape")

    def close(self) -> None:
        """Let the next reader in."""
        self._state.readers.discard(self._cpu)


class RawHandle(_Consumer):
    """`trace_pipe_raw`: whole pages, one for each read of a page."""

    def _more(self) -> bytes:
        for serial in self._state.serials(self._cpu):
            try:
                page: bytes | None = self._state.instance.buffer.read(serial)
            except KeyError:
                continue
            if page is not None:
                return page
        return b""

    def _is_ended(self) -> bool:
        return not self._state.instance.is_on


def pipe_file(state: InstanceState, cpu: int = -1) -> File:
    """Make the file `trace_pipe`."""
    return File(open=lambda flags: PipeHandle(state, cpu, flags))


def raw_file(state: InstanceState, cpu: int) -> File:
    """Make the file `trace_pipe_raw`."""
    return File(open=lambda flags: RawHandle(state, cpu, flags))
