"""What a recording holds, free of any container: what trace.dat is written from and read into."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracepoint.tracefile.pages import PageLayout, read_page_layout

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tracepoint.tracefile.options import Option
    from tracepoint.tracefile.pages import Buffer

# The same words on every kernel since 2.6.31.
HEADER_EVENT = (
    "# compressed entry header\n"
    "\ttype_len    :    5 bits\n"
    "\ttime_delta  :   27 bits\n"
    "\tarray       :   32 bits\n"
    "\n"
    "\tpadding     : type == 29\n"
    "\ttime_extend : type == 30\n"
    "\ttime_stamp : type == 31\n"
    "\tdata max type_len  == 28\n"
)


def header_page_text(layout: PageLayout) -> str:
    """Write the text of `events/header_page` for a layout."""

    def line(ctype: str, offset: int, size: int, *, signed: bool) -> str:
        return f"\tfield: {ctype};\toffset:{offset};\tsize:{size};\tsigned:{int(signed)};\n"

    commit = layout.commit_offset
    return (
        line("u64 timestamp", 0, 8, signed=False)
        + line("local_t commit", commit, layout.long_size, signed=True)
        + line("int overwrite", commit, 1, signed=True)
        + line("char data", layout.data_offset, layout.data_size, signed=True)
    )


@dataclass(frozen=True, slots=True)
class CpuPages:
    """The pages of one CPU: `blocks` gives whole pages, some at a time, in the order of time.

    An iterator is enough: writers go through it once.
    """

    cpu: int
    blocks: Iterable[Buffer]


@dataclass(frozen=True, slots=True)
class BufferContent:
    """One ring buffer: `name` is empty for the top one, else the name of the instance."""

    cpus: tuple[CpuPages, ...]
    name: str = ""
    clock: str = "local"


@dataclass(frozen=True, slots=True)
class TraceContent:
    """Everything a recording holds.

    `formats` are (system, text of `format`) pairs; the texts are those of the tracefs files, and
    `saved_tgids` is None where the option record-tgid was off.  `options` are written
    as they stand; those that a writer makes itself (buffers, clocks, places) are not among them.
    `n_cpus` is the number of CPUs of the machine, at least the highest CPU plus one.
    """

    buffers: tuple[BufferContent, ...]
    formats: tuple[tuple[str, str], ...] = ()
    header_page: str = header_page_text(PageLayout())
    header_event: str = HEADER_EVENT
    kallsyms: str = ""
    printk_formats: str = ""
    saved_cmdlines: str = ""
    saved_tgids: str | None = None
    options: tuple[Option, ...] = ()
    n_cpus: int = 1
    is_big_endian: bool = False
    long_size: int = 8
    page_size: int = 4096
    latency_text: str = field(default="", repr=False)

    @property
    def layout(self) -> PageLayout:
        """The layout of the pages; raises DecodeError when `header_page` does not tell it."""
        return read_page_layout(self.header_page, is_big_endian=self.is_big_endian)
