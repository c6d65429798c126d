"""What a Makefile says about the trace headers next to it: include folders and macros."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.source.text import decode
from tracepoint.tree.disk import DISK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tracepoint.tree.disk import Disk

#: What makes a folder a kernel tree.
TREE_MARK = "include/linux/tracepoint.h"
MAKEFILES = ("Makefile", "Kbuild")
_INCLUDE_FLAG = re.compile(r"-I[ \t]*(\$[({](?:src|srctree)[)}][^\s\\]*)")
_MACRO_FLAG = re.compile(r"-D[ \t]*([A-Za-z_]\w*)")
_WHERE = re.compile(r"(?:\$[({]srctree[)}]/)?\$[({]src[)}]/?")
_TREE = re.compile(r"\$[({]srctree[)}]/")


class MakefileFolders:
    """The include folders that Makefiles of a kernel tree add with -I, looked up by folder.

    fs/xfs/xfs_trace.c includes "xfs_shared.h", which is in fs/xfs/libxfs: `ccflags-y` says so.
    """

    def __init__(self, disk: Disk = DISK) -> None:
        self._disk = disk
        self._folders: dict[str, tuple[str, ...]] = {}
        self._roots: dict[str, str] = {}

    def of(self, folder: str) -> tuple[str, ...]:
        """Return what the Makefiles of a folder and of its parents in the tree add."""
        folder = os.path.abspath(folder)  # noqa: PTH100 (asked for very often)
        if folder not in self._folders:
            root = self._root(folder)
            own = _added(Path(folder), root, self._disk) if root else ()
            is_inside = bool(root) and folder != root
            around = self.of(os.path.dirname(folder)) if is_inside else ()  # noqa: PTH120
            self._folders[folder] = (*own, *around)
        return self._folders[folder]

    def _root(self, folder: str) -> str:
        """Return the kernel tree that contains a folder, empty if there is none."""
        if folder not in self._roots:
            if self._disk.is_file(f"{folder}/{TREE_MARK}"):
                self._roots[folder] = folder
            else:
                parent = os.path.dirname(folder)  # noqa: PTH120
                self._roots[folder] = "" if parent == folder else self._root(parent)
        return self._roots[folder]


def _added(folder: Path, root: str, disk: Disk) -> tuple[str, ...]:
    words = [word for name in MAKEFILES for word in disk.ask(str(folder / name), include_words)]
    return tuple(_folders(words, str(folder), root))


def macro_flags(folder: Path, disk: Disk = DISK) -> frozenset[str]:
    """Return the macros that the Makefile of a folder defines with -D."""
    return frozenset(word for name in MAKEFILES for word in disk.ask(str(folder / name), macro_words))


def include_words(data: bytes | None) -> list[str]:
    """Return the folders that a Makefile adds with -I, as it spells them."""
    return _INCLUDE_FLAG.findall(decode(data or b""))


def macro_words(data: bytes | None) -> list[str]:
    """Return the names of the macros that a Makefile defines with -D."""
    return _MACRO_FLAG.findall(decode(data or b""))


def include_flags(text: str, folder: str, root: str) -> list[str]:
    """Return the folders that the text of a folder's Makefile adds with -I.

    >>> include_flags("ccflags-y += -I $(src)/libxfs -I$(srctree)/net/x", "/tree/fs/xfs", "/tree")
    ['/tree/fs/xfs/libxfs', '/tree/net/x']
    """
    return list(_folders(_INCLUDE_FLAG.findall(text), folder, root))


def _folders(words: Iterable[str], folder: str, root: str) -> Iterator[str]:
    for word in words:
        beside = _WHERE.match(word)
        if beside:
            yield os.path.normpath(f"{folder}/{word[beside.end() :]}")
        elif _TREE.match(word):
            yield os.path.normpath(f"{root}/{_TREE.sub('', word, count=1)}")
