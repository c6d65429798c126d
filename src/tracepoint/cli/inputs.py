"""What a word on the command line names: headers, objects, format files, or folders of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.cli.files import read_bytes
from tracepoint.cli.names import split_event
from tracepoint.cli.tree.named_events import find_declaring, is_event_name, not_found, read_running
from tracepoint.errors import LayoutError, TracepointError
from tracepoint.layout.abi import Abi
from tracepoint.layout.compressed import OBJECT_ENDS, OBJECT_STARTS, decompress
from tracepoint.layout.compute import compute_layout
from tracepoint.layout.format import read_format
from tracepoint.layout.objects import read_object
from tracepoint.model.patterns import matches
from tracepoint.source.text import decode
from tracepoint.tree.disk import DISK
from tracepoint.tree.facts import char_sign
from tracepoint.tree.headers import HeaderReader, paused_collector
from tracepoint.tree.loader import FileLoader
from tracepoint.tree.scan import find_headers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tracepoint.cli.output import Output
    from tracepoint.cli.settings import Settings
    from tracepoint.layout.btf import Btf
    from tracepoint.layout.format import EventFormat
    from tracepoint.model.event import Event, TraceHeader
    from tracepoint.tree.disk import Disk

_ARCH = {
    "x86_64": "x86",
    "i386": "x86",
    "arm64": "arm64",
    "arm": "arm",
    "riscv64": "riscv",
    "s390x": "s390",
    "ppc64le": "powerpc",
}
_FORMAT_START = b"name:"
#: The path of input that was read from stdin.
STDIN = "<stdin>"
_NAMES_SHOWN = 12


@dataclass(frozen=True, slots=True)
class InputWord:
    """Everything a word names; `event` is the event or pattern after the colon, empty when there is none."""

    word: str
    event: str = ""
    headers: tuple[TraceHeader, ...] = ()
    formats: tuple[EventFormat, ...] = ()

    def events(self) -> Iterator[tuple[TraceHeader, Event]]:
        """Yield the events of the headers that the word names."""
        for header in self.headers:
            for event in header.events:
                if self.has(event.full_name):
                    yield header, event

    def has(self, full_name: str) -> bool:
        """Return whether the word names the event `system:name`: by name, a pattern, or all of its file."""
        return not self.event or matches(self.event, full_name)

    @property
    def names(self) -> list[str]:
        """The full names of all events of the file, named by the word or not."""
        declared = [event.full_name for header in self.headers for event in header.events]
        return declared + [f"{f.system}:{f.name}" for f in self.formats]


def find_abi(name: str) -> Abi:
    """Return the ABI called `name`; raises TracepointError, naming all, when there is none."""
    try:
        return Abi.named(name)
    except KeyError:
        known = ", ".join(abi.name.lower() for abi in Abi)
        raise TracepointError(f"no ABI {name!r}; known are {known}") from None


def make_reader(
    settings: Settings, texts: Mapping[str, str] | None = None, disk: Disk = DISK
) -> HeaderReader:
    """Return a reader of headers with the include folders and macros of the settings.

    `texts` are those of files that differ from the disk, by absolute path.
    """
    find_abi(settings.abi)
    macros = dict(_macro(word) for word in settings.define)
    include = tuple(Path(folder) for folder in settings.include)
    make_loader = partial(FileLoader, texts=texts, disk=disk)
    arch = _ARCH[settings.abi]
    return HeaderReader(include, defines=macros or None, arch=arch, make_loader=make_loader, disk=disk)


def read_headers(paths: Iterable[Path], settings: Settings, out: Output) -> list[TraceHeader]:
    """Read headers (`-` is stdin), with progress on a terminal."""
    with paused_collector():
        reader = make_reader(settings)
        paths = list(paths)
        with out.progress("reading", len(paths)) as progress:
            return [read_one(reader, path) for path in progress.over(paths)]


def read_one(reader: HeaderReader, path: Path, texts: Mapping[str, str] | None = None) -> TraceHeader:
    """Read one header (`-` is stdin); `texts` may hold its text as `-`."""
    if str(path) != "-":
        return reader.read(path)
    text = texts["-"] if texts and "-" in texts else decode(read_bytes(path))
    return reader.read_text(text, STDIN)


def open_input(word: str, settings: Settings, out: Output) -> InputWord:
    """Read the headers or formats that `FILE[:EVENT]`, a folder, or an event's name alone refers to.

    A folder gives its trace headers, or else its format files, or else its objects; a name gives the
    headers that declare it, or else the running kernel's format.  EVENT may be a pattern.  Raises OSError for
    missing files and TracepointError for files that cannot be read.
    """
    if is_event_name(word):
        return _open_named(word, settings, out)
    name, event = split_event(word)
    path = Path(name)
    if path.is_dir():
        return _open_folder(word, path, event, settings, out)
    data = b"" if name == "-" else read_bytes(path, OBJECT_STARTS)
    if data.startswith(OBJECT_STARTS):
        return _only(InputWord(word, event, formats=tuple(read_object(decompress(data)))))
    if data.startswith(_FORMAT_START):
        return InputWord(word, event, formats=(_read_format_file(path, data),))
    return _only(InputWord(word, event, headers=tuple(read_headers([path], settings, out))))


def compute_formats(
    given: InputWord, settings: Settings, btf: Btf | None = None
) -> tuple[list[EventFormat], list[str]]:
    """Return the formats of an input, computed for headers, and the reasons why others have none."""
    formats = [f for f in given.formats if given.has(f"{f.system}:{f.name}")]
    problems = []
    abi = find_abi(settings.abi)
    for header, event in given.events():
        if event.is_nop:
            continue
        try:
            formats.append(
                compute_layout(
                    event,
                    abi,
                    btf=btf,
                    environment=header.environment,
                    is_char_signed=char_sign(header.path),
                    enums=header.exported_enums,
                )
            )
        except TracepointError as error:
            problems.append(str(error))
    return formats, problems


def _open_folder(word: str, path: Path, event: str, settings: Settings, out: Output) -> InputWord:
    headers = find_headers([str(path)], settings.exclude)
    if headers:
        return InputWord(word, event, headers=tuple(read_headers(headers, settings, out)))
    files = sorted(p for p in path.rglob("*") if p.is_file())
    formats = [p for p in files if p.name == "format" or p.suffix == ".format"]
    if formats:
        return InputWord(word, event, formats=tuple(_read_format_file(p, read_bytes(p)) for p in formats))
    found: list[EventFormat] = []
    for file in files:
        if file.name.endswith(OBJECT_ENDS):
            found += read_object(decompress(read_bytes(file, OBJECT_STARTS)))
    if not found:
        raise TracepointError(f"{path}: no trace headers, format files or objects in this folder")
    return InputWord(word, event, formats=tuple(found))


def _read_format_file(path: Path, data: bytes) -> EventFormat:
    # tracefs has SYSTEM/EVENT/format, golden files are kept as SYSTEM/EVENT.format
    parts = path.absolute().parts
    system = parts[-3] if path.name == "format" and len(parts) > 2 else parts[-2]
    try:
        return read_format(decode(data), system)
    except LayoutError as error:
        raise LayoutError(f"{path}: {error}") from None


def _open_named(word: str, settings: Settings, out: Output) -> InputWord:
    """Read the headers that declare an event, without those that only mention it."""
    headers = read_headers(find_declaring(word, out), settings, out)
    found = InputWord(
        word, word, tuple(h for h in headers if any(matches(word, e.full_name) for e in h.events))
    )
    if not found.headers:
        found = InputWord(word, word, formats=tuple(read_running(word)))
    if not found.names:
        raise TracepointError(not_found(word))
    return found


def _only(given: InputWord) -> InputWord:
    """Check that the named event exists; raises TracepointError with a guess when it does not."""
    names = given.names
    if not given.event or any(map(given.has, names)):
        return given
    from difflib import get_close_matches  # noqa: PLC0415 - only a typing error needs it

    short = [name.partition(":")[2] for name in names]
    close = get_close_matches(given.event, [*short, *names], n=1)
    guess = f"did you mean {close[0]}? " if close else ""
    first = ", ".join(short[:_NAMES_SHOWN])
    rest = f" and {len(short) - _NAMES_SHOWN} more" if len(short) > _NAMES_SHOWN else ""
    there = f"it declares {first}{rest}" if short else "it declares no events"
    raise TracepointError(f"{given.word.partition(':')[0]}: no event {given.event!r}; {guess}{there}")


def _macro(word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    return name, value if equals else "1"
