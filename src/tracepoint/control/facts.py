"""What a reader of a recording needs besides its pages: texts of the control files, and formats."""

from __future__ import annotations

import re
import sys

from tracepoint.layout.corefile import LASTING_VARIABLES
from tracepoint.named import NamedTuple
from tracepoint.record.layout import PageLayout, read_page_layout
from tracepoint.tracefile.recording import TraceSettings
from tracepoint.tracefile.sections import PACKED_KALLSYMS
from tracepoint.tracefile.write import clock_text, pack_kallsyms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

    from tracepoint.control.array import ArrayFiles

_TAR_NAME, _TAR_BLOCK = 100, 512
_ID = re.compile(r"^ID: (\d{1,9})$", re.MULTILINE)
# A field of a format that may hold an address of the kernel, a text that shows one, and what is computed with
# the kernel's variables.
_ADDRESS = re.compile(rf"%p|field:(?:unsigned long \w+;|[^;]*\*)|stack|{'|'.join(LASTING_VARIABLES)}")


class RecordedFacts(NamedTuple):
    """The texts of an array's control files at one time."""

    header_page: str
    header_event: str
    ftrace: tuple[str, ...]
    kallsyms: str
    modules: str
    variables: dict[str, int]
    printk_formats: str
    saved_cmdlines: str
    saved_tgids: str | None
    clock: str
    settings: TraceSettings

    @classmethod
    def read(
        cls, array: ArrayFiles, before: RecordedFacts | None = None, *, with_symbols: bool = True
    ) -> RecordedFacts:
        """Read them; what lasts as long as the kernel is taken from `before`.  Raises TracefsError.

        Without `with_symbols` those of a kernel, and what is found by them, are read for a tracer and for
        stacks only.
        """
        read, files = array.tracefs.read, array.tracefs.files
        settings = TraceSettings.read(
            *(
                read(array.prefix + name) if array.tracefs.exists(array.prefix + name) else ""
                for name in ("current_tracer", "trace_options")
            )
        )
        modules = files.modules()
        # The symbols are millions of bytes, which the kernel makes anew for each reader.
        kallsyms = before.kallsyms if before and before.modules == modules and files.symbols_last else ""
        with_symbols = with_symbols or settings.tracer not in ("", "nop") or "stacktrace" in settings.options
        if not kallsyms and (with_symbols or not files.symbols_last):
            kallsyms = files.kallsyms()
        variables = before.variables if before else {}
        if kallsyms and not variables:
            variables = files.variables(LASTING_VARIABLES, kallsyms)
        tgid_option = f"{array.prefix}options/record-tgid"
        has_tgids = array.tracefs.exists(tgid_option) and read(tgid_option).strip() == "1"
        return cls(
            before.header_page if before else read("events/header_page"),
            before.header_event if before else read("events/header_event"),
            before.ftrace if before else _ftrace_formats(array),
            kallsyms,
            modules,
            variables,
            read("printk_formats"),
            read("saved_cmdlines"),
            read("saved_tgids") if has_tgids else None,
            array.clock,
            settings,
        )

    @property
    def layout(self) -> PageLayout:
        """The layout of the pages."""
        return read_page_layout(self.header_page, is_big_endian=sys.byteorder == "big")

    def save(
        self, folder: str, formats: Mapping[str, str], compression: str = "none", packed_kallsyms: bytes = b""
    ) -> int:
        """Write them and formats by `system:event` next to the pages of CPUs; return the bytes of all texts.

        With them the folder is a recording that can be read, should this process be killed.  Kallsyms, nearly
        all of it, is written as `packed_kallsyms` where there is that: a section of a trace.dat with the name
        of its `compression` after it.
        """
        texts = {
            "header_page": self.header_page,
            "header_event": self.header_event,
            "printk_formats": self.printk_formats,
            "saved_cmdlines": self.saved_cmdlines,
            "saved_tgids": self.saved_tgids or "",
            "trace_clock": clock_text(self.clock),
            "current_tracer": self.settings.tracer,
            "trace_options": "\n".join(self.settings.options),
        }
        files = {name: text.encode(errors="surrogateescape") for name, text in texts.items()}
        named = {f"ftrace/{number}": text for number, text in enumerate(self.ftrace)}
        named |= {name.replace(":", "/"): text for name, text in formats.items()}
        files["formats.tar"] = _tar(
            {f"{name}/format": text.encode(errors="surrogateescape") for name, text in named.items()}
        )
        kallsyms = packed_kallsyms or self.kallsyms.encode(errors="surrogateescape")
        files[f"{PACKED_KALLSYMS}{compression}" if packed_kallsyms else "kallsyms"] = kallsyms
        for name, data in files.items():
            with open(f"{folder}/{name}", "wb") as stream:
                stream.write(data)
        return sum(map(len, files.values())) - len(kallsyms) + len(self.kallsyms)


class Description:
    """What describes the records of an array: its texts as last read, and formats by `system:event`.

    `compression` is that of the trace.dat that is made.
    """

    def __init__(self, array: ArrayFiles, compression: str) -> None:
        self.array = array
        self.compression = compression
        self.formats: dict[str, str] = {}
        self._known: RecordedFacts | None = None
        # What was compressed, and what it gave: millions of bytes, for each of the files.
        self._packed = ("", b"")

    @property
    def facts(self) -> RecordedFacts:
        """The texts, as they were read last."""
        if self._known is None:
            raise RuntimeError("nothing was described")
        return self._known

    def read(self, recorded: AbstractSet[int] = frozenset(), *, with_symbols: bool = False) -> None:
        """Read the texts, and add the formats of what is enabled now: it may change later.

        With the ids of records, also the formats of those that were in the buffer already, of events that
        were disabled since.  Without `with_symbols` they are read where an event may show one.
        """
        for name in self.array.enabled:
            if name not in self.formats:
                self.formats[name] = self.array.tracefs.read(f"events/{name.replace(':', '/')}/format")
        if recorded:
            self._read_earlier(recorded)
        shown = [*self.formats.values()]
        if self._known:
            # Of the tracers' own events, as markers and stacks, any may come.
            shown += [text for text in self._known.ftrace if format_ids([text]) & recorded]
        with_symbols = with_symbols or any(map(shows_addresses, shown))
        self._known = RecordedFacts.read(self.array, self._known, with_symbols=with_symbols)

    def _read_earlier(self, recorded: AbstractSet[int]) -> None:
        missing = recorded - format_ids([*self.facts.ftrace, *self.formats.values()])
        if not missing:
            return
        for name in self.array.event_names:
            folder = f"events/{name.replace(':', '/')}"
            if name not in self.formats and int(self.array.tracefs.read(f"{folder}/id")) in missing:
                self.formats[name] = self.array.tracefs.read(f"{folder}/format")

    def save(self, folder: str) -> int:
        """Write everything next to the pages of CPUs; return the bytes of all texts."""
        return self.facts.save(folder, self.formats, self.compression, self.packed_kallsyms())

    def packed_kallsyms(self) -> bytes:
        """Return kallsyms as a compressed section of a trace.dat; empty without compression."""
        kallsyms = self.facts.kallsyms
        if self._packed[0] is not kallsyms:
            is_big = self.facts.layout.is_big_endian
            self._packed = kallsyms, pack_kallsyms(kallsyms, self.compression, is_big_endian=is_big)
        return self._packed[1]


def _ftrace_formats(array: ArrayFiles) -> tuple[str, ...]:
    read, names = array.tracefs.read, array.tracefs.names("events/ftrace")
    return tuple(read(f"events/ftrace/{n}/format") for n in names if n not in ("enable", "filter"))


def format_ids(texts: list[str]) -> set[int]:
    r"""Return the ids in the texts of `format` files.

    >>> format_ids(["name: sched_switch\nID: 314\nformat:\n"])
    {314}
    """
    return {int(found[1]) for found in map(_ID.search, texts) if found}


def shows_addresses(text: str) -> bool:
    r"""Return whether records of a `format` may show an address of the kernel, or hold one in a field.

    >>> shows_addresses('\tfield:long id;\n\tfield:unsigned long args[6];\n\nprint fmt: "NR %ld"')
    False
    >>> shows_addresses('\tfield:unsigned long call_site;\n\nprint fmt: "%lx", REC->call_site')
    True
    """
    return _ADDRESS.search(text) is not None


def _tar(files: Mapping[str, bytes]) -> bytes:
    """Return an archive of files, as POSIX.1-1988 (ustar) says; not `tarfile`, which takes 2 ms to import."""
    parts = []
    for name, data in files.items():
        folder, _, last = name.partition("/") if len(name) > _TAR_NAME else ("", "", name)
        # Mode, owner, group, size and time.
        numbers = f"{0o644:07o}\0{0:07o}\0{0:07o}\0{len(data):011o}\0{0:011o}\0"
        head = (
            last.encode(errors="surrogateescape").ljust(_TAR_NAME, b"\0")
            + numbers.encode()
            # The sum of all bytes, which counts itself as blanks.
            + b" " * 8
            + b"0".ljust(101, b"\0")
            + b"ustar".ljust(6, b"\0")
            + b"00".ljust(82, b"\0")
            + folder.encode(errors="surrogateescape").ljust(167, b"\0")
        )
        counted = f"{sum(head):06o}\0 ".encode()
        parts += [head[:148], counted, head[156:], data, bytes(-len(data) % _TAR_BLOCK)]
    return b"".join((*parts, bytes(2 * _TAR_BLOCK)))
