"""The few operations on files of tracefs, as one small object.

Everything else in this room works on a `Files`, so that tests can replace it with a fake tracefs.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

from tracepoint.errors import TracefsNotFound
from tracepoint.layout.corefile import core_offset

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MOUNTS = Path("/proc/mounts")
_READ_SIZE = 1 << 16
_ESCAPE = re.compile(r"\\([0-7]{3})")
HOW_TO_MOUNT = (
    "no tracefs is mounted (looked in /proc/mounts); as root: mount -t tracefs nodev /sys/kernel/tracing"
)


KALLSYMS, KCORE, MODULES = Path("/proc/kallsyms"), Path("/proc/kcore"), Path("/proc/modules")
_ADDRESS = re.compile(r"[0-9a-f]{1,16}")


class PageSource(Protocol):
    """An open `trace_pipe_raw`."""

    @property
    def handle(self) -> int | None:
        """The file descriptor; None where it is no file of this process."""

    def read(self, size: int) -> bytes:
        """Return the next page of `size` bytes, nothing when there is none now; OSError.

        ESRCH says that the process that made the pages has ended, and everything with it.
        """

    def close(self) -> None:
        """Close it; until then its instance cannot be removed."""


class Files(Protocol):
    """What tracefs is asked to do; paths are relative to the mount, every failure is an OSError."""

    root: str

    def read(self, path: str) -> str:
        """Return the content of a file."""

    def write(self, path: str, text: str, *, truncate: bool = False) -> None:
        """Open a file for appending (or truncating) and write the text; an empty one only opens."""

    def names(self, path: str) -> list[str]:
        """Return the names in a folder, sorted."""

    def exists(self, path: str) -> bool:
        """Return whether a file or folder exists."""

    def make_folder(self, path: str) -> None:
        """Make a folder; only `instances` takes any."""

    def remove_folder(self, path: str) -> None:
        """Remove a folder that `make_folder` made."""

    def open_pages(self, path: str) -> PageSource:
        """Open a `trace_pipe_raw`, whose pages are consumed by reading."""

    def kallsyms(self) -> str:
        """Return the kernel's symbols, as /proc/kallsyms has them; empty when that is not there."""

    def modules(self) -> str:
        """Return what /proc/modules says: where that has changed, the symbols have too."""

    def variables(self, names: Iterable[str], kallsyms: str) -> dict[str, int]:
        """Return the kernel's variables of 8 bytes that can be read; none for what is not a kernel."""


class MountedFiles:
    """A tracefs that is mounted at `root`."""

    def __init__(self, root: str | Path) -> None:
        self.root = str(root)

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
        return sorted(item.name for item in Path(self.root, path).iterdir())

    def exists(self, path: str) -> bool:
        """Return whether a file or folder exists."""
        try:
            os.stat(f"{self.root}/{path}")  # noqa: PTH116 (a hot path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def make_folder(self, path: str) -> None:
        """Make a folder."""
        Path(self.root, path).mkdir()

    def remove_folder(self, path: str) -> None:
        """Remove a folder."""
        Path(self.root, path).rmdir()

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
            with KCORE.open("rb", buffering=0) as core:
                head = core.read(_READ_SIZE)
                return dict(_read_words(core, head, places))
        except OSError:
            return {}


def _content(path: Path) -> str:
    return path.read_bytes().decode(errors="surrogateescape") if path.exists() else ""


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
    root = find_mount(MOUNTS.read_text(errors="surrogateescape")) if MOUNTS.exists() else ""
    if not root or not Path(root).is_dir():
        raise TracefsNotFound(HOW_TO_MOUNT)
    return MountedFiles(root)
