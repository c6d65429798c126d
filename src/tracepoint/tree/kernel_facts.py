"""Facts about a kernel that the text of records needs, from its own files: headers, configuration, BTF."""

from __future__ import annotations

import os
import re
import zlib
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.errors import LayoutError, SourceError, TreeError
from tracepoint.layout.btf import find_btf
from tracepoint.layout.compressed import kernel_payload
from tracepoint.printk.facts import NO_FACTS
from tracepoint.source.text import decode
from tracepoint.tree.loader import read_kernel_config, source_folders
from tracepoint.tree.opening import read_if_sane, read_input

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tracepoint.layout.btf import Btf
    from tracepoint.printk.facts import RenderFacts
    from tracepoint.tree.headers import HeaderReader

# Where distributions keep these, below the root of an installed (or unpacked) system.
_IMAGES = (
    "boot/vmlinux-{0}",
    "usr/lib/debug/boot/vmlinux-{0}",
    "usr/lib/debug/lib/modules/{0}/vmlinux",
    "lib/modules/{0}/build/vmlinux",
    "boot/vmlinuz-{0}",
    "lib/modules/{0}/vmlinuz",
    "usr/lib/modules/{0}/vmlinuz",
)
_CONFIGS = ("boot/config-{0}", "lib/modules/{0}/config", "usr/lib/modules/{0}/config")
_TREES = ("lib/modules/{0}/build", "usr/src/linux-headers-{0}")
_BTF, _CONFIG = Path("/sys/kernel/btf/vmlinux"), Path("/proc/config.gz")
_HZ = re.compile(r"^CONFIG_HZ=(\d{1,5})$", re.MULTILINE)
_VERSION = re.compile(r"^(?:VERSION|PATCHLEVEL|SUBLEVEL) = (\d+)$", re.MULTILINE)
_MAX_CONFIG = 8 << 20
_IMAGE_STARTS = (b"\x7fELF", b"\x9f\xeb", b"\xeb\x9f")
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class KernelFiles:
    """Files of one kernel: trees of headers or sources, configurations, images with BTF; the best first."""

    trees: tuple[Path, ...] = ()
    configs: tuple[Path, ...] = ()
    images: tuple[Path, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.trees or self.configs or self.images)

    def __add__(self, other: KernelFiles) -> KernelFiles:
        return KernelFiles(self.trees + other.trees, self.configs + other.configs, self.images + other.images)


def find_kernel_files(
    release: str, version: str = "", roots: Iterable[Path] = (Path("/"),), sources: Iterable[Path] = ()
) -> KernelFiles:
    """Return the available files of the kernel of one release (`uname -r`).

    Looked for below `roots`, which are laid out as an installed system; in the running kernel when it has
    this release; and in `sources`, trees whose Makefile has the version in `version` (`uname -v`).
    """
    if not release or "/" in release:
        return KernelFiles()
    is_running = os.uname().release == release
    trees, configs, images = [], [_CONFIG] if is_running else [], [_BTF] if is_running else []
    for root in roots:
        trees += [root / name.format(release) for name in _TREES]
        configs += [root / name.format(release) for name in _CONFIGS]
        images += [root / name.format(release) for name in _IMAGES]
    words = {word.partition("-")[0] for word in (release, *version.split())}
    trees += [tree for tree in sources if _version_of(tree) in words]
    return KernelFiles(
        tuple(dict.fromkeys(tree for found in trees if (tree := _with_text(found)) is not None)),
        _there(configs),
        _there(images),
    )


def given_kernel_files(path: Path) -> KernelFiles:
    """Return the files of a kernel that a path names: a tree, a system's root or package, or one file.

    Raises TreeError for anything else.
    """
    if path.is_dir():
        folders = (path, *sorted(path.glob("usr/src/linux-headers-*")))
        trees = tuple(dict.fromkeys(tree for folder in folders if (tree := _with_text(folder))))
        modules = path / "usr/lib/modules"
        configs = (path / ".config", *sorted(path.glob("boot/config-*")), *sorted(modules.glob("*/config")))
        images = (
            path / "vmlinux",
            *sorted(path.glob("boot/vmlinu[xz]-*")),
            *sorted(modules.glob("*/vmlinuz")),
        )
        found = KernelFiles(trees, _there(configs), _there(images))
    elif path.is_file():
        with path.open("rb") as stream:
            is_text = b"CONFIG_" in _unpacked(stream.read(_MAX_CONFIG))
        found = KernelFiles((), (path,), ()) if is_text else KernelFiles((), (), (path,))
    else:
        is_there = path.exists()
        raise TreeError(str(path), "neither a file nor a folder" if is_there else "no such file or folder")
    if not found:
        raise TreeError(str(path), "not a tree of kernel headers or sources, and no kernel below boot/")
    return found


def _there(paths: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(path for path in paths if path.is_file())


def _unpacked(data: bytes) -> bytes:
    """Return the beginning of a configuration; /proc/config.gz is compressed."""
    if data[:2] != b"\x1f\x8b":
        return data
    try:
        return zlib.decompressobj(wbits=31).decompress(data, _MAX_CONFIG)
    except zlib.error:
        return b""


def _version_of(tree: Path) -> str:
    makefile = tree / "Makefile"
    return ".".join(_VERSION.findall(decode(read_input(makefile)))) if makefile.is_file() else ""


def _with_text(folder: Path) -> Path | None:
    """Return the folder itself, or the other half of Debian's headers, that has the headers' text."""
    if not folder.is_dir():
        return None
    return next((f for f in source_folders(folder) if (f / "include/linux/tracepoint.h").is_file()), None)


class KernelKnowledge:
    """Constants, sizes and HZ of one kernel, each looked up in its files when it is first asked for.

    `notes` says which files could not be used, and why.
    """

    def __init__(self, files: KernelFiles) -> None:
        self.files = files
        self.notes: list[str] = []
        self._constants: dict[str, int | None] = {}
        # By tree: the trace headers that name each word.
        self._naming: dict[Path, dict[str, list[Path]]] = {}

    def facts(self, known: RenderFacts = NO_FACTS) -> RenderFacts:
        """Return `known` with the files' constants, sizes and HZ."""
        return replace(known, hz=known.hz or self.hz, constants=self.constant, sizeof=self.sizeof)

    @cached_property
    def hz(self) -> int | None:
        """Jiffies per second, from the configuration."""
        for path in self.files.configs:
            try:
                with path.open("rb") as stream:
                    text = _unpacked(stream.read(_MAX_CONFIG)).decode("utf-8", "replace")
            except OSError as error:
                self.notes.append(f"{path}: {error}")
                continue
            if found := _HZ.search(text):
                return int(found[1])
        for tree in self.files.trees:
            value = read_kernel_config(tree).get("CONFIG_HZ", "")
            if value.isdecimal():
                return int(value)
        return None

    def constant(self, name: str) -> int | None:
        """Return the value of an enum constant: from the trace headers that name it, else from BTF."""
        if name not in self._constants:
            self._constants[name] = self._find_constant(name)
        return self._constants[name]

    def _find_constant(self, name: str) -> int | None:
        for tree in self.files.trees:
            values = set(self._in_headers(tree, name))
            if values:
                # Where headers do not agree, which one is the event's is not known.
                return values.pop() if len(values) == 1 else None
        return self._btf.constant(name) if self._btf is not None else None

    @cached_property
    def _reader(self) -> HeaderReader:
        from tracepoint.tree.headers import HeaderReader  # noqa: PLC0415 - a third of what `read` imports

        return HeaderReader()

    def _in_headers(self, tree: Path, name: str) -> Iterator[int]:
        if tree not in self._naming:
            found = self._naming[tree] = {}
            for path in sorted((tree / "include/trace").rglob("*.h")):
                for word in set(_WORD.findall(decode(read_if_sane(path) or b""))):
                    found.setdefault(word, []).append(path)
        for path in self._naming[tree].get(name, ()):
            try:
                environment = self._reader.read(path).environment
            except (SourceError, OSError):
                continue
            value = environment.constant(name) if environment is not None else None
            if value is not None:
                yield value

    def sizeof(self, ctype: str) -> int | None:
        """Return the size in bytes of a type spelt in C, None if no BTF has it."""
        number = self._btf.find(ctype) if self._btf is not None else None
        try:
            return self._btf.size_of(number).size if self._btf is not None and number is not None else None
        except LayoutError:
            return None

    @cached_property
    def _btf(self) -> Btf | None:
        for path in self.files.images:
            try:
                found = find_btf(kernel_payload(read_input(path, _IMAGE_STARTS)))
            except (OSError, LayoutError, SourceError) as error:
                self.notes.append(f"{path}: {error}")
                continue
            if found is not None:
                return found
            self.notes.append(f"{path}: no BTF in it, or compressed in an unknown way")
        return None
