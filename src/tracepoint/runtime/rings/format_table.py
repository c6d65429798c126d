"""The formats of events, written beside the mapped rings that hold records of them."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.layout.format import write_format
from tracepoint.runtime.fire.probes import EventError
from tracepoint.tracefile.ringfiles import SYSTEM

if TYPE_CHECKING:
    from tracepoint.layout.format import EventFormat


class FormatTable:
    """The file with the formats of what this process records into the rings of a directory."""

    def __init__(self, directory: str) -> None:
        self.directory = os.path.abspath(directory)  # noqa: PTH100 - a program may change its directory
        self._known: dict[int, EventFormat] = {}
        os.register_at_fork(after_in_child=self._after_fork)

    def add(self, layout: EventFormat) -> None:
        """Write an event's format, before the first record of it; raises OSError."""
        if layout.id not in self._known:
            self._known[layout.id] = layout
            self._write([layout])

    def _write(self, layouts: list[EventFormat]) -> None:
        text = "".join(f"{SYSTEM}{item.system}\n{write_format(item)}\n" for item in layouts)
        path = f"{self.directory}/formats-{os.getpid()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        file = os.open(path, flags, 0o600)
        try:
            # One write: who is killed leaves all of it or nothing.
            os.write(file, text.encode())
        finally:
            os.close(file)

    def _after_fork(self) -> None:
        # The child's rings bear its own number, and so does its table.
        try:
            self._write(list(self._known.values()))
        except OSError:
            self._known.clear()


def table_in(directory: str | os.PathLike[str] | None) -> FormatTable | None:
    """Return the table of a directory for rings, None without one; raises EventError."""
    if directory is None:
        return None
    check_directory(directory)
    return FormatTable(os.fspath(directory))


def check_directory(directory: str | os.PathLike[str]) -> None:
    """Raise EventError where rings cannot be made as files: at once, not when the first event is lost."""
    path = Path(directory)
    if not path.exists():
        raise EventError(f"the directory {path} for the rings is not there", errno.ENOENT)
    if not path.is_dir():
        raise EventError(f"{path}, where the rings should go, is not a directory", errno.ENOTDIR)
    if not os.access(path, os.W_OK | os.X_OK):
        raise EventError(f"the directory {path} for the rings cannot be written to", errno.EACCES)
