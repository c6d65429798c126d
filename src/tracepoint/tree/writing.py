"""Files replaced at once: a reader sees the old bytes or the new ones, never half."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from pathlib import Path
from tempfile import mkdtemp, mkstemp
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def write_whole(path: Path, parts: Iterable[bytes], mode: int = 0o600) -> None:
    """Replace a file by `parts`, one after the other; raises OSError, and nothing has changed then."""
    with replacing(path, mode) as stream:
        stream.writelines(parts)


def write_beside(path: Path, parts: Iterable[bytes], mode: int = 0o600) -> Path:
    """Write `parts` to a new file in the folder of `path`, ready to be renamed, and return its path.

    Raises OSError, and leaves no file then.
    """
    fresh = _new_beside(path)
    try:
        with fresh.open("wb") as stream:
            stream.writelines(parts)
        fresh.chmod(mode)
    except BaseException:
        discard(fresh)
        raise
    return fresh


@contextlib.contextmanager
def replacing(path: Path, mode: int = 0o600) -> Iterator[BinaryIO]:
    """Give a new file to write, which can seek; it replaces `path` at the end, or is removed on an error.

    A symbolic link stays, and the file that it leads to is replaced.  Raises OSError, also for a device or a
    FIFO, which is not replaced by a file.
    """
    path = path.resolve() if path.is_symlink() else path
    check_replaceable(path)
    fresh = _new_beside(path)
    try:
        with fresh.open("w+b") as stream:
            yield stream
        fresh.chmod(mode)
        fresh.replace(path)
    except BaseException:
        discard(fresh)
        raise


def check_replaceable(path: Path) -> None:
    """Raise OSError for a device, a FIFO or a socket: a rename would put a file in its place."""
    with contextlib.suppress(FileNotFoundError):
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise OSError(errno.EINVAL, "not a regular file, which is what is written here", str(path))


def _new_beside(path: Path) -> Path:
    """Make an empty file in the folder of `path`; raises OSError, which names that folder."""
    try:
        number, name = mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        # Nobody asked for the file that could not be made.
        error.filename = str(path.parent)
        raise
    os.close(number)
    return Path(name)


@contextlib.contextmanager
def making_folder(path: Path, *, is_part: bool = False) -> Iterator[Path]:
    """Give a new folder to fill; it has the name `path` at the end, or is removed on an error.

    With `is_part` the folder that it is in has readers which take all files below it: until the end it is
    beside that one then, where it can be, so that a kill leaves nothing for them.
    Raises OSError, and FileExistsError where there is something of this name.
    """
    if os.path.lexists(path):
        reason = "there is such a folder already: name another, or remove it"
        raise FileExistsError(errno.EEXIST, reason if path.is_dir() else "not a folder", str(path))
    made = [parent for parent in path.parents if not parent.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        home = _beside(path.parent) if is_part else path.parent
        fresh = Path(mkdtemp(prefix=f".{path.name}.", dir=home))
        try:
            fresh.chmod(0o755)
            yield fresh
            fresh.rename(path)
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
    except BaseException:
        for parent in made:
            with contextlib.suppress(OSError):
                parent.rmdir()
        raise


def _beside(folder: Path) -> Path:
    """Return the folder that a folder is in; itself where nothing can be moved from there into it."""
    above = folder.resolve().parent
    is_same_disk = above.stat().st_dev == folder.stat().st_dev
    return above if is_same_disk and os.access(above, os.W_OK | os.X_OK) else folder


def discard(path: Path) -> None:
    """Remove a file that may be gone, or that nothing can remove."""
    with contextlib.suppress(OSError):
        path.unlink()
