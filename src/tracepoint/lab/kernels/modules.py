"""Kernel modules of an unpacked package: which file, what it needs, in which order to load.

A package that was not installed has no `modules.dep` (depmod makes it), so the `.modinfo`
section of the modules themselves is read.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.errors import LabError, LayoutError
from tracepoint.layout.compressed import OBJECT_STARTS, decompress
from tracepoint.tree.opening import read_input

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class ModuleInfo:
    """The information in a module's `.modinfo`.

    `depends` are names of modules to load first, `soft_before` those its author wants before it,
    `aliases` the names under which the kernel asks for it, `has_events` whether it has trace events.
    """

    name: str
    path: Path
    depends: tuple[str, ...]
    soft_before: tuple[str, ...]
    aliases: tuple[str, ...]
    has_events: bool


def read_module(path: Path) -> bytes:
    """Return the ELF bytes of the module at `path` (`.ko`, `.ko.xz`, `.ko.zst`, ...); LabError if damaged."""
    data = read_input(path, OBJECT_STARTS)
    try:
        plain = decompress(data)
    except LayoutError as error:
        raise LabError(f"{path}: {error}") from None
    if plain is data and path.suffix != ".ko":
        raise LabError(f"{path}: damaged {path.suffix[1:]} data: it does not begin as such data does")
    return plain


def module_name(path: Path) -> str:
    """Return the name the kernel uses for the module file `path`.

    >>> module_name(Path("kernel/fs/dm-mod.ko.xz"))
    'dm_mod'
    """
    return path.name.split(".ko", 1)[0].replace("-", "_")


def read_info(path: Path) -> ModuleInfo:
    """Return the information of the module at `path`; raises LabError if it is not an ELF object."""
    data = read_module(path)
    try:
        sections = _sections(data)
    except (struct.error, ValueError, IndexError):
        raise LabError(f"{path}: not a 64-bit ELF object") from None
    offset, size = sections.get(b".modinfo", (0, 0))
    pairs = [
        item.decode(errors="replace").partition("=") for item in data[offset : offset + size].split(b"\0")
    ]
    values = [(key, value) for key, _, value in pairs]
    depends = [name for key, value in values if key == "depends" for name in value.split(",") if name]
    soft = [value for key, value in values if key == "softdep"]
    return ModuleInfo(
        module_name(path),
        path,
        tuple(name.replace("-", "_") for name in depends),
        tuple(name.replace("-", "_") for text in soft for name in _soft_before(text)),
        tuple(value for key, value in values if key == "alias"),
        b"_ftrace_events" in sections,
    )


class ModuleTree:
    """The modules under one `lib/modules/<release>` folder, by name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._paths = {module_name(path): path for path in folder.rglob("*.ko*")}
        self._infos: dict[str, ModuleInfo] = {}
        builtin = folder / "modules.builtin"
        lines = builtin.read_text().splitlines() if builtin.exists() else []
        self.builtin = frozenset(module_name(Path(line)) for line in lines)

    def __contains__(self, name: str) -> bool:
        return name.replace("-", "_") in self._paths

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._paths))

    def info(self, name: str) -> ModuleInfo:
        """Return the information of module `name`; raises LabError if the package has none."""
        name = name.replace("-", "_")
        if name not in self._infos:
            if name not in self._paths:
                raise LabError(f"no module {name} under {self.folder}")
            self._infos[name] = read_info(self._paths[name])
        return self._infos[name]

    def load_order(self, names: tuple[str, ...]) -> list[Path]:
        """Return the files to load for `names`, dependencies first, each once.

        Names built into the kernel are skipped. Raises LabError for an unknown name.
        """
        order: dict[str, Path] = {}
        todo = [(name.replace("-", "_"), False) for name in reversed(names)]
        seen: set[str] = set()
        while todo:
            name, needs_met = todo.pop()
            if name in self.builtin or name in order:
                continue
            info = self.info(name)
            if needs_met:
                order[name] = info.path
            elif name not in seen:
                seen.add(name)
                soft = tuple(other for other in info.soft_before if other in self)
                todo.append((name, True))
                todo.extend((other, False) for other in (*info.depends, *soft))
        return list(order.values())


def _soft_before(text: str) -> list[str]:
    """Return the names after `pre:` in a softdep line."""
    names: list[str] = []
    is_before = False
    for word in text.split():
        if word.endswith(":"):
            is_before = word == "pre:"
        elif is_before:
            names.append(word)
    return names


def _sections(data: bytes) -> dict[bytes, tuple[int, int]]:
    """Return section name -> (offset, size) of a little-endian 64-bit ELF object."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not ELF64 little-endian")
    (table,) = struct.unpack_from("<Q", data, 0x28)
    entry_size, count, names_index = struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", data, table + entry_size * i) for i in range(count)]
    names_at = headers[names_index][4]
    found: dict[bytes, tuple[int, int]] = {}
    for name, _kind, _flags, _address, offset, size in headers:
        start = names_at + name
        found[data[start : data.index(b"\0", start)]] = (offset, size)
    return found
