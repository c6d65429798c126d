"""Recording: the pages of a trace array's ring buffers, into a trace.dat.

One reader per CPU moves whole pages to a file in a temporary folder next to the target, beside the texts
that describe them.  The trace.dat is written only when all pages are there, whose space is given back on the
way where the disk is nearly full, and gets its name only when it is complete.
"""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
import threading
import time
from array import array as numbers
from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.control.drain import DrainEnd, DrainPlan
from tracepoint.control.facts import RecordedFacts, format_ids
from tracepoint.control.reader import CpuReader
from tracepoint.control.recording import check_target
from tracepoint.control.status import watching
from tracepoint.decode.rows import NO_ID
from tracepoint.errors import TracefsError, TracepointError
from tracepoint.tracefile.compression import codec_named
from tracepoint.tracefile.content import BufferContent, CpuPages, TraceContent
from tracepoint.tracefile.options import OptionId, text_option
from tracepoint.tracefile.recording import CpuStats, Recording, read_stats, stats_options, version_option
from tracepoint.tracefile.write import write_tracedat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tracepoint.control.array import ArrayFiles
    from tracepoint.control.files import PageSource
    from tracepoint.control.status import RecordStatus

_LOOK = 0.05
_NO_LIMIT = 1 << 62
_MAX_SECONDS = 1e6
# More than what is written before the space of the pages it was made of is given back.
_RESERVED_BYTES = 1 << 20
_MORE_PAGES = 4


@dataclass(frozen=True, slots=True)
class RecordLimits:
    """When a recording ends: see `record`."""

    seconds: float | None = None
    until: threading.Event | None = None
    during: Callable[[], object] | None = None
    max_bytes: int | None = None
    newest_ns: int | None = None
    while_on: bool = False

    def check(self) -> None:
        """Raise TracepointError for a recording that would not end, and for a wrong number."""
        if self.seconds is None and self.until is None and self.during is None:
            raise TracepointError("say when the recording ends: seconds, until or during")
        if self.seconds is not None and not 0 <= self.seconds <= _MAX_SECONDS:
            raise TracepointError(f"{self.seconds:g} seconds: 0 to {_MAX_SECONDS:g}")
        if self.max_bytes is not None and self.max_bytes < 1:
            raise TracepointError(f"a recording of at most {self.max_bytes} bytes: at least 1 is needed")
        if self.newest_ns is not None and self.newest_ns < 0:
            raise TracepointError(f"the newest {self.newest_ns} ns of a recording: 0 or more")

    def wait(self, is_done: Callable[[], bool]) -> None:
        """Wait until one of the limits is reached, or nothing more can come."""
        if self.during is not None:
            self.during()
            return
        stop = self.until or threading.Event()
        end = time.monotonic() + (_MAX_SECONDS if self.seconds is None else self.seconds)
        while not is_done():
            left = end - time.monotonic()
            if left <= 0 or stop.wait(min(left, _LOOK)):
                break


def record(
    array: ArrayFiles,
    path: str | os.PathLike[str],
    limits: RecordLimits,
    *,
    starts: bool = False,
    replace: bool = False,
    compression: str = "none",
    watch: Callable[[RecordStatus], None] | None = None,
) -> Recording:
    """Save what an array records as trace.dat, for some time, `until` an event is set, or `during` a call.

    What the ring buffer holds already comes first.  At the end the array stops recording for the
    moment that reading the rest takes.  With `starts` the array, which should be off, is turned on when its
    readers wait, and off at the end, so that nothing is lost before the first is there.  `max_bytes` ends it
    earlier: so large may the file be without compression (`none`, `zlib` or `zstd`); `while_on` ends it when
    a trigger turns the array off.  With `newest_ns` only the last pages are saved: those that end in that
    time before the last one begins.  `watch` gets a status every second, in a thread of its own.
    Where a process is recorded and ends before, the recording ends too (`is_cut`), and where the disk is
    full (`problem` says so): what was recorded until then is saved.  A file that is there is kept unless
    `replace`.  Raises TracefsError where no event is enabled or the kernel refuses, TracepointError for a
    wrong argument and for a file that cannot be written, of which nothing is left then.
    """
    limits.check()
    codec_named(compression)
    target = Path(path)
    try:
        check_target(target, replace=replace)
        with tempfile.TemporaryDirectory(prefix=f".{target.name[:60]}.", dir=target.parent) as folder:
            run = _Run(array, Path(folder), starts)
            run.collect(limits, watch)
            written = run.write(compression)
            check_target(target, replace=replace)
            written.replace(target)
    except OSError as error:
        raise TracepointError(f"{target}: {error.strerror or error}; nothing was saved") from error
    return Recording(target, run.stats(), run.is_cut, run.problem)


@dataclass(slots=True)
class _Run:
    """One recording: the array, where its pages are kept, and what describes them."""

    array: ArrayFiles
    folder: Path
    starts: bool
    cpus: list[CpuReader] = field(default_factory=list)
    formats: dict[str, str] = field(default_factory=dict)
    is_cut: bool = False
    problem: str = ""
    is_off_early: bool = False
    known: RecordedFacts | None = None

    def collect(self, limits: RecordLimits, watch: Callable[[RecordStatus], None] | None) -> None:
        """Move pages to the folder until it is time to end."""
        self._describe()
        layout = self.facts.layout
        if not self.formats and self.facts.settings.tracer in ("", "nop"):
            raise TracefsError(f"no event is enabled in {self.array.path}: there is nothing to record")
        room = self._room(self._save_description(), limits.max_bytes)
        sizes = self.array.buffer_bytes
        with contextlib.ExitStack() as opened:
            for cpu, size in sizes.items():
                source = self._open(f"{self.array.prefix}per_cpu/{cpu}/trace_pipe_raw")
                opened.callback(self._close, source)
                before = read_stats(self._stats(cpu))
                n_ring = size // layout.data_size + 2
                self.cpus.append(CpuReader(int(cpu[3:]), source, self.folder / cpu, n_ring, before))
            end, ends = os.pipe()
            opened.callback(os.close, end)
            plan = DrainPlan(layout, end, numbers("q", [room]))
            threads: list[threading.Thread] = []
            try:
                for reader in self.cpus:
                    thread = threading.Thread(target=self._collect, args=(reader, plan), daemon=True)
                    thread.start()
                    threads.append(thread)
                if self.starts:
                    self.array.is_on = True
                with watching(self._stats, sizes, lambda: self.n_bytes, watch):
                    limits.wait(lambda: self._is_over(limits))
            finally:
                self._end(ends, threads)
        self._find_problems()
        if limits.newest_ns is not None:
            self._leave_out_old(limits.newest_ns)
        self._describe_all()

    def _is_over(self, limits: RecordLimits) -> bool:
        """Return whether nothing more can come."""
        return any(cpu.end is not None for cpu in self.cpus) or (limits.while_on and not self.array.is_on)

    def _leave_out_old(self, newest_ns: int) -> None:
        """Leave out pages that end before the newest time: each ends where the next one begins."""
        found = [(cpu, cpu.stamps(self.facts.layout)) for cpu in self.cpus if cpu.moved.n_pages]
        begin = max((times[-1] for _, times in found), default=0) - newest_ns
        for cpu, times in found:
            cpu.n_old = max(bisect_right(times, begin) - 1, 0)

    def _collect(self, reader: CpuReader, plan: DrainPlan) -> None:
        """Read one CPU; where that ends early, what a command does from then on is neither kept nor lost."""
        reader.collect(plan)
        if reader.end is not DrainEnd.ENDED:
            with contextlib.suppress(TracefsError, OSError):
                if self.array.is_on:
                    self.is_off_early = True
                    self.array.is_on = False

    @property
    def facts(self) -> RecordedFacts:
        """What describes the pages, as it was read last."""
        if self.known is None:
            raise RuntimeError("nothing was described")
        return self.known

    @property
    def n_bytes(self) -> int:
        """The bytes of the pages so far."""
        return sum(cpu.moved.n_pages for cpu in self.cpus) * self.facts.layout.page_size

    def _save_description(self) -> int:
        """Write what describes the pages next to them, and keep space; return its bytes."""
        size = self.facts.save(self.folder, self.formats)
        with (self.folder / "reserve").open("wb") as stream:
            os.posix_fallocate(stream.fileno(), 0, _RESERVED_BYTES)
        return size

    def _room(self, n_described: int, max_bytes: int | None) -> int:
        if max_bytes is None:
            return _NO_LIMIT
        page_size = self.facts.layout.page_size
        # The data of each CPU begins at a page; options and a table stand around them.
        n_described += page_size * (len(self.array.buffer_bytes) + _MORE_PAGES)
        if max_bytes < n_described + page_size:
            raise TracepointError(
                f"at most {max_bytes} bytes: {n_described} are needed to describe the events"
            )
        return (max_bytes - n_described) // page_size

    def _find_problems(self) -> None:
        for one in self.cpus:
            if one.end is DrainEnd.TARGET and one.error is not None:
                lost = sum(cpu.moved.n_unsaved for cpu in self.cpus)
                self.problem = f"{one.error.strerror}; {lost} pages of records were lost with that"
                continue
            with self._may_be_cut():
                if one.error is not None:
                    raise one.error

    def _describe_all(self) -> None:
        """Read what is known at the end, for all records that were saved."""
        found = {number for one in self.cpus for number in one.count(self.facts.layout)}
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
        self.known = RecordedFacts.read(self.array, self.known)
        for name in self.array.enabled:
            if name not in self.formats:
                self.formats[name] = self.array.tracefs.read(f"events/{name.replace(':', '/')}/format")

    def _describe_earlier(self, recorded: set[int]) -> None:
        """Add the formats of records that were in the buffer already, of events that were disabled since."""
        missing = recorded - format_ids([*self.facts.ftrace, *self.formats.values()])
        if not missing:
            return
        for name in self.array.event_names:
            folder = f"events/{name.replace(':', '/')}"
            if name not in self.formats and int(self.array.tracefs.read(f"{folder}/id")) in missing:
                self.formats[name] = self.array.tracefs.read(f"{folder}/format")

    def _end(self, ends: int, threads: list[threading.Thread]) -> None:
        """Read the rest with the array off: reading makes events too, when system calls are traced."""
        was_on = False
        try:
            with self._may_be_cut():
                was_on = self.array.is_on
                if was_on:
                    self.array.is_on = False
                was_on = was_on or self.is_off_early
        finally:
            os.close(ends)
            for thread in threads:
                thread.join()
            with self._may_be_cut():
                if was_on and not self.starts:
                    self.array.is_on = True

    def write(self, compression: str) -> Path:
        """Write the trace.dat into the folder and return its path.

        What it is made of stays until it is complete, so that a kill leaves the one or the other, unless the
        disk has no room for both.
        """
        disk = os.statvfs(self.folder)
        n_needed = sum(path.stat().st_size for path in self.folder.iterdir()) + _RESERVED_BYTES
        is_short = disk.f_bavail * disk.f_frsize < n_needed
        for path in self.folder.iterdir() if is_short else ():
            if path not in {cpu.spool for cpu in self.cpus}:
                path.unlink()
        written = self.folder / "trace.dat"
        with written.open("wb") as stream:
            write_tracedat(stream, self._content(is_short), compression=compression)
            stream.flush()
            os.fsync(stream.fileno())
        return written

    def _content(self, releases: bool) -> TraceContent:
        facts = self.facts
        formats = [("ftrace", text) for text in facts.ftrace]
        formats += [(name.partition(":")[0], text) for name, text in sorted(self.formats.items())]
        pages = tuple(CpuPages(cpu.number, cpu.blocks(facts.layout, releases)) for cpu in self.cpus)
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
            is_big_endian=facts.layout.is_big_endian,
            long_size=facts.layout.long_size,
            page_size=facts.layout.page_size,
        )

    def stats(self) -> tuple[CpuStats, ...]:
        """Return what each CPU recorded and lost since the start; without an end, judging by its pages."""
        made = []
        for cpu in self.cpus:
            counts = read_stats(cpu.stats_since())
            overrun = counts.get("overrun", 0) + counts.get("commit overrun", 0)
            if self.is_cut:
                counts, overrun = {}, cpu.moved.n_lost
            dropped = counts.get("dropped events", 0)
            made.append(CpuStats(cpu.number, cpu.n_saved, cpu.n_records, overrun, dropped))
        return tuple(made)
