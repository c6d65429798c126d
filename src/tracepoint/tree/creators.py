"""The C files of a tree that define CREATE_TRACE_POINTS, and the headers they do it for."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.source.text import decode
from tracepoint.tree.disk import DISK
from tracepoint.tree.opening import read_if_sane

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    from tracepoint.tree.disk import Disk

_MARK = b"CREATE_TRACE_POINTS"
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+CREATE_(?:TRACE_POINTS|CUSTOM_TRACE_EVENTS)\b", re.MULTILINE)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
#: Folders of a kernel tree in which no tracepoint is created.
_PASSED_OVER = frozenset({"Documentation", "tools", "scripts", "LICENSES"})
#: Too many headers have this name for an include of it to be meaningful.
_COMMON_NAME = "trace.h"
#: Where most tracepoints of include/trace/events are created, and where folders have a subsystem's name.
_CORE = ("kernel", "mm", "block", "init", "io_uring", "lib", "net/core", "net/ipv4", "net/ipv6")
_MORE = ("fs", "virt", "arch/x86", "net")
_WITH_FOLDERS = ("fs", "net", "drivers", "sound", "sound/soc", "drivers/gpu", "drivers/net", "arch/x86")


class Creators:
    """The C files below a folder that create tracepoints, found on first use.

    A whole kernel tree has 30,000 files, so the likely folders are searched first, and the others
    only when no file there creates a header's tracepoints. With `files`, those that define
    CREATE_TRACE_POINTS, nothing is searched.
    """

    def __init__(self, root: Path, files: Iterable[Path] | None = None, disk: Disk = DISK) -> None:
        self.root = root
        self._disk = disk
        self._creating = None if files is None else [str(file) for file in files]
        self._searched: dict[str, bool] = {}
        self._below: dict[str, list[str]] = {}
        self._included: dict[str, list[tuple[Path, str]]] = {}

    def of(self, header: Path) -> list[Path]:
        """Return the C files that create the tracepoints of a header: those of the most likely folders."""
        candidates: dict[str, None] = {}
        for folders, is_own in self._likely_folders(str(header.resolve()), header.stem):
            candidates.update((f, None) for folder in folders for f in self._creating_below(folder))
            exact = [file for file in candidates if _is_meant(self._included_by(file), header)]
            # In the header's own folder its name is enough: fs/xfs/scrub/trace.c includes "scrub/trace.h".
            if exact or is_own:
                named = exact or self._naming(header, candidates)
                if named:
                    return [Path(file) for file in named]
        return [Path(file) for file in self._naming(header, candidates)[:1] if header.name != _COMMON_NAME]

    def _naming(self, header: Path, files: Iterable[str]) -> list[str]:
        return [f for f in files if any(Path(name).name == header.name for _, name in self._included_by(f))]

    def _creating_below(self, folder: str) -> list[str]:
        if self._creating is not None:
            return [file for file in self._creating if file.startswith(f"{folder}/")]
        if folder not in self._below:
            self._below[folder] = [file for file in _c_files(folder, self._disk) if self._creates(file)]
            self._disk.note_found(folder, self._below[folder])
        return self._below[folder]

    def _creates(self, file: str) -> bool:
        known = self._searched.get(file)
        if known is None:
            known = self._searched[file] = self._disk.ask(file, creates)
        return known

    def _likely_folders(self, header: str, stem: str) -> Iterator[tuple[list[str], bool]]:
        """Yield where the C file that creates a header's tracepoints may be, likeliest first, the root last.

        Each comes with whether it is the header's own folder.
        """
        root, disk = str(self.root), self._disk
        if "/include/" not in header.removeprefix(root):
            yield [os.path.dirname(header)], True  # noqa: PTH120
        words = dict.fromkeys((stem, *(word for word in re.split(r"[_-]", stem) if len(word) > 1)))
        named = [f"{root}/{base}/{word}" for base in _WITH_FOLDERS for word in words]
        yield [folder for folder in named if disk.is_folder(folder)], False
        for likely in (_CORE, _MORE):
            yield [f"{root}/{folder}" for folder in likely], False
        # drivers/scsi/qla2xxx creates the events of include/trace/events/qla.h.
        drivers = [f"{root}/drivers/{name}" for name in disk.names(f"{root}/drivers", "/")]
        yield sorted(f"{d}/{n}" for d in drivers for n in disk.names(d, "/") if n.startswith(stem)), False
        yield [root], False

    def _included_by(self, file: str) -> list[tuple[Path, str]]:
        if file not in self._included:
            self._included[file] = list(_included_after(Path(file), self._disk))
        return self._included[file]


def created_headers(root: str, path: str, headers: Container[str]) -> list[str]:
    """Return the trace headers of a tree whose tracepoints a C file creates.

    All paths are relative to `root`.
    """
    file = Path(root, path)
    found: dict[str, None] = {}
    for includer, name in _included_after(file, DISK):
        chosen = _resolve(root, includer, name, headers)
        if chosen is None:
            # linux/bpf_trace.h is for trace/events/xdp.h.
            through = Path(root, "include", name)
            inner = includes_of(decode(_bytes(through))) if name.endswith("trace.h") else []
            found.update(
                (c, None) for n, _ in inner if (c := _resolve(root, through, n, headers)) is not None
            )
        else:
            found[chosen] = None
    return list(found)


def _resolve(root: str, includer: Path, name: str, headers: Container[str]) -> str | None:
    """Return the trace header that an include refers to, None if it is not one of `headers`."""
    folder = includer.parent.relative_to(root)
    ends = [str(folder / name), f"include/{name}"]
    ends += [f"arch/{arch}/include/{name}" for arch in _arches(root)]
    ends += [str(parent / name) for parent in folder.parents]
    return next((end for e in ends if (end := os.path.normpath(e)) in headers), None)


@lru_cache(4)
def _arches(root: str) -> tuple[str, ...]:
    folder = Path(root, "arch")
    names = sorted(p.name for p in folder.iterdir() if p.is_dir()) if folder.is_dir() else []
    return tuple(sorted(names, key=lambda name: name != "x86"))


def includes_of(text: str) -> list[tuple[str, bool]]:
    r"""Return what a C text includes, in order, as `(name, is_quoted)`.

    >>> includes_of('#include <linux/mm.h>\n# include "xfs.h"\\n')
    [('linux/mm.h', False), ('xfs.h', True)]
    """
    return [(name, quote == '"') for quote, name in _INCLUDE.findall(text)]


def creating_files(folder: str, disk: Disk) -> list[str]:
    """Return the C files below a folder that create tracepoints."""
    return [file for file in _c_files(folder, disk) if disk.ask(file, creates)]


def creates(data: bytes | None) -> bool:
    """Return whether the bytes of a C file may define CREATE_TRACE_POINTS."""
    return data is not None and _MARK in data


def included_after(data: bytes | None) -> list[list[object]] | None:
    """Return what a C file includes after it defines CREATE_TRACE_POINTS, None when it does not."""
    text = decode(data or b"")
    defined = _DEFINE.search(text)
    return None if defined is None else _as_rows(includes_of(text[defined.end() :]))


def included(data: bytes | None) -> list[list[object]]:
    """Return what a C file includes."""
    return _as_rows(includes_of(decode(data or b"")))


def _as_rows(includes: Iterable[tuple[str, bool]]) -> list[list[object]]:
    return [[name, is_quoted] for name, is_quoted in includes]


def _c_files(root: str, disk: Disk) -> Iterator[str]:
    for top, names in disk.walk(root, _PASSED_OVER):
        yield from (f"{top}/{name}" for name in names if name.endswith(".c"))


def _bytes(path: Path | str) -> bytes:
    return read_if_sane(path) or b""


def _included_after(file: Path, disk: Disk) -> Iterator[tuple[Path, str]]:
    """Yield what a file includes after it defines CREATE_TRACE_POINTS, with the including file.

    Some include their trace header through a header next to them (fs/afs/internal.h).
    """
    for name, is_quoted in disk.ask(str(file), included_after) or ():
        yield file, name
        beside = file.parent / name
        if is_quoted and disk.is_file(str(beside)):
            yield from ((beside, inner) for inner, _ in disk.ask(str(beside), included))


def _is_meant(included: Iterable[tuple[Path, str]], header: Path) -> bool:
    """Return whether an include of that name is this header and not another of the same name."""
    resolved: Path | None = None
    for includer, name in included:
        if not name.endswith(header.name) or Path(name).name != header.name:
            continue
        resolved = resolved or header.resolve()
        if (includer.parent / name).resolve() == resolved or str(resolved).endswith(f"/include/{name}"):
            return True
    return False
