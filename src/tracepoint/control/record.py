"""Recording: the pages of a trace array's ring buffers, into a trace.dat.

One reader per CPU moves whole pages to a temporary file next to the target. The trace.dat is written only
when all pages are there, and gets its name only when it is complete.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sys
import tempfile
import threading
import time
from array import array
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.control.drain import DrainPlan
from tracepoint.control.reader import CpuReader
from tracepoint.control.recording import check_target
from tracepoint.decode.rows import NO_ID
from tracepoint.errors import TracefsError, TracepointError
from tracepoint.printk.facts import LASTING_VARIABLES
from tracepoint.record.layout import read_page_layout
from tracepoint.tracefile.content import BufferContent, CpuPages, TraceContent
from tracepoint.tracefile.options import OptionId, text_option
from tracepoint.tracefile.recording import (
    CpuStats,
    Recording,
    TraceSettings,
    read_stats,
    stats_options,
    version_option,
)
from tracepoint.tracefile.write import write_tracedat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tracepoint.control.array import ArrayFiles
    from tracepoint.control.files import PageSource
    from tracepoint.record.layout import PageLayout

_LOOK = 0.05
_ID = re.compile(r"^ID: (\d{1,9})$", re.MULTILINE)
_NO_LIMIT = 1 << 62
_MAX_SECONDS = 1e6


def record(
    array: ArrayFiles,
    path: str | os.PathLike[str],
    seconds: float | None = None,
    *,
    until: threading.Event | None = None,
    during: Callable[[], object] | None = None,
    replace: bool = False,
) -> Recording:
    """Save what an array records as trace.dat, for `seconds`, `until` an event is set, or `during` a call.

    What the ring buffer holds already comes first.  At the end the array stops recording for the
    moment that reading the rest takes.  Where a process is recorded and ends before, the recording
    ends too (`is_cut`).  A file that is there is kept unless `replace`.  Raises
    TracefsError where no event is enabled or the kernel refuses, TracepointError for a wrong argument
    and for a file that cannot be written, of which nothing is left then.
    """
    if seconds is None and until is None and during is None:
        raise TracepointError("say when the recording ends: seconds, until or during")
    if seconds is not None and not 0 <= seconds <= _MAX_SECONDS:
        raise TracepointError(f"{seconds:g} seconds: 0 to {_MAX_SECONDS:g}")
    target = Path(path)
    try:
        check_target(target, replace=replace)
        with tempfile.TemporaryDirectory(prefix=f".{target.name[:60]}.", dir=target.parent) as folder:
            run = _Run(array, Path(folder))
            run.collect(seconds, until, during)
            written = run.write()
            check_target(target, replace=replace)
            written.replace(target)
    except OSError as error:
        raise TracepointError(f"{target}: {error.strerror or error}; nothing was saved") from error
    return Recording(target, run.stats(), run.is_cut)


@dataclass(frozen=True, slots=True)
class _Facts:
    """What a reader of the file needs besides pages and formats, from the control files."""

    header_page: str
    header_event: str
    ftrace: tuple[str, ...]
    kallsyms: str
    variables: dict[str, int]
    printk_formats: str
    saved_cmdlines: str
    saved_tgids: str | None
    clock: str
    settings: TraceSettings

    @classmethod
    def read(cls, array: ArrayFiles) -> _Facts:
        read, names = array.tracefs.read, array.tracefs.names("events/ftrace")
        tgid_option = f"{array.prefix}options/record-tgid"
        has_tgids = array.tracefs.exists(tgid_option) and read(tgid_option).strip() == "1"
        return cls(
            read("events/header_page"),
            read("events/header_event"),
            tuple(read(f"events/ftrace/{n}/format") for n in names if n not in ("enable", "filter")),
            array.tracefs.files.kallsyms(),
            array.tracefs.files.variables(LASTING_VARIABLES),
            read("printk_formats"),
            read("saved_cmdlines"),
            read("saved_tgids") if has_tgids else None,
            array.clock,
            TraceSettings.read(
                *(
                    read(array.prefix + name) if array.tracefs.exists(array.prefix + name) else ""
                    for name in ("current_tracer", "trace_options")
                )
            ),
        )


@dataclass(slots=True)
class _Run:
    """One recording: the array, where its pages are kept, and what describes them."""

    array: ArrayFiles
    folder: Path
    cpus: list[CpuReader] = field(default_factory=list)
    formats: dict[str, str] = field(default_factory=dict)
    is_cut: bool = False
    facts: _Facts = field(init=False)

    def collect(
        self,
        seconds: float | None,
        until: threading.Event | None,
        during: Callable[[], object] | None,
    ) -> None:
        """Move pages to the folder until it is time to end."""
        self._describe()
        layout = self.layout()
        if not self.formats and self.facts.settings.tracer in ("", "nop"):
            raise TracefsError(f"no event is enabled in {self.array.path}: there is nothing to record")
        n_ring = {cpu: size // layout.data_size + 2 for cpu, size in self.array.buffer_bytes.items()}
        with contextlib.ExitStack() as opened:
            for cpu, size in n_ring.items():
                source = self._open(f"{self.array.prefix}per_cpu/{cpu}/trace_pipe_raw")
                opened.callback(self._close, source)
                before = read_stats(self._stats(cpu))
                spool = self.folder / cpu
                self.cpus.append(CpuReader(int(cpu[3:]), source, spool, size, before))
            end, ends = os.pipe()
            opened.callback(os.close, end)
            plan = DrainPlan(layout, end, array("q", [_NO_LIMIT]))
            threads: list[threading.Thread] = []
            try:
                for reader in self.cpus:
                    thread = threading.Thread(target=reader.collect, args=(plan,), daemon=True)
                    thread.start()
                    threads.append(thread)
                self._wait(seconds, until, during)
            finally:
                self._end(ends, threads)
        for one in self.cpus:
            with self._may_be_cut():
                if one.error is not None:
                    raise one.error
        found = {number for one in self.cpus for number in one.count(layout)}
        with self._may_be_cut():
            for one in self.cpus:
                one.after = self._stats(f"cpu{one.number}")
            self._describe()
            self._describe_earlier(found - {NO_ID})

    @contextlib.contextmanager
    def _may_be_cut(self) -> Iterator[None]:
        """Continue without the data of a process that has ended."""
        try:
            yield
        except (OSError, TracefsError) as error:
            if error.errno != errno.ESRCH:
                raise
            self.is_cut = True

    def layout(self) -> PageLayout:
        return read_page_layout(self.facts.header_page, is_big_endian=sys.byteorder == "big")

    def _open(self, path: str) -> PageSource:
        try:
            return self.array.tracefs.files.open_pages(path)
        except OSError as error:
            raise self.array.tracefs.explain(error, path) from error

    def _close(self, source: PageSource) -> None:
        with self._may_be_cut():
            source.close()

    def _stats(self, cpu: str) -> str:
        return self.array.tracefs.read(f"{self.array.prefix}per_cpu/{cpu}/stats")

    def _describe(self) -> None:
        """Read what the file says, and add the formats of what is enabled now: it may change later."""
        self.facts = _Facts.read(self.array)
        for name in self.array.enabled:
            if name not in self.formats:
                self.formats[name] = self.array.tracefs.read(f"events/{name.replace(':', '/')}/format")

    def _describe_earlier(self, recorded: set[int]) -> None:
        """Add the formats of records that were in the buffer already, of events that were disabled since."""
        known = [*self.facts.ftrace, *self.formats.values()]
        missing = recorded - {int(found[1]) for found in map(_ID.search, known) if found}
        if not missing:
            return
        for name in self.array.event_names:
            folder = f"events/{name.replace(':', '/')}"
            if name not in self.formats and int(self.array.tracefs.read(f"{folder}/id")) in missing:
                self.formats[name] = self.array.tracefs.read(f"{folder}/format")

    def _wait(
        self,
        seconds: float | None,
        until: threading.Event | None,
        during: Callable[[], object] | None,
    ) -> None:
        if during is not None:
            during()
            return
        stop = until or threading.Event()
        end = time.monotonic() + (_MAX_SECONDS if seconds is None else seconds)
        while not any(cpu.is_done for cpu in self.cpus):
            left = end - time.monotonic()
            if left <= 0 or stop.wait(min(left, _LOOK)):
                break

    def _end(self, ends: int, threads: list[threading.Thread]) -> None:
        """Read the rest with the array off: reading makes events too, when system calls are traced."""
        was_on = False
        try:
            with self._may_be_cut():
                was_on = self.array.is_on
                if was_on:
                    self.array.is_on = False
        finally:
            os.close(ends)
            for thread in threads:
                thread.join()
            with self._may_be_cut():
                if was_on:
                    self.array.is_on = True

    def write(self) -> Path:
        """Write the trace.dat into the folder and return its path."""
        written = self.folder / "trace.dat"
        with written.open("wb") as stream:
            write_tracedat(stream, self._content())
            stream.flush()
            os.fsync(stream.fileno())
        return written

    def _content(self) -> TraceContent:
        layout, facts = self.layout(), self.facts
        formats = [("ftrace", text) for text in facts.ftrace]
        formats += [(name.partition(":")[0], text) for name, text in sorted(self.formats.items())]
        pages = tuple(CpuPages(cpu.number, cpu.blocks(layout)) for cpu in self.cpus)
        host = os.uname()
        return TraceContent(
            # As the top buffer: readers of the file do not care which one of the kernel it was.
            buffers=(BufferContent(pages, clock=facts.clock),),
            formats=tuple(formats),
            header_page=facts.header_page,
            header_event=facts.header_event,
            kallsyms=facts.kallsyms,
            printk_formats=facts.printk_formats,
            saved_cmdlines=facts.saved_cmdlines,
            saved_tgids=facts.saved_tgids,
            options=(
                text_option(OptionId.UNAME, " ".join(host)),
                version_option(facts.variables, facts.settings),
                *stats_options({cpu.number: cpu.stats_since() for cpu in self.cpus if cpu.after}),
            ),
            is_big_endian=layout.is_big_endian,
            long_size=layout.long_size,
            page_size=layout.page_size,
        )

    def stats(self) -> tuple[CpuStats, ...]:
        """Return what each CPU recorded and lost since the start; without an end, judging by its pages."""
        if self.is_cut:
            return tuple(
                CpuStats(cpu.number, cpu.moved.n_pages, cpu.n_records, cpu.moved.n_lost, 0)
                for cpu in self.cpus
            )
        made = []
        for cpu in self.cpus:
            counts = read_stats(cpu.stats_since())
            overrun = counts.get("overrun", 0) + counts.get("commit overrun", 0)
            dropped = counts.get("dropped events", 0)
            made.append(CpuStats(cpu.number, cpu.moved.n_pages, cpu.n_records, overrun, dropped))
        return tuple(made)
