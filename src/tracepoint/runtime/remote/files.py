"""The control files of another process as the room `control` wants a tracefs: its `Files`."""

from __future__ import annotations

import contextlib
import errno
import os
from typing import TYPE_CHECKING

from tracepoint.runtime.files.file import write_all
from tracepoint.runtime.remote.client import SilentError
from tracepoint.runtime.remote.registry import ProcessError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tracepoint.runtime.remote.client import RemoteFiles, RemoteHandle


@contextlib.contextmanager
def _as_system_error() -> Iterator[None]:
    """Raise OSError (ESRCH, ETIMEDOUT) when the process is gone or silent: `control` knows nothing else."""
    try:
        yield
    except ProcessError as error:
        number = errno.ETIMEDOUT if isinstance(error, SilentError) else errno.ESRCH
        raise OSError(number, str(error)) from None


class ProcessFiles:
    """A process in the place of a kernel; every failure is an OSError."""

    # A place in the code gets a symbol when it is first in a stack, and they end with the process.
    symbols_last = False

    def __init__(self, files: RemoteFiles, pid: int) -> None:
        self.root = f"process {pid}"
        self._files = files

    @_as_system_error()
    def read(self, path: str) -> str:
        """Return the content of a file."""
        return self._files.read_text(path)

    @_as_system_error()
    def write(self, path: str, text: str, *, truncate: bool = False) -> None:
        """Open a file for appending (or truncating) and write the text; an empty one only opens."""
        # No O_CREAT: a name that is not there must fail with ENOENT, not EACCES.
        handle = self._files.open(path, os.O_WRONLY | (os.O_TRUNC if truncate else os.O_APPEND))
        try:
            if text:
                write_all(handle, text.encode(errors="surrogateescape"))
        finally:
            handle.close()

    @_as_system_error()
    def names(self, path: str) -> list[str]:
        """Return the names in a folder, sorted."""
        return sorted(self._files.names(path))

    @_as_system_error()
    def exists(self, path: str) -> bool:
        """Return whether a file or folder is there."""
        try:
            self._files.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    @_as_system_error()
    def make_folder(self, path: str) -> None:
        """Make an instance."""
        self._files.mkdir(path)

    @_as_system_error()
    def remove_folder(self, path: str) -> None:
        """Remove an instance."""
        self._files.rmdir(path)

    @_as_system_error()
    def open_pages(self, path: str) -> RemotePages:
        """Open a `trace_pipe_raw`; its reads never wait."""
        return RemotePages(self._files.open(path, os.O_RDONLY | os.O_NONBLOCK))

    @_as_system_error()
    def kallsyms(self) -> str:
        """Return the names that stand for places in the code."""
        return self._files.kallsyms()

    def modules(self) -> str:
        """Return nothing: a process has none."""
        return ""

    def variables(self, _names: Iterable[str], _kallsyms: str) -> dict[str, int]:
        """Return nothing: a process has no variables of a kernel."""
        return {}


class RemotePages:
    """An open `trace_pipe_raw`, which is no file of this process."""

    handle = None

    def __init__(self, handle: RemoteHandle) -> None:
        self._handle = handle

    @_as_system_error()
    def read(self, size: int) -> bytes:
        """Return the next page, nothing when there is none now."""
        try:
            return self._handle.read(size, 0)
        except BlockingIOError:
            return b""

    @_as_system_error()
    def close(self) -> None:
        """Close it."""
        self._handle.close()
