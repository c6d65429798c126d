"""What a recording holds, free of any container: what trace.dat is written from and read into."""

from __future__ import annotations

from tracepoint.named import NamedTuple
from tracepoint.record.layout import HEADER_EVENT, PageLayout, header_page_text, read_page_layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from tracepoint.record.page import Buffer
    from tracepoint.tracefile.options import Option


class CpuPages(NamedTuple):
    """The pages of one CPU: `blocks` gives whole pages, some at a time, in the order of time.

    An iterator is enough: writers go through it once.
    """

    cpu: int
    blocks: Iterable[Buffer]


class BufferContent(NamedTuple):
    """One ring buffer: `name` is empty for the top one, else the name of the instance."""

    cpus: tuple[CpuPages, ...]
    name: str = ""
    clock: str = "local"


class TraceContent(NamedTuple):
    """Everything a recording holds.

    `formats` are (system, text of `format`) pairs; the texts are those of the tracefs files, and
    `saved_tgids` is None where the option record-tgid was off.  `options` are written
    as they stand; those that a writer generates (buffers, clocks, places) are not included.
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
    latency_text: str = ""

    @property
    def layout(self) -> PageLayout:
        """The layout of the pages; raises DecodeError when `header_page` does not define it."""
        return read_page_layout(self.header_page, is_big_endian=self.is_big_endian)
