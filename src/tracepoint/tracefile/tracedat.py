"""trace.dat, versions 6 and 7: `open_tracedat` and `read_tracedat` give a `TraceFile`.

Opening reads heads and tables only; texts and pages are read when they are asked for.  A part
that is damaged becomes an entry in `TraceFile.damage`, and the rest is read.  Only a file that cannot be
begun raises DecodeError.
"""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.closing import Closing
from tracepoint.errors import DecodeError
from tracepoint.record.layout import MAX_PAGE_BYTES, PageLayout, check_header_event, read_page_layout
from tracepoint.tracefile import sections
from tracepoint.tracefile.compression import decompressor_named
from tracepoint.tracefile.container import DamageLog, read_formats
from tracepoint.tracefile.content import TraceContent
from tracepoint.tracefile.damage import Damage
from tracepoint.tracefile.filebytes import close_bytes, file_bytes
from tracepoint.tracefile.head import read_head
from tracepoint.tracefile.options import OptionId, find_options
from tracepoint.tracefile.timing import time_map
from tracepoint.tracefile.version6 import read_version6
from tracepoint.tracefile.version7 import read_version7
from tracepoint.wording import counted, tail

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from tracepoint.layout.format import EventFormat
    from tracepoint.tracefile.buffers import TraceBuffer
    from tracepoint.tracefile.compression import Decompressor
    from tracepoint.tracefile.cursor import Cursor
    from tracepoint.tracefile.filebytes import Bytes
    from tracepoint.tracefile.options import Option
    from tracepoint.tracefile.timing import TimeMap

    Thing = TypeVar("Thing")

# What the writers of trace.dat make themselves; the other options are the recording's own.
_PARTS = range(OptionId.HEADER_INFO, OptionId.CMDLINES + 1)
_PLACES = {OptionId.DONE, OptionId.BUFFER, OptionId.STRINGS, OptionId.BUFFER_TEXT, OptionId.CPUCOUNT,
           OptionId.SAVED_TGIDS, *_PARTS}  # fmt: skip
# These point to compressed data of their own, which is not carried over.
_WITH_DATA = {OptionId.BTF_FILE, OptionId.MODULES_FILE}


class TraceFile(Closing):
    """A trace.dat that is open.

    `version` is 6 or 7; `compression` the name in the file (`none`, `zstd`, `zlib`); `options` all
    options in their order; `buffers` the top buffer, then the instances; `latency_text` the text of a latency
    trace, which has no pages.
    """

    def __init__(self, data: Bytes, path: str = "", log: DamageLog | None = None) -> None:
        self._data = data
        self.is_closed = False
        self.path = path
        self.head = read_head(data, path)
        self.version = self.head.version
        self.compression = self.head.compression
        self.is_big_endian = self.head.is_big_endian
        self.long_size = self.head.long_size
        self.page_size = self.head.page_size
        self._log = DamageLog() if log is None else log
        self._codec: Decompressor | None = decompressor_named(self.head.compression)
        read = read_version6 if self.version == 6 else read_version7
        self._parts = read(data, self.head, self._codec, path, self._report)
        self.options: tuple[Option, ...] = tuple(self._parts.options)
        self.latency_text = self._parts.latency_text

    def close(self) -> None:
        """Close the file; nothing more can be read from it."""
        self.is_closed = True
        close_bytes(self._data)

    def __repr__(self) -> str:
        n_buffers = counted(len(self.buffers), "buffer")
        return f"<TraceFile {tail(self.path)}, version {self.version}, {n_buffers}>"

    @property
    def n_cpus(self) -> int:
        """The CPUs of the machine, at least those that have data."""
        used = (cpu.cpu for buffer in self.buffers for cpu in buffer.cpus)
        return max(self._parts.n_cpus, 1 + max(used, default=-1))

    @property
    def form(self) -> str:
        """`trace.dat version 6` or 7."""
        return f"trace.dat version {self.version}"

    @property
    def damage(self) -> tuple[Damage, ...]:
        """What could not be read so far, in the order it was found; at most 10,000 entries."""
        return self._log.all()

    def _report(self, damage: Damage) -> None:
        self._log.report(damage)

    def _part(self, number: OptionId, read: Callable[[Cursor], Thing], otherwise: Thing) -> Thing:
        """Read one part; when it is damaged, report that and return `otherwise`."""
        offset = 0
        try:
            cursor = self._parts.cursor(number)
            if cursor is None:
                return otherwise
            offset = cursor.base + cursor.at
            found = read(cursor)
            if self.version == 7 and cursor.left:
                left = f"{cursor.left} bytes are left over in section {number.name}"
                self._report(Damage(None, offset, left))
        except DecodeError as error:
            place = offset if error.offset is None else error.offset
            self._report(Damage(None, place, f"{number.name}: {error.reason}"))
            return otherwise
        return found

    @cached_property
    def _header_info(self) -> tuple[str, str]:
        return self._part(OptionId.HEADER_INFO, sections.read_header_info, ("", ""))

    @property
    def header_page(self) -> str:
        """The text of `events/header_page`; empty when it is missing."""
        return self._header_info[0]

    @property
    def header_event(self) -> str:
        """The text of `events/header_event`; empty when it is missing."""
        return self._header_info[1]

    @cached_property
    def layout(self) -> PageLayout:
        """The layout of the pages; without header_page, that of the file's long and page."""
        try:
            check_header_event(self.header_event)
            return read_page_layout(self.header_page, is_big_endian=self.is_big_endian)
        except DecodeError as error:
            self._report(Damage(None, 0, error.reason))
        start = 8 + self.long_size
        size = min(max(self.page_size, start + 4), MAX_PAGE_BYTES) - start
        return PageLayout(start, size, 8, self.long_size, self.is_big_endian)

    @cached_property
    def formats(self) -> tuple[tuple[str, str], ...]:
        """The formats of all events, as (system, text of the `format` file)."""
        nothing: list[tuple[str, str]] = []
        own = self._part(OptionId.FTRACE_EVENTS, sections.read_ftrace_formats, nothing)
        return (*own, *self._part(OptionId.EVENT_FORMATS, sections.read_system_formats, nothing))

    @cached_property
    def events(self) -> dict[int, EventFormat]:
        """The records' formats by their id; a text that is not a format is reported."""
        # A long of the kernel is as wide as its commit word, whatever the recorder's own was.
        big, long_size = self.is_big_endian, self.layout.long_size
        return read_formats(self.formats, self._report, is_big_endian=big, long_size=long_size)

    def _text(self, number: OptionId, *, is_wide: bool = False) -> str:
        what = number.name.lower()
        return self._part(number, lambda cursor: sections.read_sized(cursor, what, is_wide=is_wide), "")

    @cached_property
    def kallsyms(self) -> str:
        """The text of /proc/kallsyms."""
        return self._text(OptionId.KALLSYMS)

    @cached_property
    def printk_formats(self) -> str:
        """The text of `printk_formats`."""
        return self._text(OptionId.PRINTK)

    @cached_property
    def saved_cmdlines(self) -> str:
        """The text of `saved_cmdlines`."""
        return self._text(OptionId.CMDLINES, is_wide=True)

    @property
    def saved_tgids(self) -> str | None:
        """The text of `saved_tgids`; None when the recording does not have it (record-tgid was off)."""
        found = find_options(self.options, OptionId.SAVED_TGIDS)
        return found[0].text if found else None

    @cached_property
    def _time_map(self) -> TimeMap | None:
        try:
            return time_map(self.options, is_big_endian=self.is_big_endian)
        except DecodeError as error:
            self._report(Damage(None, 0, f"the clock options: {error.reason}"))
        return None

    @cached_property
    def buffers(self) -> tuple[TraceBuffer, ...]:
        """The ring buffers, the top one first; empty for a latency trace."""
        return self._parts.buffers(self.layout, self._time_map)

    @property
    def clock(self) -> str:
        """The name of the clock of the top buffer; empty when the file does not name it."""
        for buffer in self.buffers:
            if not buffer.name and buffer.clock:
                return buffer.clock
        texts = [option.text for option in find_options(self.options, OptionId.TRACECLOCK)]
        return chosen_clock(texts[0]) if texts else ""

    def content(self) -> TraceContent:
        """Return everything as a value that `write_tracedat` takes; pages are still read lazily."""
        dropped = _PLACES | _WITH_DATA
        return TraceContent(
            tuple(buffer.content() for buffer in self.buffers),
            self.formats,
            self.header_page,
            self.header_event,
            self.kallsyms,
            self.printk_formats,
            self.saved_cmdlines,
            self.saved_tgids,
            options=tuple(option for option in self.options if option.id not in dropped),
            n_cpus=self.n_cpus,
            is_big_endian=self.is_big_endian,
            long_size=self.long_size,
            page_size=self.page_size,
            latency_text=self.latency_text,
        )


def chosen_clock(text: str) -> str:
    """Return the clock in brackets of the text of `trace_clock`; empty when there is none.

    >>> chosen_clock("local [global] counter")
    'global'
    """
    _, found, rest = text.partition("[")
    name, closed, _ = rest.partition("]")
    return name if found and closed else ""


def read_tracedat(data: Bytes, path: str = "") -> TraceFile:
    """Read a trace.dat from bytes; `path` is for messages.  Raises DecodeError."""
    return TraceFile(data, path)


def open_tracedat(path: str | os.PathLike[str]) -> TraceFile:
    """Open a trace.dat and read its heads; raises DecodeError and OSError."""
    with Path(path).open("rb") as file:
        data = file_bytes(file, os.fspath(path))
    if not data:
        raise DecodeError("an empty file", os.fspath(path), 0)
    try:
        return TraceFile(data, os.fspath(path))
    except BaseException:
        close_bytes(data)
        raise
