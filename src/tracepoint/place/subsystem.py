"""Which subsystem a file belongs to: what a series of patches is split by."""

from __future__ import annotations

#: Folders below which each folder is a subsystem of its own.
_NESTED = frozenset(
    ("arch", "drivers", "fs", "kernel", "net", "sound", "security", "include", "tools", "virt")
)


def subsystem_of(path: str) -> str:
    """Return the folder that stands for a file's subsystem.

    >>> [subsystem_of(p) for p in ("mm/memory.c", "fs/ext4/inode.c", "arch/x86/kernel/traps.c", "fs/open.c")]
    ['mm', 'fs/ext4', 'arch/x86', 'fs']
    """
    parts = path.split("/")[:-1]
    if not parts:
        return ""
    return "/".join(parts[:2]) if parts[0] in _NESTED else parts[0]


def prefix_of(folder: str, paths: list[str]) -> str:
    """Return what the subject of a patch for a subsystem begins with.

    >>> prefix_of("arch/x86", ["arch/x86/kernel/traps.c"]), prefix_of("mm", ["mm/memory.c", "mm/swap.c"])
    ('x86/traps', 'mm')
    """
    name = folder.rpartition("/")[2] or "kernel"
    stems = {path.rpartition("/")[2].partition(".")[0] for path in paths}
    if len(stems) != 1:
        return name
    stem = stems.pop()
    if stem == name:
        return name
    return f"{name}/{stem}" if folder.startswith("arch/") else f"{name}: {stem}"
