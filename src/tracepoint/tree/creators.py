"""Which C files of a tree define CREATE_TRACE_POINTS, and for which headers."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.source.text import decode

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

_MARK = b"CREATE_TRACE_POINTS"
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+CREATE_(?:TRACE_POINTS|CUSTOM_TRACE_EVENTS)\b", re.MULTILINE)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
#: Folders of a kernel tree in which no tracepoint is created.
_PASSED_OVER = frozenset({"Documentation", "tools", "scripts", "LICENSES"})
#: The definition may stand at the end (drivers/android/binder.c); no C file comes near this size.
_MAX_BYTES = 8 << 20


class Creators:
    """The C files below some folders that create tracepoints, found on first use.

    One scan of a whole kernel tree reads 29,000 files, about a second when they are cached; it is
    not made when `files`, those that define CREATE_TRACE_POINTS, are given.
    """

    def __init__(self, root: Path, files: Iterable[Path] | None = None) -> None:
        self.root = root
        self._files = files
        self._by_header: dict[str, list[Path]] | None = None

    def of(self, header: Path) -> list[Path]:
        """Return the C files that create the tracepoints of a header."""
        if self._by_header is None:
            self._by_header = {}
            for file in _creating_files(self.root) if self._files is None else self._files:
                for _, included in _included_after(file):
                    known = self._by_header.setdefault(Path(included).name, [])
                    if file not in known:
                        known.append(file)
        candidates = self._by_header.get(header.name, [])
        exact = [file for file in candidates if _is_meant(file, header)]
        return exact or candidates[:1]


def created_headers(root: str, path: str, headers: Container[str]) -> list[str]:
    """Return which of a tree's trace headers a C file creates the tracepoints of.

    All paths are relative to `root`.
    """
    file = Path(root, path)
    found: dict[str, None] = {}
    for includer, name in _included_after(file):
        chosen = _resolve(root, includer, name, headers)
        if chosen is None:
            # linux/bpf_trace.h stands for trace/events/xdp.h.
            through = Path(root, "include", name)
            inner = includes_of(decode(_bytes(through))) if name.endswith("trace.h") else []
            found.update(
                (c, None) for n, _ in inner if (c := _resolve(root, through, n, headers)) is not None
            )
        else:
            found[chosen] = None
    return list(found)


def _resolve(root: str, includer: Path, name: str, headers: Container[str]) -> str | None:
    """Return the trace header that an include means, None when it is not one of `headers`."""
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


def _creating_files(root: Path) -> Iterator[Path]:
    for top, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in _PASSED_OVER)
        for name in sorted(names):
            if name.endswith(".c"):
                path = Path(top, name)
                if _MARK in _bytes(path):
                    yield path


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES)
    except OSError:
        return b""


def _included_after(file: Path) -> Iterator[tuple[Path, str]]:
    """Yield what a file includes after it defines CREATE_TRACE_POINTS, with the including file.

    Some include their trace header through a header beside them (fs/afs/internal.h).
    """
    text = decode(_bytes(file))
    defined = _DEFINE.search(text)
    if defined is None:
        return
    for name, is_quoted in includes_of(text[defined.end() :]):
        yield file, name
        beside = file.parent / name
        if is_quoted and beside.is_file():
            yield from ((beside, inner) for inner, _ in includes_of(decode(_bytes(beside))))


def _is_meant(file: Path, header: Path) -> bool:
    """Whether an include of that name in `file` is this header and not another of the same name."""
    resolved = header.resolve()
    for includer, included in _included_after(file):
        if Path(included).name != header.name:
            continue
        if (includer.parent / included).resolve() == resolved or str(resolved).endswith(
            "/include/" + included
        ):
            return True
    return False
