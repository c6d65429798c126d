"""What is still being written: a file or a pipe, and the pages of one CPU in it."""

from __future__ import annotations

import errno
import os
import select
import stat
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from tracepoint.errors import DecodeError
from tracepoint.record.page import add_lost
from tracepoint.record.pages import read_pages
from tracepoint.tracefile.damage import Damage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from tracepoint.record.raw import RawRecord
    from tracepoint.tracefile.cpudata import CpuData, Report

_STEP = 1 << 16
# What waits of one file: seconds of a busy CPU, little next to an interpreter.
_MOST_WAITING = 1 << 20
_STDIN = 0


class Live:
    """What was read of something that is still being written, and not taken yet.

    `fault` says why it is at its end, None where it is not or is complete.
    """

    def __init__(self) -> None:
        self.is_ended = False
        self.is_pipe = False
        self.fault: DecodeError | None = None
        #: What was read and not taken, and where that begins.
        self.waiting = b""
        self.at = 0

    @property
    def is_full(self) -> bool:
        """Whether so much is waiting that no more is read."""
        return len(self.waiting) >= _MOST_WAITING

    def take(self, n_bytes: int) -> bytes:
        """Return the first bytes of what is waiting, which are then gone."""
        data, self.waiting = self.waiting[:n_bytes], self.waiting[n_bytes:]
        self.at += len(data)
        return data

    def read(self) -> bool:
        """Read what is there now, unless much is waiting; return whether there was something."""
        raise NotImplementedError

    def fileno(self) -> int:
        """Return the number of a pipe, for `select.poll`."""
        raise NotImplementedError

    def close(self) -> None:
        """Close it."""


class LiveSource(Live):
    """Pages that a function returns, one a call, as long as there are any; `ends` after the last one.

    `read_page` takes the size of a page in bytes.  ESRCH ends it: the process that made the pages has ended.
    """

    def __init__(self, read_page: Callable[[int], bytes], page_size: int) -> None:
        super().__init__()
        self.ends = False
        self._read_page = read_page
        self._page_size = page_size

    def read(self) -> bool:
        """Read the pages that are there now, unless much is waiting; return whether there were any."""
        pages: list[bytes] = []
        ends, n_most = self.ends, max(_STEP // self._page_size, 1)
        while not self.is_ended and not self.is_full and len(pages) < n_most:
            try:
                page = self._read_page(self._page_size)
            except OSError as error:
                if error.errno != errno.ESRCH:
                    raise
                page, ends = b"", True
            if not page:
                self.is_ended = ends
                break
            pages.append(page)
        self.waiting += b"".join(pages)
        return bool(pages)


class LiveFile(Live):
    """A file that grows, a FIFO, a `trace_pipe_raw`, or standard input (None); reading it never waits.

    Raises OSError, and DecodeError for a device or a folder.
    """

    def __init__(self, path: Path | None) -> None:
        super().__init__()
        self._path = path
        self._n_bytes = 0
        # Without O_NONBLOCK a FIFO that has no writer yet, and a trace_pipe_raw, would wait.
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        self._number = _STDIN if path is None else os.open(path, flags)
        mode = os.fstat(self._number).st_mode
        self.is_pipe = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
        if not self.is_pipe and not stat.S_ISREG(mode):
            self.close()
            raise DecodeError("not a file or a pipe", str(path or "-"))

    def close(self) -> None:
        """Close it; standard input stays open."""
        if self._path is not None and self._number >= 0:
            os.close(self._number)
        self._number = -1

    def fileno(self) -> int:
        """Return its number, for `select.poll`."""
        return self._number

    def read(self) -> bool:
        """Read what is there now, unless much is waiting; return whether there was something.

        A pipe is at its end when its last writer has closed it; a file is when its name is that of another
        file, or it is shorter than it was.  Raises DecodeError when it is closed.
        """
        if self._number < 0:
            raise DecodeError("the recording is closed", str(self._path or "-"))
        if self.is_ended or self.is_full:
            return False
        if self.is_pipe:
            events = _events(self)
            if not events & select.POLLIN:
                # Before the first writer there is no POLLHUP.
                self.is_ended = bool(events)
                return False
        with suppress(BlockingIOError):
            data = b"" if self._is_shorter() else os.read(self._number, _STEP)
            self.is_ended = self.is_pipe and not data
            if not data and self._path is not None and not self.is_pipe:
                self._look_at_name(self._path)
            self.waiting += data
            return bool(data)
        return False

    def _is_shorter(self) -> bool:
        """Whether the file lost bytes that it had: those of tracefs have a size of 0 all the time."""
        n_bytes, before = os.fstat(self._number).st_size, self._n_bytes
        self._n_bytes = max(n_bytes, before)
        return n_bytes < before and not self.is_pipe

    def _look_at_name(self, path: Path) -> None:
        """Note when there is no more to come of a file: what `tail -F` looks for."""
        reason, own = "", os.fstat(self._number)
        if own.st_size < self._n_bytes:
            reason = f"truncated from {self._n_bytes} to {own.st_size} bytes"
        else:
            try:
                named = path.stat()
            except OSError:
                reason = "removed"
            else:
                is_same = (named.st_dev, named.st_ino) == (own.st_dev, own.st_ino)
                reason = "" if is_same else "replaced by another file"
        if reason:
            words = f"{reason} while it was followed: follow it again, or read the complete recording"
            self.fault, self.is_ended = DecodeError(words, str(path)), True


class LivePages:
    """The pages of a CPU as they come, and the records of them that are chosen.

    `head` is the next record, None when there is none at hand.  `lost` counts the events that the pages say
    were lost (LOST_UNKNOWN: some); `newest` is the latest stamp that was read, in the clock's unit.
    `idle_since` is when there were no more records, as the caller notes it; None while there are.
    """

    def __init__(self, cpu: int, file: Live, report: Report) -> None:
        self.cpu = cpu
        self.file = file
        self.lost = 0
        self.newest = 0
        self.head: RawRecord | None = None
        self.idle_since: float | None = None
        self._report = report
        self._records: Iterator[RawRecord] = iter(())
        self._data: CpuData | None = None

    def start(self, data: CpuData) -> None:
        """Say how pages are laid out and which records are chosen, as data of the CPU without bytes."""
        self._data = replace(data, cpu=self.cpu)

    def advance(self, *, is_last: bool = False) -> None:
        """Go on to the next record at hand; `is_last`: the page that is being written is not completed."""
        self.head = next(self._records, None)
        while self.head is None and self._data is not None and self._take_pages(self._data):
            self.head = next(self._records, None)
        if self.head is None and (is_last or self.file.is_ended) and self.file.waiting:
            reason = f"{len(self.file.waiting)} bytes are left over after the last whole page"
            self._report(Damage(self.cpu, self.file.at, reason))
            self.file.take(len(self.file.waiting))

    def _take_pages(self, data: CpuData) -> bool:
        """Take the whole pages that were read, and count what they lost; return whether there are any."""
        file, page_size = self.file, data.layout.page_size
        at, block = file.at, file.take(len(file.waiting) // page_size * page_size)
        pages = read_pages(block, data.layout)
        for _, head in pages.noted_heads():
            self.lost = add_lost(self.lost, head.lost)
        # In damaged pages the last is not the latest.
        self.newest = max(self.newest, max(pages.stamps, default=0))
        self._records = self._records_of(data, block, at)
        return bool(block)

    def _records_of(self, data: CpuData, block: bytes, at: int) -> Iterator[RawRecord]:
        def report(damage: Damage) -> None:
            self._report(replace(damage, offset=at + damage.offset))

        return replace(data, size=len(block), data=block, report=report).records()


def _events(file: LiveFile) -> int:
    poll = select.poll()
    poll.register(file, select.POLLIN)
    return next((events for _, events in poll.poll(0)), 0)


def wait_for(files: Iterable[Live], timeout_s: float) -> None:
    """Wait until a pipe has something, or for a time: files always seem to have."""
    poll = select.poll()
    for file in files:
        if file.is_pipe and not file.is_ended and not file.is_full:
            poll.register(file, select.POLLIN)
    poll.poll(max(int(timeout_s * 1000), 1))
