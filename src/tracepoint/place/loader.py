"""Included files of the tree to change."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from tracepoint.tree.makefiles import MAKEFILES, include_flags

if TYPE_CHECKING:
    from tracepoint.place.kernel import KernelTree
    from tracepoint.source.text import SourceFile

_ARCH = re.compile(r"arch/(\w+)/")
#: The architecture whose headers are read for generic files.
_USUAL_ARCH = "x86"
_MAX_PATH = 1000
_OBJECT = re.compile(r"(?<![\w-])([\w-]+)\.o\b")
#: The maximum number of objects of one Makefile that are examined; drivers/gpu/drm/i915 has 400.
_MAX_OBJECTS = 500


class KernelLoader:
    """Finds what files of the tree include, each read once.

    `path` is the including file, if any: headers of its architecture and in -I folders
    of its Makefile are found too.
    """

    def __init__(self, kernel: KernelTree, path: str = "") -> None:
        self._kernel = kernel
        self._added: dict[str, tuple[str, ...]] = {}
        self._folder = str(PurePosixPath(path).parent)
        self.arch = arch_of(path)
        used = f"arch/{self.arch or _USUAL_ARCH}/include"
        self._folders = (used, "include", f"{used}/uapi", "include/uapi")

    def load(self, name: str, *, is_quoted: bool, includer: str) -> SourceFile | None:
        """Return the file that `#include` names, None when the tree does not have it."""
        beside = str(PurePosixPath(includer).parent)
        names = [name]
        if name.startswith(("asm/", "uapi/asm/")):  # files that the build generates (generic-y of Kbuild)
            names.append(name.replace("asm/", "asm-generic/", 1))
        for one in names:
            for folder in (beside, *self._folders) if is_quoted else self._folders:
                found = self._read(f"{folder}/{one}")
                if found is not None:
                    return found
        for folder in dict.fromkeys((*self._added_for(beside), *self._added_for(self._folder))):
            found = self._read(f"{folder}/{name}")
            if found is not None:
                return found
        return None

    def _read(self, path: str) -> SourceFile | None:
        path = normal_path(path)
        return self._kernel.included(path) if path else None

    def _added_for(self, folder: str) -> tuple[str, ...]:
        """Return the folders that the Makefiles of a folder and of its parents add with -I."""
        if folder in ("", "."):
            return ()
        if folder not in self._added:
            texts = [self._kernel.text(f"{folder}/{name}") or "" for name in MAKEFILES]
            own = [found for text in texts for found in include_flags(text, folder, ".")]
            around = self._added_for(str(PurePosixPath(folder).parent))
            self._added[folder] = (*own, *around)
        return self._added[folder]


def includers(kernel: KernelTree, path: str) -> list[SourceFile]:
    """Return the C files in the same folder that include a file, as kernel/sched/build_policy.c does rt.c."""
    folder, _, own = path.rpartition("/")
    lists = "".join(kernel.text(f"{folder}/{name}") or "" for name in MAKEFILES) if folder else ""
    wanted = re.compile(rf'^[ \t]*#[ \t]*include[ \t]*"{re.escape(own)}"', re.MULTILINE)
    names = list(dict.fromkeys(_OBJECT.findall(lists)))[:_MAX_OBJECTS]
    files = (kernel.included(f"{folder}/{name}.c") for name in names)
    return [file for file in files if file is not None and wanted.search(file.text)]


def arch_of(path: str) -> str:
    """Return the architecture that a file belongs to, empty if it is generic.

    >>> arch_of("arch/arm64/mm/fault.c"), arch_of("mm/memory.c")
    ('arm64', '')
    """
    found = _ARCH.match(path)
    return found[1] if found else ""


def normal_path(path: str) -> str:
    """Return a path without `.` and `..`, empty if it leads outside or is not that of a source file.

    >>> normal_path("fs/xfs/../iomap/trace.h"), normal_path("../x.h")
    ('fs/iomap/trace.h', '')
    """
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if not parts:
                return ""
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    is_plain = parts and path.isprintable() and not set(path) & set('"\\ ') and ".git" not in parts
    return "/".join(parts) if is_plain and len(path) <= _MAX_PATH else ""
