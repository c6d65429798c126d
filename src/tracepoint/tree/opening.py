"""The only place that opens files named by users: a regular file of a sane size, or a clear error."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, BinaryIO

from tracepoint.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import PurePath

#: A header or script larger than this is not read: no kernel header comes near.
MAX_HEADER_BYTES = 64 << 20
#: Nor is a larger module, kernel image or pipe.
MAX_LARGE_BYTES = 1 << 30
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)
#: What a shell puts in place of `<(command)`: a pipe with a writer.
_OF_THE_SHELL = ("/dev/fd/", "/proc/self/fd/", "/dev/stdin")


def check_regular(path: PurePath | str) -> None:
    """Raise SourceError when a path is a folder, FIFO, device or socket; OSError when it does not exist."""
    mode = os.stat(path).st_mode  # noqa: PTH116 - PurePath has none
    kind = next((name for is_kind, name in _KINDS if is_kind(mode)), "")
    if kind and not (stat.S_ISFIFO(mode) and str(path).startswith(_OF_THE_SHELL)):
        raise SourceError(f"{path}: {kind}, not a file")


def read_input(path: PurePath | str, large: Sequence[bytes] = ()) -> bytes:
    """Return the bytes of a file; at most 64 MiB, or 1 GiB when it begins with one of `large` (`b""`: any).

    Raises SourceError for anything larger or not a regular file, OSError for files that cannot be read.
    """
    check_regular(path)
    with open(path, "rb") as file:  # noqa: PTH123 - PurePath has none
        return read_stream(file, str(path), large, os.fstat(file.fileno()).st_size)


def read_if_sane(path: PurePath | str) -> bytes | None:
    """Return the bytes of a file that was found, not named; None if `read_input` would refuse it."""
    try:
        return read_found(str(path))
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return None


def read_found(path: str, beginning: int | None = None) -> bytes | None:
    """Return the bytes of a regular file that was found, only the `beginning` of one that is too large.

    A tree has tens of thousands of them: this takes a quarter of the time of a stream. Raises OSError.
    """
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(file)
        size = status.st_size if status.st_size <= MAX_HEADER_BYTES else beginning
        if size is None or not stat.S_ISREG(status.st_mode):
            return None
        data = os.read(file, size)
        while len(data) < size and (more := os.read(file, size - len(data))):
            data += more
        return data
    finally:
        os.close(file)


def read_stream(file: BinaryIO, name: str, large: Sequence[bytes] = (), size: int = 0) -> bytes:
    """Return the rest of a stream; the limits of `read_input` apply, also to its claimed `size`."""
    start = file.read(max(map(len, large), default=0))
    most = MAX_LARGE_BYTES if start.startswith(tuple(large)) and large else MAX_HEADER_BYTES
    # A buffer for the largest file costs more than reading a usual one; a pipe claims no size.
    room = (size or most + 1) - len(start)
    data = start + file.read(max(0, room)) if size <= most else b""
    if max(len(data), size) > most:
        raise SourceError(f"{name}: more than {most >> 20} MiB, which is too much for this kind of file")
    return data
