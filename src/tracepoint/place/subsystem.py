"""The subsystem of files, by which a series of patches is split."""

from __future__ import annotations

import re
from collections import defaultdict
from fnmatch import translate
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Folders in which each subfolder is a subsystem.
_NESTED = frozenset(
    ("arch", "drivers", "fs", "kernel", "net", "sound", "security", "include", "tools", "virt")
)
#: Folders whose name says nothing about their contents.
_NAMELESS = frozenset(("core", "host", "main", "common", "lib", "src", "base"))
_PATTERN = re.compile(r"([FX]):\s+(\S+)")
_REST = "THE REST"


def subsystem_of(path: str) -> str:
    """Return the folder of a file's subsystem.

    >>> [subsystem_of(p) for p in ("mm/memory.c", "fs/ext4/inode.c", "arch/x86/kernel/traps.c", "fs/open.c")]
    ['mm', 'fs/ext4', 'arch/x86', 'fs']
    """
    parts = path.split("/")[:-1]
    if not parts:
        return ""
    return "/".join(parts[:2]) if parts[0] in _NESTED else parts[0]


def group_files(paths: Iterable[str], maintainers: str = "") -> dict[str, str]:
    r"""Return the subsystem of each file: its folder, or that of an earlier one with the same maintainers.

    `maintainers` is the text of the tree's MAINTAINERS.

    >>> text = "Maintainers List\n\nKVM\nF:\tarch/x86/kvm/\nF:\tvirt/kvm/*\n"
    >>> group_files(["arch/x86/kvm/x86.c", "virt/kvm/kvm_main.c", "mm/mmap.c"], text)
    {'arch/x86/kvm/x86.c': 'arch/x86', 'virt/kvm/kvm_main.c': 'arch/x86', 'mm/mmap.c': 'mm'}
    """
    sections = _read_sections(maintainers)
    found: dict[str, str] = {}
    owner: dict[str, str] = {}  # of sections and folders
    for path in dict.fromkeys(paths):
        folder = subsystem_of(path)
        keys = [f"/{folder}", *_sections_of(path, sections)]
        group = next((owner[key] for key in keys if key in owner), folder)
        for key in keys:
            owner.setdefault(key, group)
        found[path] = group
    return found


def _read_sections(text: str) -> dict[str, list[tuple[str, str]]]:
    """Return the patterns of each section: whether they include or exclude files, and which."""
    sections: dict[str, list[tuple[str, str]]] = defaultdict(list)
    title = ""
    before = ""
    for line in text.partition("Maintainers List")[2].split("\n"):
        found = _PATTERN.match(line)
        if found is not None:
            sections[title].append((found[1], found[2]))
        elif line.strip() and not before.strip():
            title = line.strip()
        before = line
    sections.pop(_REST, None)
    return sections


def _sections_of(path: str, sections: dict[str, list[tuple[str, str]]]) -> list[str]:
    return [
        title
        for title, patterns in sections.items()
        if any(kind == "F" and _is_meant(path, pattern) for kind, pattern in patterns)
        and not any(kind == "X" and _is_meant(path, pattern) for kind, pattern in patterns)
    ]


def _is_meant(path: str, pattern: str) -> bool:
    """Return whether a pattern of MAINTAINERS matches a file: a star there does not match a slash."""
    if not set(pattern) & set("*?["):
        return path == pattern or path.startswith(pattern.rstrip("/") + "/")
    return _compiled(pattern).match(path) is not None


@lru_cache(4096)
def _compiled(pattern: str) -> re.Pattern[str]:
    plain = translate(pattern.rstrip("/")).removesuffix(r"\Z").replace(".*", "[^/]*")
    end = r"(?:/.*)?\Z" if pattern.endswith("/") else r"\Z"
    return re.compile(plain + end, re.DOTALL)


def prefix_of(folder: str, paths: list[str]) -> str:
    """Return the subject prefix of a patch for a subsystem.

    >>> prefix_of("arch/x86", ["arch/x86/kernel/traps.c"]), prefix_of("mm", ["mm/memory.c", "mm/swap.c"])
    ('x86/traps', 'mm')
    >>> prefix_of("net/core", ["net/core/skbuff.c"]), prefix_of("drivers/net", ["drivers/net/b53/b53_spi.c"])
    ('net: skbuff', 'b53')
    """
    folders = {path.rpartition("/")[0] for path in paths}
    name = _name_of(folders.pop() if len(folders) == 1 and not folder.startswith("arch/") else folder)
    stems = {path.rpartition("/")[2].partition(".")[0] for path in paths}
    stem = stems.pop() if len(stems) == 1 else name
    if stem == name or stem.startswith(f"{name}_"):
        return name
    return f"{name}/{stem}" if folder.startswith("arch/") else f"{name}: {stem}"


def header_prefix(path: str) -> str:
    """Return the subject prefix of a patch for a trace header.

    >>> [header_prefix(f"{p}.h") for p in ("include/trace/events/libata", "drivers/usb/dwc3/trace")]
    ['libata', 'dwc3']
    >>> [header_prefix(f"{p}.h") for p in ("arch/x86/kvm/trace", "fs/xfs/scrub/trace", "net/mac80211/trace")]
    ['x86/kvm', 'xfs/scrub', 'mac80211']
    """
    *folders, name = path.split("/")
    stem = name.partition(".")[0]
    if folders[:2] == ["include", "trace"]:
        return stem
    named = [part for part in folders if part not in _NAMELESS]
    if len(named) < 2:
        return folders[-1] if folders else "kernel"
    is_below = folders[0] in ("arch", "fs", "net") and len(named) > 2
    return "/".join((named[1], named[-1])) if is_below else named[-1]


def _name_of(folder: str) -> str:
    """Return the last meaningful part of a path: drivers/nvme/host is nvme."""
    parts = [part for part in folder.split("/") if part]
    while len(parts) > 1 and parts[-1] in _NAMELESS:
        parts.pop()
    return parts[-1] if parts else "kernel"
