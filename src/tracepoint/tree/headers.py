"""Trace headers on disk: reading one with its includes, and finding those of a tree."""

from __future__ import annotations

import contextlib
import gc
import re
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from tracepoint.errors import SourceError
from tracepoint.model.read import read_header_text
from tracepoint.source.closure import SharedFiles, names_in
from tracepoint.source.text import decode
from tracepoint.tree.creators import Creators, includes_of
from tracepoint.tree.disk import DISK
from tracepoint.tree.kept import KeptAnswers, KeptFiles
from tracepoint.tree.loader import FileLoader, find_kernel_root, kernel_include_paths, make_config
from tracepoint.tree.makefiles import macro_flags
from tracepoint.tree.opening import read_input

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tracepoint.model.event import TraceHeader
    from tracepoint.source.config import Config
    from tracepoint.source.text import SourceFile
    from tracepoint.tree.disk import Disk

#: The state that `read_header` keeps between calls.
_KEPT, _ANSWERS = KeptFiles(), KeptAnswers()
#: How far above an included part the header that includes it may be.
_MAX_FOLDERS_UP = 4


class HeaderReader:
    r"""Reads trace headers of one tree or include path, sharing what they include.

    `include_paths` are searched after the includer's folder; if the header is in a kernel tree,
    that tree's come after them, and its configuration decides `#if`.

    >>> HeaderReader().read_text("#define TRACE_SYSTEM demo\n").system
    'demo'
    """

    def __init__(
        self,
        include_paths: Iterable[Path] = (),
        *,
        config: Config | None = None,
        defines: dict[str, str] | None = None,
        arch: str = "x86",
        make_loader: Callable[[Iterable[Path]], FileLoader] | None = None,
        creators: Creators | None = None,
        disk: Disk = DISK,
        kept: KeptFiles | None = None,
    ) -> None:
        self._disk = disk
        self._kept = kept
        self._given_paths = tuple(include_paths)
        self._given_config = config
        self._defines = defines
        self._arch = arch
        self._loaders: dict[Path | None, FileLoader] = {}
        self._configs: dict[Path | None, Config] = {}
        self._make_loader = make_loader or partial(FileLoader, disk=disk, kept=kept)
        self._creators = {creators.root: creators} if creators is not None else {}
        self._shared: dict[Path | None, SharedFiles] = {}

    def _loader(self, root: Path | None) -> FileLoader:
        if root not in self._loaders:
            below = kernel_include_paths(root, self._arch, self._disk) if root else ()
            self._loaders[root] = self._make_loader((*self._given_paths, *below))
        return self._loaders[root]

    def _config(self, root: Path | None) -> Config:
        if self._given_config is not None:
            return self._given_config
        if root not in self._configs:
            self._configs[root] = make_config(root, defines=self._defines, disk=self._disk)
        return self._configs[root]

    def _shared_files(self, root: Path | None) -> SharedFiles:
        if root not in self._shared:
            names_of = names_in if self._kept is None else self._kept.names
            self._shared[root] = SharedFiles(names_of)
        return self._shared[root]

    def take_visited(self) -> set[str]:
        """Return the paths of the included files that were requested since the last call."""
        visited: set[str] = set()
        for loader in self._loaders.values():
            visited |= loader.take_asked()
        for shared in self._shared.values():
            visited |= shared.visited
            shared.visited.clear()
        return visited

    def included(self, path: PurePath | str, text: str) -> Iterator[SourceFile]:
        """Yield the files that the text of a C file includes itself, as far as they are found."""
        loader = self._loader(find_kernel_root(Path(self._disk.real(str(path))).parent, self._disk))
        for name, is_quoted in includes_of(text):
            file = loader.load(name, is_quoted=is_quoted, includer=str(path))
            if file is not None:
                yield file

    def read_text(self, text: str, path: str = "<text>") -> TraceHeader:
        """Read a header from text, with this reader's include paths."""
        return read_header_text(text, path, config=self._config(None), loader=self._loader(None))

    def read(self, path: PurePath | str) -> TraceHeader:
        """Read one trace header; raises SourceError when the file cannot be read at all."""
        path = Path(path)
        disk = self._disk
        root = find_kernel_root(Path(disk.real(str(path))).parent, disk)
        loader = self._loader(root)
        try:
            given = loader.given(str(path))
            data = disk.read_noted(str(path)) if given is None else None
            text = decode(read_input(path) if data is None else data) if given is None else given
        except OSError as error:
            raise SourceError(f"cannot read {path}: {error.strerror or error}") from error
        header = self._read(text, path, root, loader, ())
        missing = {d.message.split()[0] for d in header.diagnostics if d.code == "TP009"}
        if missing:
            # Some headers are included by another one that defines their field macros first.
            siblings = list(_defining_siblings(path, missing, loader, disk))
            if siblings:
                header = self._read(text, path, root, loader, siblings)
        if not header.system and any(d.code == "TP007" for d in header.diagnostics):
            return _without_borrowed(header, path, root, loader, disk)
        if header.form.define_trace is not None and not header.form.include_path:
            # drivers/cxl/core/Makefile: CFLAGS_trace.o = -DTRACE_INCLUDE_PATH=.
            return replace(header, form=replace(header.form, built_with=macro_flags(path.parent, disk)))
        return header

    def _created_with(
        self, path: Path, root: Path | None, loader: FileLoader
    ) -> Iterable[tuple[str, bool, str]]:
        """Return what the C file that creates the tracepoints includes; without a tree, one nearby."""
        folder = root or Path(self._disk.real(str(path))).parent
        if folder not in self._creators:
            self._creators[folder] = Creators(folder, None if root else self._nearby(folder), self._disk)
        return _LazyIncludes(path.absolute(), loader, self._creators[folder], self._disk)

    def _nearby(self, folder: Path) -> list[Path]:
        """Return C files near a header outside any tree: not all, since this may be a home or /tmp."""
        folders = [folder, *(folder / name for name in self._disk.names(str(folder), "/"))]
        return [place / name for place in folders for name in self._disk.names(str(place), ".c")]

    def _read(
        self,
        text: str,
        path: Path,
        root: Path | None,
        loader: FileLoader,
        preload: Sequence[SourceFile],
    ) -> TraceHeader:
        return read_header_text(
            text,
            str(path),
            config=self._config(root),
            loader=loader,
            extra_includes=self._created_with(path, root, loader),
            preload=preload,
            shared=self._shared_files(root),
        )


class _LazyIncludes:
    """The includes of the C files that create a header's tracepoints, found on demand."""

    def __init__(self, path: Path, loader: FileLoader, creators: Creators, disk: Disk) -> None:
        self._disk = disk
        self._path = path
        self._loader = loader
        self._creators = creators

    def __iter__(self) -> Iterator[tuple[str, bool, str]]:
        creators = self._creators.of(self._path)
        for creator in creators:
            file = self._loader.read(str(creator))
            if file is not None:
                # Its own enums and macros count too, and quoted names find it in its own folder.
                yield creator.name, True, file.path
                yield from ((name, is_quoted, file.path) for name, is_quoted in includes_of(file.text))
        if not creators and self._path.parent.name == "events":
            yield from self._likely()

    def _likely(self) -> Iterator[tuple[str, bool, str]]:
        """Without C files, as in a headers package: headers of the same name, then other trace headers."""
        include = self._path.parent.parent.parent
        path = str(self._path)
        for folder in ("uapi/linux", "linux", "net"):
            for name in self._disk.names(str(include / folder), ".h"):
                if name.startswith(self._path.stem):
                    yield f"{folder}/{name}", False, path
        for name in self._disk.names(str(self._path.parent), ".h"):
            yield f"trace/events/{name}", False, path


def _defining_siblings(path: Path, names: set[str], loader: FileLoader, disk: Disk) -> Iterator[SourceFile]:
    """Yield the headers next to `path` that define one of the names."""
    wanted = re.compile(
        rf"^[ \t]*#[ \t]*define[ \t]+(?:{'|'.join(map(re.escape, sorted(names)))})\b", re.MULTILINE
    )
    for name in disk.names(str(path.parent), ".h"):
        if name == path.name:
            continue
        file = loader.read(str(path.parent / name))
        if file is not None and wanted.search(file.text):
            yield file


def _without_borrowed(
    header: TraceHeader, path: Path, root: Path | None, loader: FileLoader, disk: Disk
) -> TraceHeader:
    """Return a file without the events whose class a trace header around it declares."""
    name = re.escape(path.name)
    asks = re.compile(r"""#[ \t]*include[ \t]*[<"](?:[^<>"\n]*/)?""" + name + r"""[>"]""")
    folder = Path(disk.real(str(path))).parent
    for _ in range(_MAX_FOLDERS_UP):
        for name_beside in disk.names(str(folder), ".h"):
            beside = loader.read(f"{folder}/{name_beside}")
            if beside is not None and "TRACE_SYSTEM" in beside.text and asks.search(beside.text):
                left = tuple(d for d in header.diagnostics if d.code != "TP007")
                return replace(header, events=(), diagnostics=left)
        if folder in (root, folder.parent):
            break
        folder = folder.parent
    return header


@contextlib.contextmanager
def paused_collector() -> Iterator[None]:
    """Keep the garbage collector from walking a growing model again and again.

    Reading a whole tree creates millions of objects that all stay; a collector that visits
    them each time their number grows by a quarter takes half of the time. Headers that are read, checked and
    dropped in turn are freed without it: they contain no reference cycles.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def read_header(
    path: PurePath | str, *, include: Iterable[Path] = (), config: Config | None = None
) -> TraceHeader:
    """Read one trace header from disk.

    `include` are include paths, searched before those of the kernel tree that the header is in;
    `config` decides `#if`.  Raises SourceError when the file cannot be read.
    """
    with paused_collector():
        return HeaderReader(include, config=config, disk=_ANSWERS, kept=_KEPT).read(path)
