"""Our own writer of initial ram disks: needs no root and no `cpio` program.

The archive is the `newc` form that the kernel unpacks (Documentation/driver-api/early-userspace/
buffer-format.rst): a 110 byte header of hexadecimal numbers, the name, the data, each padded to 4.
"""

from __future__ import annotations

import gzip
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# Compressing a smaller archive, and expanding it in an emulated machine, costs more than it saves.
_LARGE = 8 << 20
_TRAILER = "TRAILER!!!"


@dataclass(frozen=True, slots=True)
class ArchiveEntry:
    """One member: `data` is the content (the target for a symbolic link), `mode` as in stat(2).

    `device` is the (major, minor) pair of a character or block device.
    """

    data: bytes = b""
    mode: int = stat.S_IFREG | 0o644
    device: tuple[int, int] = (0, 0)


def regular(data: bytes, permissions: int = 0o644) -> ArchiveEntry:
    """Return a plain file; `permissions` is for instance 0o755 for a program."""
    return ArchiveEntry(data, stat.S_IFREG | permissions)


def link(target: str) -> ArchiveEntry:
    """Return a symbolic link to `target`."""
    return ArchiveEntry(target.encode(), stat.S_IFLNK | 0o777)


def folder() -> ArchiveEntry:
    """Return an empty folder."""
    return ArchiveEntry(b"", stat.S_IFDIR | 0o755)


def character_device(major: int, minor: int) -> ArchiveEntry:
    """Return a character device node (needs no root: it exists only inside the archive)."""
    return ArchiveEntry(b"", stat.S_IFCHR | 0o600, (major, minor))


def pack(entries: Mapping[str, ArchiveEntry]) -> bytes:
    """Return the archive of `entries` (path without leading slash -> entry), a large one as gzip -1 makes it.

    Missing parent folders are added.  The same entries give the same bytes: times are zero.
    Raises ValueError for a path with `..` or NUL in it, or data of 4 GiB and more.

    >>> pack({"init": regular(b"x", 0o755)})[:6]
    b'070701'
    """
    everything = {path: folder() for path in _parents(entries)} | dict(entries)
    parts: list[bytes] = []
    for inode, path in enumerate(sorted(everything), 1):
        parts.append(_member(path, everything[path], inode))
    parts.append(_member(_TRAILER, ArchiveEntry(b"", 0), 0))
    archive = b"".join(parts)
    archive += b"\0" * (-len(archive) % 512)
    return gzip.compress(archive, compresslevel=1, mtime=0) if len(archive) > _LARGE else archive


def _parents(entries: Mapping[str, ArchiveEntry]) -> set[str]:
    folders: set[str] = set()
    for path in entries:
        names = path.split("/")
        if "\0" in path or not all(names) or {".", ".."} & set(names):
            raise ValueError(
                f"path {path!r} cannot be in an initial ram disk: use names joined by single slashes"
            )
        folders.update("/".join(names[:depth]) for depth in range(1, len(names)))
    return folders


def _member(path: str, entry: ArchiveEntry, inode: int) -> bytes:
    if len(entry.data) > 0xFFFFFFFF:
        raise ValueError(f"{path}: {len(entry.data)} bytes do not fit, the archive format ends at 4 GiB")
    name = path.encode() + b"\0"
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    numbers = (inode, entry.mode, 0, 0, links, 0, len(entry.data), 0, 0, *entry.device, len(name), 0)
    header = b"070701" + b"".join(b"%08X" % number for number in numbers)
    head = header + name
    return head + b"\0" * (-len(head) % 4) + entry.data + b"\0" * (-len(entry.data) % 4)
