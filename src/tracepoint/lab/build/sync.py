"""A scratch copy of a kernel tree: made of hard links, changed only by renames, so the original stays.

A file whose content does not change keeps its time, so make rebuilds only what is necessary.
"""

from __future__ import annotations

import contextlib
import errno
import filecmp
import math
import os
import shutil
import stat
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.errors import LabError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

# Leftovers of a build or a checkout that would disturb another build.
_SKIPPED = frozenset({".git", ".config", ".config.old", ".tmp_versions", "Module.symvers", "vmlinux"})
_SKIPPED_FOLDERS = frozenset({"include/config", "include/generated"})
_SKIPPED_ENDINGS = (".o", ".a", ".ko", ".cmd", ".order", ".mod", ".mod.c", ".builtin", ".partial")
# A hard link is impossible to another disk, to a file of another user, or when there are too many.
_COPY_INSTEAD = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP)
_PARTS = ("Makefile", "Kconfig", "scripts/kconfig/merge_config.sh", "arch/x86/Makefile", "include/linux")


def check_tree(source: Path) -> None:
    """Raise LabError, naming what is missing, when a folder is not a source tree of a kernel."""
    if not source.is_dir():
        hint = "; built kernels are for `lab run` and `lab shell`" if str(source).startswith("built:") else ""
        raise LabError(
            f"{source}: not a kernel tree: there is no such folder, nor is it a series such as 6.12{hint}"
        )
    missing = [part for part in _PARTS if not (source / part).exists()]
    if missing:
        raise LabError(f"{source}: not a kernel tree: it has no {', '.join(missing)}")


def clone_tree(source: Path, scratch: Path) -> None:
    """Make `scratch` a copy of the tree `source`; files are hard links where the disk allows.

    All or nothing: an interrupted copy starts over. Raises LabError for a file that cannot be read,
    and the errors of `disk_errors` for a full disk.
    """
    partial = scratch.with_name(scratch.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        for path, entry in _walk(source, source):
            target = partial / path
            if entry.is_dir(follow_symlinks=False):
                target.mkdir(parents=True)
            else:
                _place(Path(entry.path), target)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    partial.rename(scratch)


def refresh_tree(
    source: Path, scratch: Path, except_for: Iterable[str] = (), since: float = math.inf
) -> list[str]:
    """Update a copy from a tree that has changed since; return the changed files.

    The paths `except_for` are not touched. A file that differs gets the current time. One that was written in
    place has changed its copy too, a hard link: it is recognized by a time from `since` (in ns) on.
    """
    kept = set(except_for)
    seen = set(kept)
    changed = []
    for path, entry in _walk(source, source):
        target = scratch / path
        seen.add(path)
        if entry.is_dir(follow_symlinks=False):
            target.mkdir(exist_ok=True)
        elif path not in kept and not _is_same(entry, target):
            replace_file(target, _content(Path(entry.path)), Path(entry.path))
            changed.append(path)
        elif path not in kept and entry.stat(follow_symlinks=False).st_mtime_ns >= since:
            changed.append(path)
    gone = [path for path, entry in _walk(scratch, scratch) if path not in seen and not entry.is_dir()]
    for path in gone:
        (scratch / path).unlink()
    return changed + gone


def sync_files(
    source: Path, scratch: Path, wanted: Mapping[str, bytes | None], before: Iterable[str] = ()
) -> list[str]:
    """Give the files of `scratch` the wanted contents (None: no such file) and return those that changed.

    Paths of `before` that are no longer wanted are restored from `source`. Files that already have
    the right content are not touched. Raises LabError for a path outside the tree.
    """
    changed = []
    for path in sorted({*wanted, *before}):
        target = scratch / path
        if not target.parent.resolve().is_relative_to(scratch.resolve()):
            raise LabError(f"{path} leads out of the kernel tree")
        content = wanted[path] if path in wanted else read_file(source / path)
        if content == read_file(target):
            continue
        changed.append(path)
        if content is None:
            target.unlink()
        else:
            replace_file(target, content, source / path)
    return changed


def read_file(path: Path) -> bytes | None:
    """Return a file's bytes, or None when there is no such file; LabError when it cannot be read."""
    return _content(path) if path.is_file() else None


def replace_file(target: Path, content: bytes, like: Path | None = None) -> None:
    """Replace a file by a rename: other names of the old file keep the old content.

    The new one gets the mode of `like`, when that exists.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.{threading.get_native_id()}.partial")
    partial.unlink(missing_ok=True)
    partial.write_bytes(content)
    if like is not None and like.exists():
        partial.chmod(stat.S_IMODE(like.stat().st_mode) | stat.S_IRUSR | stat.S_IWUSR)
    partial.rename(target)


def _walk(folder: Path, root: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield what a kernel tree consists of, folders before their content, by path below `root`."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except PermissionError as error:
        raise LabError(f"{error.filename} cannot be read: {error.strerror}") from None
    for entry in entries:
        path = os.path.relpath(entry.path, root)
        if entry.name in _SKIPPED or entry.name.endswith(_SKIPPED_ENDINGS) or path in _SKIPPED_FOLDERS:
            continue
        is_folder = entry.is_dir(follow_symlinks=False)
        if is_folder and path.startswith("arch/") and path.endswith("include/generated"):
            continue
        if is_folder or entry.is_symlink() or entry.is_file():
            yield path, entry
        if is_folder:
            yield from _walk(Path(entry.path), root)


def _place(path: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink():
        target.symlink_to(path.readlink())
        return
    if not os.access(path, os.R_OK):
        raise LabError(f"{path} cannot be read: Permission denied")
    try:
        os.link(path, target)
    except OSError as error:
        if error.errno not in _COPY_INSTEAD:
            raise
        try:
            shutil.copy2(path, target)
        except OSError as failure:
            # Python names the file that was read, but it is the other one that has no space.
            raise OSError(failure.errno, failure.strerror, str(target)) from None


def _is_same(entry: os.DirEntry[str], target: Path) -> bool:
    if entry.is_symlink():
        return target.is_symlink() and target.readlink() == Path(entry.path).readlink()
    with contextlib.suppress(FileNotFoundError):
        ours, theirs = target.lstat(), entry.stat()
        if (ours.st_dev, ours.st_ino) == (theirs.st_dev, theirs.st_ino):
            return True
        if ours.st_size == theirs.st_size:
            return ours.st_mtime_ns == theirs.st_mtime_ns or filecmp.cmp(target, entry.path, shallow=False)
    return False


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except PermissionError as error:
        raise LabError(f"{path} cannot be read: {error.strerror}") from None
