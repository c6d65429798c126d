"""The operations on files of tracefs: all that this room asks for, so that tests can replace tracefs.

Only type checkers import this: `files.MountedFiles` has the operations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable


class PageSource(Protocol):
    """An open `trace_pipe_raw`."""

    @property
    def handle(self) -> int | None:
        """The file descriptor; None where it is not a file of this process."""

    def read(self, size: int) -> bytes:
        """Return the next page of `size` bytes, nothing when there is none now; OSError.

        ESRCH says that the process that made the pages has ended, and everything with it.
        """

    def close(self) -> None:
        """Close it; until then its instance cannot be removed."""


class Files(Protocol):
    """What tracefs is asked to do; paths are relative to the mount, every failure is an OSError."""

    root: str
    #: Whether the symbols can still be read after the recording, unlike those of a process, which may end.
    symbols_last: bool

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
