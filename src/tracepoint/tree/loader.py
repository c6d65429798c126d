"""Included files on disk: include paths, and where a kernel tree has its headers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.source.config import Config, parse_dot_config
from tracepoint.source.text import SourceFile, decode
from tracepoint.tree.disk import DISK
from tracepoint.tree.makefiles import TREE_MARK, MakefileFolders
from tracepoint.tree.opening import read_input

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tracepoint.tree.disk import Disk
    from tracepoint.tree.kept import KeptFiles


def find_kernel_root(path: Path, disk: Disk = DISK) -> Path | None:
    """Return the kernel tree (or unpacked kernel headers) that contains a file, or None.

    A tree is recognized by include/linux/tracepoint.h.
    """
    for folder in [path, *path.parents]:
        if disk.is_file(f"{folder}/{TREE_MARK}"):
            return folder
    return None


def kernel_include_paths(root: Path, arch: str = "x86", disk: Disk = DISK) -> tuple[Path, ...]:
    """Return the include paths of a kernel tree, in the order of its Makefile.

    Debian splits headers in two: `linux-headers-V-common` has the text, `linux-headers-V-amd64`
    what was generated; whichever is used, the other one next to it is used too.
    """
    roots = [root, *_other_half(root, disk)]
    below = [
        f"arch/{arch}/include",
        f"arch/{arch}/include/generated",
        "include",
        f"arch/{arch}/include/uapi",
        f"arch/{arch}/include/generated/uapi",
        "include/uapi",
        "include/generated/uapi",
    ]
    return tuple(r / b for b in below for r in roots if disk.is_folder(str(r / b)))


def _other_half(root: Path, disk: Disk) -> list[Path]:
    """Return the generated half next to Debian's common headers, amd64 first."""
    name = root.name
    if not name.endswith("-common") or not name.startswith("linux-headers-"):
        return []
    prefix = name.removesuffix("common")
    others = [other for other in disk.names(str(root.parent), "/") if other.startswith(prefix)]
    halves = [o for o in others if o != name and disk.is_folder(f"{root.parent / o}/include")]
    return [root.parent / o for o in sorted(halves, key=lambda o: (not o.endswith("-amd64"), len(o)))[:1]]


def source_folders(headers: Path) -> list[Path]:
    """Return the folder of headers and the one that its Makefile includes, where most of the files are."""
    makefile = headers / "Makefile"
    text = decode(read_input(makefile)) if makefile.is_file() else ""
    names = re.findall(r"^include (.+)/Makefile$", text, re.MULTILINE)
    here = "$(dir $(lastword $(MAKEFILE_LIST)))"
    return [headers, *(headers / name.replace(here, "") for name in names)]


def read_kernel_config(root: Path, disk: Disk = DISK) -> dict[str, str]:
    """Return the CONFIG options of a configured tree, empty when it has not been configured."""
    for half in [root, *_other_half(root, disk)]:
        for name in ("include/config/auto.conf", ".config"):
            path = str(half / name)
            if disk.is_file(path):
                data = disk.read(path)
                return parse_dot_config(decode(read_input(path) if data is None else data))
    return {}


def _generic(name: str) -> list[str]:
    """Return the replacement for an asm header that the build would generate (Kbuild's generic-y)."""
    for prefix in ("", "uapi/"):
        if name.startswith(f"{prefix}asm/"):
            return [f"{prefix}asm-generic/{name.removeprefix(prefix + 'asm/')}"]
    return []


class FileLoader:
    """Finds included files: next to the includer (if quoted), in include paths, in its Makefile's folders.

    Every file is read once.  `texts` are those of files that differ from the disk, by
    absolute path; `kept` are files that earlier loaders have read.
    """

    def __init__(
        self,
        include_paths: Iterable[Path] = (),
        texts: Mapping[str, str] | None = None,
        disk: Disk = DISK,
        kept: KeptFiles | None = None,
    ) -> None:
        self._texts = texts or {}
        self._kept = kept
        self._disk = disk
        self.include_paths = tuple(str(p) for p in include_paths)
        self._files: dict[str, SourceFile | None] = {}
        self._found: dict[str, SourceFile | None] = {}
        self._makefiles = MakefileFolders(disk)
        self._asked: set[str] = set()

    def take_asked(self) -> set[str]:
        """Return the paths of the files that were returned since the last call."""
        asked, self._asked = self._asked, set()
        return asked

    def read(self, path: str) -> SourceFile | None:
        """Return the file at a path, None if it does not exist or is not readable."""
        if path not in self._files:
            given = self.given(path)
            self._files[path] = self._read(path) if given is None else SourceFile(path, given)
        file = self._files[path]
        if file is not None:
            self._asked.add(path)
        return file

    def given(self, path: str) -> str | None:
        """Return the text that replaces the file at a path, None if it is read from disk."""
        return self._texts.get(str(Path(path).resolve())) if self._texts else None

    def _read(self, path: str) -> SourceFile | None:
        if self._kept is not None:
            return self._kept.read(path)
        data = self._disk.read_noted(path)
        return None if data is None else SourceFile(path, decode(data))

    def load(self, name: str, *, is_quoted: bool, includer: str) -> SourceFile | None:
        """Return the file that an `#include` in `includer` names, None if it is not available."""
        if not name or "\0" in name or name.startswith("/"):
            return None
        if is_quoted:
            beside = self.read(str(Path(includer).parent / name))
            if beside is not None:
                return beside
        if name not in self._found:
            names = [name, *_generic(name)]
            found = (self.read(f"{folder}/{n}") for n in names for folder in self.include_paths)
            self._found[name] = next((file for file in found if file is not None), None)
        known = self._found[name]
        if known is not None:
            self._asked.add(known.path)
        return known or self._load_as_built(name, includer)

    def _load_as_built(self, name: str, includer: str) -> SourceFile | None:
        """Return a file that only the -I of the includer's Makefile finds."""
        for folder in self._makefiles.of(str(Path(includer).parent)):
            file = self.read(f"{folder}/{name}")
            if file is not None:
                return file
        return None


def make_config(
    root: Path | None,
    *,
    defines: dict[str, str] | None = None,
    config_text: str = "",
    disk: Disk = DISK,
) -> Config:
    """Return the configuration to read under: a given `.config`, else the tree's, else all on."""
    options = parse_dot_config(config_text) if config_text else read_kernel_config(root, disk) if root else {}
    return Config(options, is_on_by_default=not options, defines=defines or {})
