"""What a Makefile says about the trace headers beside it: include folders and macros that it gives."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.source.text import decode
from tracepoint.tree.opening import read_if_sane

if TYPE_CHECKING:
    from collections.abc import Iterator

#: What makes a folder a kernel tree.
TREE_MARK = "include/linux/tracepoint.h"
MAKEFILES = ("Makefile", "Kbuild")
_INCLUDE_FLAG = re.compile(r"-I[ \t]*(\$[({](?:src|srctree)[)}][^\s\\]*)")
_MACRO_FLAG = re.compile(r"-D[ \t]*([A-Za-z_]\w*)")
_WHERE = re.compile(r"(?:\$[({]srctree[)}]/)?\$[({]src[)}]/?")
_TREE = re.compile(r"\$[({]srctree[)}]/")


class MakefileFolders:
    """The include folders that Makefiles of a kernel tree add with -I, asked for by folder.

    fs/xfs/xfs_trace.c includes "xfs_shared.h", which lies in fs/xfs/libxfs: `ccflags-y` says so.
    """

    def __init__(self) -> None:
        self._folders: dict[str, tuple[str, ...]] = {}
        self._roots: dict[str, str] = {}

    def of(self, folder: str) -> tuple[str, ...]:
        """Return what the Makefiles of a folder and of those around it in its tree add."""
        folder = os.path.abspath(folder)  # noqa: PTH100 (asked for very often)
        if folder not in self._folders:
            root = self._root(folder)
            own = _added(Path(folder), root) if root else ()
            is_inside = bool(root) and folder != root
            around = self.of(os.path.dirname(folder)) if is_inside else ()  # noqa: PTH120
            self._folders[folder] = (*own, *around)
        return self._folders[folder]

    def _root(self, folder: str) -> str:
        """Return the kernel tree that a folder lies in, empty when it lies in none."""
        if folder not in self._roots:
            if os.path.isfile(f"{folder}/{TREE_MARK}"):  # noqa: PTH113
                self._roots[folder] = folder
            else:
                parent = os.path.dirname(folder)  # noqa: PTH120
                self._roots[folder] = "" if parent == folder else self._root(parent)
        return self._roots[folder]


def _added(folder: Path, root: str) -> tuple[str, ...]:
    return tuple(flag for text in _texts(folder) for flag in include_flags(text, str(folder), root))


def macro_flags(folder: Path) -> frozenset[str]:
    """Return the macros that the Makefile of a folder defines with -D."""
    return frozenset(name for text in _texts(folder) for name in _MACRO_FLAG.findall(text))


def _texts(folder: Path) -> Iterator[str]:
    for name in MAKEFILES:
        data = read_if_sane(folder / name)
        if data is not None:
            yield decode(data)


def include_flags(text: str, folder: str, root: str) -> list[str]:
    """Return the folders that the text of a folder's Makefile adds with -I.

    >>> include_flags("ccflags-y += -I $(src)/libxfs -I$(srctree)/net/x", "/tree/fs/xfs", "/tree")
    ['/tree/fs/xfs/libxfs', '/tree/net/x']
    """
    found = []
    for word in _INCLUDE_FLAG.findall(text):
        beside = _WHERE.match(word)
        if beside:
            found.append(os.path.normpath(f"{folder}/{word[beside.end() :]}"))
        elif _TREE.match(word):
            found.append(os.path.normpath(f"{root}/{_TREE.sub('', word, count=1)}"))
    return found
