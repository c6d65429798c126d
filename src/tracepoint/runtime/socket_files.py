"""The control files of another process as the room `control` wants a tracefs: its `Files`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tracepoint.runtime.files import write_all

if TYPE_CHECKING:
    from tracepoint.runtime.socket_client import RemoteFiles, RemoteHandle


class ProcessFiles:
    """A process in the place of a kernel; every failure is an OSError or a ProcessError."""

    def __init__(self, files: RemoteFiles, pid: int) -> None:
        self.root = f"process {pid}"
        self._files = files

    def read(self, path: str) -> str:
        """Return the content of a file."""
        return self._files.read_text(path)

    def write(self, path: str, text: str, *, truncate: bool = False) -> None:
        """Open a file for appending (or truncating) and write the text; an empty one only opens."""
        # No O_CREAT: a name that is not there must fail with ENOENT, not EACCES.
        handle = self._files.open(path, os.O_WRONLY | (os.O_TRUNC if truncate else os.O_APPEND))
        try:
            if text:
                write_all(handle, text.encode(errors="surrogateescape"))
        finally:
            handle.close()

    def names(self, path: str) -> list[str]:
        """Return the names in a folder, sorted."""
        return sorted(self._files.names(path))

    def exists(self, path: str) -> bool:
        """Whether a file or folder is there."""
        try:
            self._files.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def make_folder(self, path: str) -> None:
        """Make an instance."""
        self._files.mkdir(path)

    def remove_folder(self, path: str) -> None:
        """Remove an instance."""
        self._files.rmdir(path)

    def open_pages(self, path: str) -> Pages:
        """Open a `trace_pipe_raw`; its reads never wait."""
        return Pages(self._files.open(path, os.O_RDONLY | os.O_NONBLOCK))

    def kallsyms(self) -> str:
        """Return the names that stand for places in the code."""
        return self._files.kallsyms()


class Pages:
    """An open `trace_pipe_raw`."""

    def __init__(self, handle: RemoteHandle) -> None:
        self._handle = handle

    def read(self, size: int) -> bytes:
        """Return the next page, nothing when there is none now."""
        try:
            return self._handle.read(size, 0)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        """Close it."""
        self._handle.close()
