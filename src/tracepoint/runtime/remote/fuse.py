"""The FUSE side of a mount: every call becomes a request to the traced process."""

from __future__ import annotations

import errno
import os
import stat
import threading
import time
from typing import TYPE_CHECKING, Any

import mfusepy

from tracepoint.errors import TracepointError
from tracepoint.runtime.remote.mount import unmount

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from tracepoint.runtime.remote.client import RemoteFiles, RemoteHandle

_ENDED = 8
# How long a folder that was there is taken to be there, unless something is written meanwhile.
SEEN_S = 0.1
MAX_SEEN = 1000


def _is_interrupted() -> bool:
    return bool(mfusepy._libfuse.fuse_interrupted())  # noqa: SLF001 - has no public name there


class Operations(mfusepy.Operations):  # type: ignore[misc] # mfusepy has no types
    """Answers FUSE from the control files of a process."""

    use_ns = True

    def __init__(self, files: RemoteFiles) -> None:
        self._files = files
        self._handles: dict[int, RemoteHandle] = {}
        self._next = 0
        self._lock = threading.Lock()
        self._modes: dict[str, int] = {}
        self._seen: dict[str, tuple[float, int, bool]] = {}
        self._born = time.time_ns()

    def __call__(self, op: str, *args: Any) -> Any:
        """Turn what may happen on the way into an errno."""
        try:
            return getattr(self, op)(*args)
        except TracepointError:
            raise mfusepy.FuseOSError(errno.EIO) from None

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        """Return mode and owner; every size is 0, as in tracefs."""
        del fh
        mode, is_folder = self._stat(path)
        mode = self._modes.get(path, mode) | (stat.S_IFDIR if is_folder else stat.S_IFREG)
        stamps = dict.fromkeys(("st_atime", "st_mtime", "st_ctime"), self._born)
        return {"st_mode": mode, "st_nlink": 2 if is_folder else 1, "st_size": 0, **stamps} | {
            "st_uid": os.geteuid(),
            "st_gid": os.getegid(),
        }

    def _stat(self, path: str) -> tuple[int, bool]:
        """Ask for mode and kind, or remember: one open() makes the kernel ask for every folder above."""
        now = time.monotonic()
        end, mode, is_folder = self._seen.get(path, (0.0, 0, False))
        if now > end:
            mode, is_folder = self._files.stat(path)
            if len(self._seen) > MAX_SEEN:
                self._seen.clear()
            self._seen[path] = now + SEEN_S, mode, is_folder
        return mode, is_folder

    def readdir(self, path: str, fh: int) -> Iterable[str]:
        """List a folder."""
        del fh
        return [".", "..", *self._files.names(path)]

    def open(self, path: str, fi: Any) -> int:
        """Open a file; sizes are 0, hence direct_io."""
        if fi.flags & os.O_TRUNC:
            self._seen.clear()
        handle = self._files.open(path, fi.flags)
        handle.is_interrupted = _is_interrupted
        with self._lock:
            self._next += 1
            number = self._next
            self._handles[number] = handle
        fi.fh = number
        fi.direct_io = True
        return 0

    def read(self, path: str, size: int, offset: int, fi: Any) -> bytes:
        """Read."""
        del path
        try:
            return self._handles[fi.fh].read(size, offset)
        except InterruptedError:
            # Without a number mfusepy prints a traceback and answers EINVAL.
            raise InterruptedError(errno.EINTR, os.strerror(errno.EINTR)) from None

    def write(self, path: str, data: bytes, offset: int, fi: Any) -> int:
        """Write; the answer may be short."""
        del path, offset
        try:
            return self._handles[fi.fh].write(data)
        finally:
            self._seen.clear()

    def release(self, path: str, fi: Any) -> int:
        """Close."""
        del path
        self._handles.pop(fi.fh).close()
        return 0

    def truncate(self, path: str, length: int, fh: int | None = None) -> int:
        """Do what O_TRUNC does."""
        del length, fh
        self._seen.clear()
        self._files.truncate(path)
        return 0

    def create(self, path: str, mode: int, fi: Any = None) -> int:
        """Refuse: files are not made by opening."""
        del path, mode, fi
        raise mfusepy.FuseOSError(errno.EACCES)

    def chmod(self, path: str, mode: int) -> int:
        """Change permission bits."""
        self._files.stat(path)
        self._modes[path] = stat.S_IMODE(mode)
        return 0

    def mkdir(self, path: str, mode: int) -> int:
        """Make an instance."""
        del mode
        self._files.mkdir(path)
        self._seen.clear()
        return 0

    def rmdir(self, path: str) -> int:
        """Remove an instance."""
        self._files.rmdir(path)
        self._seen.clear()
        return 0

    def unlink(self, path: str) -> int:
        """Refuse, as tracefs does."""
        del path
        raise mfusepy.FuseOSError(errno.EPERM)

    def rename(self, old: str, new: str) -> int:
        """Refuse, as tracefs does."""
        del old, new
        raise mfusepy.FuseOSError(errno.EPERM)

    def symlink(self, target: str, source: str) -> int:
        """Refuse, as tracefs does."""
        del target, source
        raise mfusepy.FuseOSError(errno.EPERM)

    def utimens(self, path: str, times: tuple[int, int] | None = None) -> int:
        """Take a `touch` without effect."""
        del path, times
        return 0


def serve(files: RemoteFiles, directory: Path) -> None:
    """Serve `directory` until it is unmounted or the process is gone."""
    operations = Operations(files)

    def watch(unmount_it: Callable[[Path], None]) -> None:
        files.wait_for_end()
        unmount_it(directory)
        time.sleep(1)
        # Still here: it is bound to another place too, where nothing can be answered any more.
        os._exit(0)

    threading.Thread(target=watch, args=(unmount,), daemon=True).start()
    try:
        mfusepy.FUSE(
            operations,
            str(directory),
            raw_fi=True,
            foreground=True,
            fsname="tracepoint",
            default_permissions=True,
            # Events and instances come and go by other ways than this directory.
            entry_timeout=0,
            attr_timeout=0,
        )
    except RuntimeError as error:
        # What fuse_main() returned; 8 also stands for a signal that ended it, when it has unmounted.
        if error.args != (_ENDED,) or directory.is_mount():
            raise TracepointError(f"{directory}: libfuse failed with status {error}") from None
