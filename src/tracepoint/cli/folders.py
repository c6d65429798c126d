"""Folders that a command replaces as a whole: readers see either the old state or the new one.

A folder of ours has a mark: a JSON file that lists the files we made. Other files in it
stay.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
import tempfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from tracepoint.errors import TracepointError
from tracepoint.generate.fileset import FileSet

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAX_MARK = 1 << 26
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def is_marked(folder: Path, mark: str) -> bool:
    """Return whether a folder was made by the command whose mark this is."""
    return _files_of(folder, mark) is not None


def check_folder(folder: Path, mark: str, *, may_hold_others: bool) -> None:
    """Raise TracepointError when a folder must not be replaced, since it holds files that are not ours.

    With `may_hold_others` a folder without the mark is accepted; a file never is.
    """
    if not os.path.lexists(folder):
        return
    if not folder.is_dir():
        raise TracepointError(f"{folder}: not a folder")
    if may_hold_others or is_marked(folder, mark) or not any(folder.iterdir()):
        return
    raise TracepointError(
        f"{folder}: not made by this command, and not empty; nothing was written. Name another folder, or "
        "use --force to write into it"
    )


def replace_folder(folder: Path, files: Mapping[str, str], mark: str) -> None:
    """Replace the files that a folder's mark lists by these; other files in it stay.

    The new folder is made beside the old one, and the two are swapped in one step; only in a
    non-empty folder without the mark are the files written one by one. Raises OSError and leaves the old
    folder as it was.
    """
    place = folder.resolve()
    if place.is_dir() and any(place.iterdir()) and not is_marked(place, mark):
        FileSet(files).write(place, overwrite=True)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    try:
        _write(fresh, files)
        fresh.chmod(place.stat().st_mode & 0o7777 if place.is_dir() else 0o777 & ~_umask())
        if not place.is_dir():
            fresh.rename(place)
            return
        ours = _files_of(place, mark) or frozenset()
        _exchange(fresh, place)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    # From here on `fresh` is the old folder.
    try:
        _move_others(fresh, place, ours)
    except BaseException as error:
        raise TracepointError(
            f"{place} is new, but files that were in it are still in {fresh}: {error}"
        ) from error
    shutil.rmtree(fresh)


def _write(folder: Path, files: Mapping[str, str]) -> None:
    made = set()
    for name, text in files.items():
        path = folder / name
        if path.parent not in made:
            path.parent.mkdir(parents=True, exist_ok=True)
            made.add(path.parent)
        path.write_text(text, encoding="utf-8", errors="replace", newline="\n")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _files_of(folder: Path, mark: str) -> frozenset[str] | None:
    """Return the files that a folder's mark lists, or None without a readable mark."""
    try:
        path = folder / mark
        if path.is_symlink() or not path.is_file() or path.stat().st_size > _MAX_MARK:
            return None
        data = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    schema = f"tracepoint.{PurePosixPath(mark).stem}/"
    if not isinstance(data, dict) or not str(data.get("schema", "")).startswith(schema):
        return None
    names = data.get("files")
    return frozenset(name for name in names if isinstance(name, str)) if isinstance(names, list) else None


def _exchange(one: Path, other: Path) -> None:
    """Swap two folders, in one step if the system can."""
    if not _renameat2(one, other):
        # For a moment there is no folder with the name; nothing is lost if we are killed then.
        aside = Path(tempfile.mkdtemp(prefix=f".{other.name}.", dir=other.parent))
        other.rename(aside)
        try:
            one.rename(other)
        except OSError:
            aside.rename(other)
            raise
        aside.rename(one)


def _renameat2(one: Path, other: Path) -> bool:
    """Swap with renameat2(2); return whether it did. Raises OSError for what cannot be swapped at all."""
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    if call(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP):
        return False
    raise OSError(number, os.strerror(number), str(other))


def _move_others(old: Path, new: Path, ours: frozenset[str]) -> None:
    """Move files that are not ours into the new folder, unless one of ours has the same name now."""
    for entry in sorted(old.iterdir()):
        name = entry.relative_to(old).as_posix()
        _move(entry, new / name, name, ours)


def _move(entry: Path, target: Path, name: str, ours: frozenset[str]) -> None:
    if name in ours and not entry.is_dir():
        return
    if entry.is_dir() and not entry.is_symlink() and (os.path.lexists(target) or _holds(name, ours)):
        for inner in sorted(entry.iterdir()):
            _move(inner, target / inner.name, f"{name}/{inner.name}", ours)
    elif not os.path.lexists(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        entry.rename(target)


def _holds(name: str, ours: frozenset[str]) -> bool:
    return any(other.startswith(f"{name}/") for other in ours)
