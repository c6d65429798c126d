"""What every container of records offers: `Container`; and one that was put together from parts."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Protocol, Self

from tracepoint.closing import Closing
from tracepoint.errors import LayoutError
from tracepoint.layout.format import read_format
from tracepoint.named import NamedTuple
from tracepoint.tracefile.damage import Damage
from tracepoint.tracefile.filebytes import close_bytes
from tracepoint.wording import counted, tail

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from tracepoint.layout.format import EventFormat
    from tracepoint.record.layout import PageLayout
    from tracepoint.tracefile.buffers import TraceBuffer
    from tracepoint.tracefile.content import TraceContent
    from tracepoint.tracefile.cpudata import Report
    from tracepoint.tracefile.filebytes import Bytes
    from tracepoint.tracefile.options import Option

_MAX_DAMAGE = 10_000


class Container(Protocol):
    """A recording that is open: pages of each CPU, and what is needed to understand them.

    The texts are those of the tracefs files; what the recording does not have is empty.
    """

    @property
    def path(self) -> str:
        """The file or folder, for messages."""
        ...

    @property
    def form(self) -> str:
        """What it is: `trace.dat version 7`, `perf.data`."""
        ...

    @property
    def compression(self) -> str:
        """The name of the compression of the pages within the file; `none` without."""
        ...

    @property
    def is_big_endian(self) -> bool:
        """The byte order of the records."""
        ...

    @property
    def n_cpus(self) -> int:
        """The CPUs of the machine."""
        ...

    @property
    def layout(self) -> PageLayout:
        """The layout of the pages."""
        ...

    @property
    def options(self) -> tuple[Option, ...]:
        """Options as of a trace.dat."""
        ...

    @property
    def formats(self) -> tuple[tuple[str, str], ...]:
        """The formats of all events, as (system, text of the `format` file)."""
        ...

    @property
    def events(self) -> dict[int, EventFormat]:
        """The records' formats by their id."""
        ...

    @property
    def kallsyms(self) -> str:
        """The text of /proc/kallsyms."""
        ...

    @property
    def printk_formats(self) -> str:
        """The text of `printk_formats`."""
        ...

    @property
    def saved_cmdlines(self) -> str:
        """The text of `saved_cmdlines`."""
        ...

    @property
    def saved_tgids(self) -> str | None:
        """The text of `saved_tgids`; None when record-tgid was off."""
        ...

    @property
    def latency_text(self) -> str:
        """The text of a latency trace, which has no pages."""
        ...

    @property
    def clock(self) -> str:
        """The name of the clock of the top buffer."""
        ...

    @property
    def buffers(self) -> tuple[TraceBuffer, ...]:
        """The ring buffers, the top one first."""
        ...

    @property
    def damage(self) -> tuple[Damage, ...]:
        """What could not be read so far."""
        ...

    def content(self) -> TraceContent:
        """Return everything as a value that `write_tracedat` takes."""
        ...

    @property
    def is_closed(self) -> bool:
        """Whether nothing more can be read."""
        ...

    def close(self) -> None:
        """Close the files."""
        ...

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class DamageLog:
    """What could not be read so far, each place once; at most 10,000 of them."""

    def __init__(self) -> None:
        self._found: dict[Damage, None] = {}

    def report(self, damage: Damage) -> None:
        """Add a place."""
        if len(self._found) < _MAX_DAMAGE:
            self._found[damage] = None

    def all(self) -> tuple[Damage, ...]:
        """Return the places in the order they were found."""
        return tuple(self._found)


def read_formats(
    formats: Sequence[tuple[str, str]], report: Report, *, is_big_endian: bool, long_size: int
) -> dict[int, EventFormat]:
    """Return formats by their id; a text that is not a format is reported."""
    found = {}
    for system, text in formats:
        try:
            event = read_format(text, system, is_big_endian=is_big_endian, long_size=long_size)
        except LayoutError as error:
            report(Damage(None, 0, f"a format of {system}: {error}"))
        else:
            found[event.id] = event
    return found


class Parts(NamedTuple):
    """What a `PartsContainer` holds: a content without its buffers, and the buffers, whose data is open."""

    content: TraceContent
    buffers: tuple[TraceBuffer, ...]


class PartsContainer(Closing):
    """A recording whose pages and texts were put together from other files than a trace.dat.

    `form` says what it is; `load` reads it when something is asked for; `opened` are the open files, which
    it may add to.
    """

    compression = "none"

    def __init__(
        self, path: str, form: str, load: Callable[[Report], Parts], opened: list[Bytes], log: DamageLog
    ) -> None:
        self.path = path
        self.form = form
        self._load = load
        self._opened = opened
        self._log = log
        self.is_closed = False

    def __repr__(self) -> str:
        return f"<PartsContainer {tail(self.path)}, {counted(len(self.buffers), 'buffer')}>"

    def close(self) -> None:
        """Close the files; nothing more can be read from them."""
        self.is_closed = True
        for data in self._opened:
            close_bytes(data)

    @cached_property
    def _parts(self) -> Parts:
        return self._load(self._log.report)

    @property
    def is_big_endian(self) -> bool:
        """The byte order of the records."""
        return self._parts.content.is_big_endian

    @property
    def n_cpus(self) -> int:
        """The CPUs of the machine, as far as the recording shows them."""
        return self._parts.content.n_cpus

    @cached_property
    def layout(self) -> PageLayout:
        """The layout of the pages."""
        return self._parts.content.layout

    @property
    def options(self) -> tuple[Option, ...]:
        """Options as of a trace.dat: what the recording says about itself."""
        return self._parts.content.options

    @property
    def formats(self) -> tuple[tuple[str, str], ...]:
        """The formats of all events, as (system, text of the `format` file)."""
        return self._parts.content.formats

    @cached_property
    def events(self) -> dict[int, EventFormat]:
        """The records' formats by their id; a text that is not a format is reported."""
        big, long_size = self.is_big_endian, self.layout.long_size
        return read_formats(self.formats, self._log.report, is_big_endian=big, long_size=long_size)

    @property
    def kallsyms(self) -> str:
        """The text of /proc/kallsyms."""
        return self._parts.content.kallsyms

    @property
    def printk_formats(self) -> str:
        """The text of `printk_formats`."""
        return self._parts.content.printk_formats

    @property
    def saved_cmdlines(self) -> str:
        """The text of `saved_cmdlines`."""
        return self._parts.content.saved_cmdlines

    @property
    def saved_tgids(self) -> str | None:
        """The text of `saved_tgids`; None when the recording does not have it."""
        return self._parts.content.saved_tgids

    @property
    def latency_text(self) -> str:
        """The text of a latency trace, which has no pages."""
        return self._parts.content.latency_text

    @property
    def buffers(self) -> tuple[TraceBuffer, ...]:
        """The ring buffers, the top one first."""
        return self._parts.buffers

    @property
    def clock(self) -> str:
        """The name of the clock of the top buffer; empty when it is not known."""
        return next((buffer.clock for buffer in self.buffers if not buffer.name), "")

    @property
    def damage(self) -> tuple[Damage, ...]:
        """What could not be read so far, in the order it was found; at most 10,000 entries."""
        return self._log.all()

    def content(self) -> TraceContent:
        """Return everything as a value that `write_tracedat` takes; pages are still read lazily."""
        return self._parts.content._replace(buffers=tuple(buffer.content() for buffer in self.buffers))
