"""A tracefs that is mounted: where it is, and the operations on its files."""

from __future__ import annotations

import errno
import os
import re
import sys

from tracepoint.errors import TracefsNotFound
from tracepoint.layout.corefile import core_offset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import BinaryIO

    from tracepoint.control.operations import PageSource

MOUNTS = "/proc/mounts"
_READ_SIZE = 1 << 16
_ESCAPE = re.compile(r"\\([0-7]{3})")
HOW_TO_MOUNT = (
    "no tracefs is mounted (looked in /proc/mounts); as root: mount -t tracefs nodev /sys/kernel/tracing"
)


KALLSYMS, KCORE, MODULES = "/proc/kallsyms", "/proc/kcore", "/proc/modules"
_ADDRESS = re.compile(r"[0-9a-f]{1,16}")


class MountedFiles:
    """A tracefs that is mounted at `root`."""

    symbols_last = True

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = os.fspath(root)

    def read(self, path: str) -> str:
        """Return the content of a file; bytes that are not UTF-8 are kept as surrogates."""
        # Thousands of files are read to know the state of everything: no objects in between.
        handle = os.open(f"{self.root}/{path}", os.O_RDONLY)
        try:
            parts = []
            while part := os.read(handle, _READ_SIZE):
                parts.append(part)
        finally:
            os.close(handle)
        return b"".join(parts).decode(errors="surrogateescape")

    def write(self, path: str, text: str, *, truncate: bool = False) -> None:
        """Write like `echo -n`: what the kernel does not consume is written again.

        Several files take one word per write(2), trace_marker a limited number of bytes.
        """
        flags = os.O_WRONLY | (os.O_TRUNC if truncate else os.O_APPEND)
        # No O_CREAT: a missing name must fail with ENOENT, not EACCES.
        handle = os.open(f"{self.root}/{path}", flags)
        try:
            rest = text.encode(errors="surrogateescape")
            while rest:
                n_written = os.write(handle, rest)
                if n_written <= 0:
                    raise OSError(errno.EIO, "the kernel takes no more", path)
                rest = rest[n_written:]
        finally:
            os.close(handle)

    def names(self, path: str) -> list[str]:
        """Return the names in a folder, sorted."""
        return sorted(os.listdir(f"{self.root}/{path}"))

    def exists(self, path: str) -> bool:
        """Return whether a file or folder exists."""
        try:
            os.stat(f"{self.root}/{path}")
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def make_folder(self, path: str) -> None:
        """Make a folder."""
        os.mkdir(f"{self.root}/{path}")

    def remove_folder(self, path: str) -> None:
        """Remove a folder."""
        os.rmdir(f"{self.root}/{path}")

    def open_pages(self, path: str) -> PageSource:
        """Open a `trace_pipe_raw`; its reads never wait."""
        return _Pages(os.open(f"{self.root}/{path}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))

    def kallsyms(self) -> str:
        """Return the kernel's symbols."""
        return _content(KALLSYMS)

    def modules(self) -> str:
        """Return the list of modules."""
        return _content(MODULES)

    def variables(self, names: Iterable[str], kallsyms: str) -> dict[str, int]:
        """Read variables in the kernel's memory, which only root may do, and not where it is locked down."""
        places = {name: place for name in names if (place := _place(name, kallsyms))}
        try:
            with open(KCORE, "rb", buffering=0) as core:
                head = core.read(_READ_SIZE)
                return dict(_read_words(core, head, places))
        except OSError:
            return {}


def _content(path: str) -> str:
    if not os.path.exists(path):
        return ""
    with open(path, "rb") as stream:
        return stream.read().decode(errors="surrogateescape")


def _place(name: str, kallsyms: str) -> int:
    """Return the address of a symbol, 0 where there is none: a search, as lines are many."""
    at = max(kallsyms.find(f" {name}\n"), 0)
    word = kallsyms[kallsyms.rfind("\n", 0, at) + 1 : at].partition(" ")[0]
    return int(word, 16) if _ADDRESS.fullmatch(word) else 0


def _read_words(core: BinaryIO, head: bytes, places: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    for name, address in places.items():
        offset = core_offset(head, address)
        if offset is not None:
            core.seek(offset)
            word = core.read(8)
            if len(word) == 8:
                yield name, int.from_bytes(word, sys.byteorder)


class _Pages:
    def __init__(self, handle: int) -> None:
        self.handle = handle

    def read(self, size: int) -> bytes:
        try:
            return os.read(self.handle, size)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        os.close(self.handle)


def find_mount(mounts: str) -> str:
    r"""Return where tracefs is mounted, from the text of /proc/mounts.

    A tracefs below debugfs counts when there is no other.  Raises TracefsNotFound.

    >>> find_mount("proc /proc proc rw 0 0\nnodev /sys/kernel/tracing tracefs rw 0 0\n")
    '/sys/kernel/tracing'
    >>> find_mount("none /sys/kernel/debug debugfs rw 0 0\n")
    '/sys/kernel/debug/tracing'
    """
    found: dict[str, str] = {}
    for line in mounts.splitlines():
        words = line.split(" ")
        if len(words) > 2:
            found.setdefault(words[2], _ESCAPE.sub(lambda match: chr(int(match[1], 8)), words[1]))
    if "tracefs" in found:
        return found["tracefs"]
    if "debugfs" in found:
        # The kernel mounts tracefs there by itself when the path is looked up.
        return found["debugfs"] + "/tracing"
    raise TracefsNotFound(HOW_TO_MOUNT)


def find_files() -> MountedFiles:
    """Return the tracefs of this machine; raises TracefsNotFound."""
    mounts = _content(MOUNTS)
    root = find_mount(mounts) if mounts else ""
    if not root or not os.path.isdir(root):
        raise TracefsNotFound(HOW_TO_MOUNT)
    return MountedFiles(root)
