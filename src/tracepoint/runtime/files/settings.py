"""The files of clock, options, sizes, switches and the markers."""

from __future__ import annotations

import errno
import os
import struct
from typing import TYPE_CHECKING

from tracepoint.layout.process_events import PRINT_ID, RAW_ID
from tracepoint.record.raw import RawRecord
from tracepoint.runtime.files.file import (
    SPACE,
    U64,
    File,
    Folder,
    failure,
    number_file,
    read_decimal,
    text_file,
)
from tracepoint.runtime.rings.symbols import MARKER
from tracepoint.runtime.triggers.trigger import PRINT, TriggerSet
from tracepoint.tracefile.write import clock_text

if TYPE_CHECKING:
    from tracepoint.runtime.files.state import InstanceState

MAX_MARKER = 1024
MAX_RAW = 3072
LEAST_MARKER = 9
SUB_BUFFER_KB = 4
MAX_SUB_BUFFER_KB = 512
_CLOCKS = clock_text("").split()


def tracing_on_file(state: InstanceState) -> File:
    """Make `tracing_on`: any number but 0 is on."""
    return number_file(lambda: int(state.instance.is_on), lambda value: state.switch(bool(value)))


def clock_file(state: InstanceState) -> File:
    """Make `trace_clock`; a change empties the rings."""

    def write(data: bytes) -> None:
        name = data.split(b"\0", 1)[0].strip(SPACE).decode(errors="replace")
        if name not in _CLOCKS:
            raise failure(errno.EINVAL)
        try:
            state.instance.clock = name
        except ValueError:
            raise failure(errno.EINVAL) from None

    return File(lambda: clock_text(state.instance.clock), write)


def options_text_file(state: InstanceState) -> File:
    """Make `trace_options`: one option a write, `no` in front clears."""

    def write(data: bytes) -> None:
        word = data.split(b"\0", 1)[0].strip(SPACE).decode(errors="replace")
        name = word.removeprefix("no")
        state.set_option(name, word == name)

    def read() -> str:
        return "".join(f"{'' if value else 'no'}{name}\n" for name, value in state.options.items())

    return File(read, write)


def options_folder(state: InstanceState) -> Folder:
    """Make options/: a file for each, 0 or 1."""

    def option(name: str) -> File:
        def write(data: bytes) -> None:
            value = read_decimal(data)
            if value > 1:
                raise failure(errno.EINVAL)
            state.set_option(name, bool(value))

        return File(lambda: f"{int(state.options[name])}\n", write)

    return Folder(lambda: list(state.options), lambda name: option(name) if name in state.options else None)


def size_file(state: InstanceState, *, has_hint: bool) -> File:
    """Make `buffer_size_kb`; every ring has this size."""

    def read() -> str:
        if state.is_expanded:
            return f"{state.size_kb}\n"
        return f"7 (expanded: {state.size_kb // 2 * 2 - 2})\n" if has_hint else "7\n"

    return File(read, lambda data: state.resize(read_decimal(data)))


def sub_buffer_size_file() -> File:
    """Make `buffer_subbuf_size_kb`: the pages of rings have one size; there is no memory for larger ones."""

    def write(data: bytes) -> None:
        wanted = read_decimal(data)
        if not 1 <= wanted <= MAX_SUB_BUFFER_KB:
            raise failure(errno.EINVAL)
        if wanted > SUB_BUFFER_KB:
            raise failure(errno.ENOMEM)

    return File(lambda: f"{SUB_BUFFER_KB}\n", write)


def total_size_file(state: InstanceState) -> File:
    """Make `buffer_total_size_kb`: of as many rings as there are CPUs, or threads if more."""

    def read() -> str:
        n_rings = max(len(state.serials()), state.n_cpus)
        if state.is_expanded:
            return f"{state.size_kb * n_rings}\n"
        return f"{7 * n_rings} (expanded: {(state.size_kb // 2 * 2 - 2) * n_rings})\n"

    return text_file(read)


def cpumask_file(state: InstanceState) -> File:
    """Make `tracing_cpumask`: hexadecimal, as cpumask_parse_user() reads it."""

    def write(data: bytes) -> None:
        try:
            mask = int(data.strip(SPACE).replace(b",", b""), 16)
        except ValueError:
            raise failure(errno.EINVAL) from None
        if mask >= U64 or mask & ~state.all_cpus:
            raise failure(errno.EOVERFLOW)
        state.cpumask = mask
        state.apply_gate()

    width = (state.n_cpus + 3) // 4
    return File(lambda: f"{state.cpumask:0{width}x}\n", write)


def marker_file(state: InstanceState) -> File:
    """Make `trace_marker`: text as a `print` record, 1024 bytes at most at once."""

    def write(data: bytes) -> int | None:
        if not state.options["markers"]:
            raise failure(errno.EINVAL)
        text = data[:MAX_MARKER]
        if text:
            if not state.instance.buffer.write(marker_record(text)):
                raise failure(errno.EBADF)
            fire_marker(state, text)
        return len(text)

    return File(write=write)


def marker_record(text: bytes) -> bytes:
    """Return the `print` record of a text: tracing_mark_write() in kernel/trace/trace.c."""
    ended = text if text.endswith(b"\n") else text + b"\n"
    size = 16 + max(len(text), LEAST_MARKER) + 2
    record = struct.pack("<HBBiQ", PRINT_ID, 0, 0, 0, MARKER) + ended + b"\0"
    return record.ljust(-(-size // 4) * 4, b"\0")


def fire_marker(state: InstanceState, text: bytes) -> None:
    """Run the triggers of events/ftrace/print: they see the text without the newline that is added."""
    triggers: TriggerSet | None = state.triggers.get(PRINT)
    if triggers is not None:
        # The thread that serves a mount differs from write to write: the process is taken for the writer.
        tid = os.getpid()
        record = struct.pack("<HBBiQ", PRINT_ID, 0, 0, tid, MARKER) + text.ljust(MAX_MARKER, b"\0")
        triggers.run(RawRecord(state.instance.buffer.now(), 0, record))


def raw_marker_file(state: InstanceState) -> File:
    """Make `trace_marker_raw`: a number of 4 bytes and data."""

    def write(data: bytes) -> int | None:
        if not state.options["markers"] or not 4 <= len(data) <= MAX_RAW:
            raise failure(errno.EINVAL)
        kept = data[:MAX_MARKER]
        if not state.instance.buffer.write(struct.pack("<HBBi", RAW_ID, 0, 0, 0) + kept):
            raise failure(errno.EBADF)
        return len(kept)

    return File(write=write)
