"""The tree to change: its index, and texts that the caller reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracepoint.errors import PlaceError
from tracepoint.named import NamedTuple
from tracepoint.source.closure import SharedFiles
from tracepoint.source.text import SourceFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.tree.query.tree import Tree

#: No source file of a kernel tree comes near this size.
MAX_FILE_CHARS = 32 << 20


class TreeFile(NamedTuple):
    """A file of the tree: its text as `source.text.decode` gives it, and whether it is executable."""

    text: str
    is_executable: bool = False


@dataclass(slots=True)
class KernelTree:
    """A kernel tree: its index, and `read`, which returns a file's content or None when there is none.

    `assign_str_arity` is the number of arguments that `__assign_str` takes there, None when the tree
    does not say.  `shared` caches what was found in included files.
    """

    tree: Tree
    read: Callable[[str], TreeFile | None]
    assign_str_arity: int | None = None
    shared: SharedFiles = field(default_factory=SharedFiles)
    _sources: dict[str, SourceFile] = field(default_factory=dict)
    _included: dict[str, SourceFile | None] = field(default_factory=dict)

    def text(self, path: str) -> str | None:
        """Return the text of a file, or None if it does not exist."""
        check_path(path)
        if path in self._sources:
            return self._sources[path].text
        found = self.read(path)
        return None if found is None else found.text

    def included(self, path: str) -> SourceFile | None:
        """Return a file that others include, or None if it does not exist."""
        if path not in self._included:
            text = self.text(path)
            self._included[path] = None if text is None else SourceFile(path, text)
        return self._included[path]

    def source(self, path: str) -> SourceFile:
        """Return a file to change.

        Raises PlaceError for a path outside the tree, a missing file, and one that a
        mailed patch would damage.
        """
        check_path(path)
        if path not in self._sources:
            found = self.read(path)
            if found is None:
                raise PlaceError(f"{path}: no such file in the tree")
            _check_text(path, found.text)
            self._sources[path] = SourceFile(path, found.text)
        return self._sources[path]

    def mode(self, path: str) -> str:
        """Return the mode of a file as git writes it."""
        found = self.read(path)
        return "100755" if found is not None and found.is_executable else "100644"


def check_path(path: str) -> None:
    """Raise PlaceError unless it is a path of a file below the tree, as a patch spells it.

    >>> check_path("mm/memory.c")
    >>> check_path("../etc/passwd")
    Traceback (most recent call last):
    tracepoint.errors.PlaceError: '../etc/passwd' is not a path of a file below the tree
    """
    parts = path.split("/")
    is_plain = all(part not in ("", ".", "..", ".git") for part in parts)
    if not is_plain or len(path) > 1000 or not path.isprintable() or set(path) & set('"\\ '):
        raise PlaceError(f"{path!r} is not a path of a file below the tree")


def _check_text(path: str, text: str) -> None:
    if len(text) > MAX_FILE_CHARS:
        raise PlaceError(f"{path}: too large for a source file")
    if "\0" in text:
        raise PlaceError(f"{path}: not a text file")
    if "\r\n" in text:
        raise PlaceError(f"{path}: has CRLF line ends, which git am would remove from the patch")
