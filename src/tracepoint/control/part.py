"""One file of a recording in the making: the pages of each CPU, in a folder with what describes them."""

from __future__ import annotations

import contextlib
import os
import time
from array import array as numbers

from tracepoint.control.drain import DrainEnd, DrainPlan
from tracepoint.tracefile.content import BufferContent, CpuPages, TraceContent
from tracepoint.tracefile.options import OptionId, text_option
from tracepoint.tracefile.recording import CpuStats, read_stats, stats_options, version_option
from tracepoint.tracefile.write import write_tracedat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tracepoint.control.facts import Description
    from tracepoint.control.reader import CpuReader
    from tracepoint.record.layout import PageLayout

# More than what is written before the space of the pages it was made of is given back.
RESERVED_BYTES = 1 << 20
_RESERVE = "reserve"


class RecordedPart:
    """What becomes one trace.dat, in a temporary folder next to `target`.

    `room` pages may be moved until it ends; then each CPU may move `share` more, so that records of one time
    come into one file.  `n_moving` readers have not left it; `cpus` are set by who makes them.
    """

    def __init__(self, target: str) -> None:
        self.folder = _made_folder(target)
        self.cpus: list[CpuReader] = []
        self.n_moving = 0
        self.is_last = False
        self.is_ended = False
        self.began = time.monotonic()
        self._end, end = os.pipe()
        self._ends = [end]
        self._share = 0

    def remove(self) -> None:
        """Remove the folder with everything in it."""
        self.end()
        os.close(self._end)
        with contextlib.suppress(FileNotFoundError):
            for path in self._paths():
                os.unlink(path)
            os.rmdir(self.folder)

    def prepare(self, layout: PageLayout, room: int, share: int) -> None:
        """Say how much may be moved, and keep the space that a full disk needs to complete the file."""
        self._layout = layout
        self._plan = DrainPlan(layout.page_size, self._end, numbers("q", [room]))
        self._share = share
        with open(f"{self.folder}/{_RESERVE}", "wb") as stream:
            os.posix_fallocate(stream.fileno(), 0, RESERVED_BYTES)

    def share_texts(self, other: RecordedPart) -> None:
        """Put the texts that describe this part into the folder of another one too."""
        spools = {cpu.spool for cpu in self.cpus}
        for path in self._paths():
            name = os.path.basename(path)
            if name == _RESERVE or path in spools:
                continue
            try:
                os.link(path, f"{other.folder}/{name}")
            except OSError:
                # A file system without links.
                with open(path, "rb") as source, open(f"{other.folder}/{name}", "wb") as copy:
                    copy.write(source.read())

    def collect(self, reader: CpuReader) -> None:
        """Move pages of one CPU until this part ends."""
        reader.collect(self._plan)
        if reader.end is DrainEnd.NO_ROOM and self._share:
            self.end()
            reader.collect(DrainPlan(self._plan.page_size, self._end, numbers("q", [self._share])))

    def end(self) -> None:
        """Let all readers move what is there, and end."""
        self.is_ended = True
        # Several readers may find at the same time that there is no room.
        with contextlib.suppress(IndexError):
            os.close(self._ends.pop())

    def leave_out_old(self, newest_ns: int) -> None:
        """Leave out pages that end before the newest time: each ends where the next one begins."""
        from bisect import bisect_right  # noqa: PLC0415 - for flight recorders only

        found = [(cpu, cpu.stamps(self._layout)) for cpu in self.cpus if cpu.moved.n_pages]
        begin = max((times[-1] for _, times in found), default=0) - newest_ns
        for cpu, times in found:
            cpu.n_old = max(bisect_right(times, begin) - 1, 0)

    @property
    def n_pages(self) -> int:
        """The pages so far."""
        return sum(cpu.moved.n_pages for cpu in self.cpus)

    @property
    def has_failed(self) -> bool:
        """Whether a reader could not go on in it."""
        return any(cpu.error is not None for cpu in self.cpus)

    @property
    def problem(self) -> str:
        """Why it ended where it could not be written any more, else empty."""
        problem = ""
        for one in self.cpus:
            if one.end is DrainEnd.TARGET and one.error is not None:
                lost = sum(cpu.moved.n_unsaved for cpu in self.cpus)
                problem = f"{one.error.strerror}; {lost} pages of records were lost with that"
        return problem

    def write(self, description: Description) -> str:
        """Write the trace.dat into the folder and return its path.

        What it is made of stays until it is complete, so that a kill leaves the one or the other, unless the
        disk has no room for both.
        """
        disk = os.statvfs(self.folder)
        n_needed = sum(os.stat(path).st_size for path in self._paths()) + RESERVED_BYTES
        is_short = disk.f_bavail * disk.f_frsize < n_needed
        for path in self._paths() if is_short else ():
            if path not in {cpu.spool for cpu in self.cpus}:
                os.unlink(path)
        # Not a name of a recording: after a kill the pages beside it are the recording.
        written = f"{self.folder}/trace.dat.part"
        with open(written, "wb") as stream:
            write_tracedat(
                stream,
                self._content(description, is_short),
                compression=description.compression,
                packed_kallsyms=description.packed_kallsyms(),
            )
            stream.flush()
            os.fsync(stream.fileno())
        return written

    def _paths(self) -> list[str]:
        return [f"{self.folder}/{name}" for name in os.listdir(self.folder)]

    def _content(self, description: Description, releases: bool) -> TraceContent:
        facts = description.facts
        formats = [("ftrace", text) for text in facts.ftrace]
        formats += [(name.partition(":")[0], text) for name, text in sorted(description.formats.items())]
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

    def stats(self, is_cut: bool) -> tuple[CpuStats, ...]:
        """Return what each CPU recorded and lost since the start; without an end, judging by its pages."""
        made = []
        for cpu in self.cpus:
            counts = read_stats(cpu.stats_since())
            overrun = counts.get("overrun", 0) + counts.get("commit overrun", 0)
            if is_cut:
                counts, overrun = {}, cpu.n_lost
            dropped = counts.get("dropped events", 0)
            made.append(CpuStats(cpu.number, cpu.n_saved, cpu.n_records, overrun, dropped))
        return tuple(made)


def _made_folder(target: str) -> str:
    """Make a folder of a new name next to a file, for this user only."""
    while True:
        # Not `tempfile`: that imports more than a recording does otherwise.
        parent, name = os.path.split(target)
        folder = os.path.join(parent, f".{name[:60]}.{os.urandom(6).hex()}")
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)
            return folder
