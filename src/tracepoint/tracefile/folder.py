"""Folders of `trace_pipe_raw`: the pages of each CPU as files, with the formats and texts of tracefs.

`pagefiles` finds the files, which may be compressed.  Formats are `events/*/*/format` or in a tar file; these
and the texts may be next to the folder too.
"""

from __future__ import annotations

import re
from io import BytesIO
from typing import TYPE_CHECKING

from tracepoint.errors import DecodeError, TracepointError
from tracepoint.record.layout import HEADER_EVENT, PageLayout, header_page_text, read_page_layout
from tracepoint.record.page import SIZE_MASK
from tracepoint.tracefile.buffers import TraceBuffer
from tracepoint.tracefile.compression import decompressor_named
from tracepoint.tracefile.container import DamageLog, Parts, PartsContainer
from tracepoint.tracefile.content import TraceContent
from tracepoint.tracefile.cpudata import CpuData
from tracepoint.tracefile.cursor import Cursor, decode
from tracepoint.tracefile.damage import Damage
from tracepoint.tracefile.filebytes import close_bytes, open_bytes
from tracepoint.tracefile.options import OptionId, text_option
from tracepoint.tracefile.pagefiles import PAGE_NAMES, cpu_files, other_recordings, page_folders
from tracepoint.tracefile.recording import TraceSettings, stats_options, version_option
from tracepoint.tracefile.sections import PACKED_KALLSYMS, read_packed, read_sized
from tracepoint.tracefile.tracedat import chosen_clock

if TYPE_CHECKING:
    import tarfile
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from tracepoint.tracefile.cpudata import Report
    from tracepoint.tracefile.filebytes import Bytes
    from tracepoint.tracefile.options import Option

_PACKED = r"(?:\.(?:zst|gz|xz|bz2))?"
_FORMAT = re.compile(r"(?:.*/)?(?P<system>[^/]+)/[^/]+/format")
_FORMATS_TAR = re.compile(r".*(?:format|event).*\.tar" + _PACKED)
_ENDS = ("", ".zst", ".gz", ".xz", ".bz2")
_LONG = re.compile(r"field:(?:unsigned )?long \w+;\toffset:\d+;\tsize:([48]);")
_MAX_TEXT = 1 << 27
_MAX_FORMAT = 1 << 20
_MAX_FILES = 1 << 16
_MAX_OTHERS = 10


def open_folder(folder: Path, log: DamageLog) -> PartsContainer:
    """Open a folder of `trace_pipe_raw`; raises DecodeError when it has no files of pages, and OSError."""
    files = cpu_files(folder)
    if not files:
        raise DecodeError(f"no pages: {PAGE_NAMES}", str(folder))
    if not any(path.stat().st_size for paths in files.values() for path in paths.values()):
        reason = "every trace_pipe_raw is empty; in a live tracefs, `tracepoint record` reads them"
        raise DecodeError(reason, str(folder))
    opened: list[Bytes] = []

    def load(report: Report) -> Parts:
        data = {
            name: {cpu: _map(path, opened, report) for cpu, path in sorted(paths.items())}
            for name, paths in sorted(files.items())
        }
        heads = [block for found in data.values() for block in found.values()]
        _report_others(folder, report)
        texts = FolderTexts(folder, files, report, page_folders(files))
        content = texts.read(heads)
        layout = content.layout
        return Parts(
            content,
            tuple(
                TraceBuffer(
                    name,
                    texts.clock(name),
                    tuple(CpuData(n, 0, len(d), layout, d, None, report) for n, d in found.items()),
                )
                for name, found in data.items()
            ),
        )

    return PartsContainer(str(folder), "folder of trace_pipe_raw files", load, opened, log)


def _report_others(folder: Path, report: Report) -> None:
    """Report files of the folder that are recordings of their own."""
    for path in other_recordings(folder)[:_MAX_OTHERS]:
        report(Damage(None, 0, f"{path} is a recording of its own, which was not read: open it by its name"))


def _map(path: Path, opened: list[Bytes], report: Report) -> Bytes:
    data = open_bytes(path, report)
    opened.append(data)
    return data


class FolderTexts:
    """What stands next to pages: formats and texts; `files` are those of pages, by instance and CPU.

    `beside` are folders that are looked into before `folder`, and before the one above it.
    """

    def __init__(
        self, folder: Path, files: dict[str, dict[int, Path]], report: Report, beside: Iterable[Path] = ()
    ) -> None:
        self._folder = folder
        # Where the pages are, then where the user said.
        self._beside = tuple(beside) or (folder,)
        # Path("..").parent is ".", which is not above it; of a link it is the folder that the link is in.
        above = (folder.resolve() if folder.name == ".." else folder.absolute()).parent
        self._places = tuple(dict.fromkeys((*self._beside, folder, above)))
        self._files = files
        self._report = report

    def read(self, heads: list[Bytes]) -> TraceContent:
        """Return the content without its buffers; `heads` are the first pages."""
        formats = tuple(find_formats(self._places, self._report))
        layout = self._layout(formats, heads)
        stats = (o for name in sorted(self._files) for o in stats_options(self._stats(name), name))
        return TraceContent(
            (),
            formats,
            header_page_text(layout),
            self._text("header_event", "events/header_event") or HEADER_EVENT,
            self._text("kallsyms", "proc/kallsyms") or self._packed_kallsyms(is_big=layout.is_big_endian),
            self._own_text("printk_formats"),
            self.saved_cmdlines(),
            self._own_text("saved_tgids") or None,
            options=(*self._settings(), *self._machine(), *stats),
            n_cpus=1 + max((cpu for found in self._files.values() for cpu in found), default=0),
            is_big_endian=layout.is_big_endian,
            long_size=layout.long_size,
            page_size=layout.page_size,
        )

    def saved_cmdlines(self) -> str:
        """Return the text of `saved_cmdlines` as it is now."""
        return self._own_text("saved_cmdlines")

    def clock(self, instance: str = "") -> str:
        """Return the name of the clock of an instance (empty: the top one), which may have one of its own."""
        own = f"instances/{instance}/trace_clock"
        return chosen_clock((self._own_text(own) if instance else "") or self._own_text("trace_clock"))

    def _find(self, *names: str) -> Iterator[Path]:
        """Yield the files of a name, as they are or compressed: beside the pages first, then above them."""
        for folder in self._places:
            for name in names:
                for end in _ENDS:
                    path = folder / f"{name}{end}"
                    if path.is_file():
                        yield path

    def _text(self, *names: str) -> str:
        path = next(self._find(*names), None)
        return "" if path is None else _read_text(path, self._report)

    def _packed_kallsyms(self, *, is_big: bool) -> str:
        """Return kallsyms from the section of a trace.dat that a recording which was killed has left."""
        for path in sorted(self._beside[0].glob(f"{PACKED_KALLSYMS}*")):
            data = open_bytes(path, self._report)
            try:
                codec = decompressor_named(path.name.removeprefix(PACKED_KALLSYMS))
                if codec is not None:
                    section = read_packed(Cursor(data, big=is_big), codec)
                    return read_sized(Cursor(section, big=is_big), "kallsyms", is_wide=False)
            except DecodeError as error:
                self._report(Damage(None, error.offset or 0, f"{path.name}: {error.reason}"))
            except TracepointError as error:
                # A library is missing.
                self._report(Damage(None, 0, f"{path.name}: {error}"))
            finally:
                close_bytes(data)
        return ""

    def _own_text(self, name: str) -> str:
        """Return a text that is of one recording; report where it may be that of another one."""
        paths = list(self._find(name))
        if not paths:
            return ""
        text = _read_text(paths[0], self._report)
        if not any(paths[0].is_relative_to(folder) for folder in self._beside):
            reason = f"{paths[0]} is not beside the pages: it may be of another recording"
            self._report(Damage(None, 0, reason))
        for other in paths[1:]:
            # Nobody asked for what is above the folder that was named.
            if other.is_relative_to(self._folder) and _read_text(other, self._report) != text:
                self._report(Damage(None, 0, f"{other} differs from {paths[0]}, which was read"))
        return text

    def _settings(self) -> tuple[Option, ...]:
        """Return what was set while recording if it is beside the pages: elsewhere it may be older."""
        paths = [self._beside[0] / name for name in ("current_tracer", "trace_options")]
        texts = [_read_text(path, self._report) if path.is_file() else "" for path in paths]
        return (version_option({}, TraceSettings.read(*texts)),) if any(texts) else ()

    def _machine(self) -> tuple[Option, ...]:
        """Return what `uname -a` said of the machine, which says whose numbers system calls have."""
        name = self._text("uname").strip()
        return (text_option(OptionId.UNAME, name),) if name else ()

    def _stats(self, instance: str) -> dict[int, str]:
        found = {}
        for cpu, path in self._files[instance].items():
            name = path.name.partition(".")[0] if path.name.startswith("cpu") else ""
            stats = path.with_name(f"{name}.stats" if name else "stats")
            if stats.is_file():
                found[cpu] = _read_text(stats, self._report)
        return found

    def _layout(self, formats: Iterable[tuple[str, str]], data: list[Bytes]) -> PageLayout:
        text = self._text("header_page", "events/header_page")
        longs = (match[1] for _, format_text in formats if (match := _LONG.search(format_text)))
        long_size = int(next(longs, "8"))
        guess = PageLayout(8 + long_size, 4096 - 8 - long_size, 8, long_size)
        layout = guess
        if text:
            try:
                layout = read_page_layout(text)
            except DecodeError as error:
                self._report(Damage(None, 0, error.reason))
        is_big = _is_big_endian(data, layout)
        return PageLayout(
            layout.data_offset, layout.data_size, layout.commit_offset, layout.long_size, is_big
        )


def _read_text(path: Path, report: Report) -> str:
    data = open_bytes(path, report)
    try:
        if len(data) > _MAX_TEXT:
            report(Damage(None, _MAX_TEXT, f"{path.name} is longer than 128 MiB"))
        if not data:
            # Files of a live tracefs say that they are empty.
            with path.open("rb") as file:
                return decode(file.read(_MAX_TEXT))
        return decode(bytes(data[:_MAX_TEXT]))
    finally:
        close_bytes(data)


def find_formats(places: Iterable[Path], report: Report) -> Iterator[tuple[str, str]]:
    """Yield the (system, text) of `events/*/*/format`, or of a tar file, in the first place that has them."""
    for place in places:
        paths = sorted((place / "events").glob("*/*/format"))
        if paths:
            yield from ((path.parent.parent.name, _read_text(path, report)) for path in paths[:_MAX_FILES])
            return
        for path in sorted(place.iterdir()):
            if _FORMATS_TAR.fullmatch(path.name):
                yield from _packed_formats(path, report)
                return
    report(Damage(None, 0, "no formats: events/*/*/format, or formats.tar next to the pages"))


def _packed_formats(path: Path, report: Report) -> Iterator[tuple[str, str]]:
    import tarfile  # noqa: PLC0415 - most folders have no archive

    data = open_bytes(path, report)
    try:
        with tarfile.open(fileobj=BytesIO(bytes(data)), mode="r:") as archive:
            yield from _members(archive)
    except tarfile.TarError as error:
        report(Damage(None, 0, f"{path.name}: {error}"))
    finally:
        close_bytes(data)


def _members(archive: tarfile.TarFile) -> Iterator[tuple[str, str]]:
    for n_files, member in enumerate(archive):
        if n_files >= _MAX_FILES:
            return
        match = _FORMAT.fullmatch(member.name)
        if match is None or not member.isreg() or member.size > _MAX_FORMAT:
            continue
        file = archive.extractfile(member)
        if file is not None:
            yield match["system"], decode(file.read())


def _is_big_endian(data: list[Bytes], layout: PageLayout) -> bool:
    """Say in which byte order the sizes of the first pages make sense; pages do not say it."""
    place = slice(layout.commit_offset, layout.commit_offset + layout.long_size)
    for block in data:
        word = bytes(block[place])
        fits = [_is_commit(int.from_bytes(word, order), layout) for order in ("little", "big")]
        if fits[0] != fits[1]:
            return fits[1]
    return False


def _is_commit(word: int, layout: PageLayout) -> bool:
    # Flags are added as a negative int, so the upper half of a long of 8 bytes has no bit or all.
    return 0 < word & SIZE_MASK <= layout.data_size and word >> 32 in (0, 0xFFFFFFFF)
