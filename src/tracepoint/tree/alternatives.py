"""Trace headers of a tree that are alternatives: their events are never in one kernel."""

from __future__ import annotations

from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.source.text import decode
from tracepoint.tree.creators import Creators
from tracepoint.tree.disk import DISK
from tracepoint.tree.kbuild import Kbuild

if TYPE_CHECKING:
    from tracepoint.tree.disk import Disk


class Alternatives:
    """The headers of one tree whose events Kconfig or a Makefile keeps apart, looked up on demand.

    The files that create their events are never in one kernel, such as those of C and Rust binder.
    """

    def __init__(self, root: Path, disk: Disk = DISK) -> None:
        self._root = root
        self._disk = disk
        self._known: dict[frozenset[str], bool] = {}
        self._created: dict[str, list[str]] = {}

    @cached_property
    def _kbuild(self) -> Kbuild:
        return Kbuild(self._text)

    @cached_property
    def _creators(self) -> Creators:
        return Creators(self._root, disk=self._disk)

    def are(self, one: str, other: str) -> bool:
        """Return whether two headers, by path, are alternatives; False when no file creates their events."""
        pair = frozenset((one, other))
        if pair not in self._known:
            both = list(product(self._creating(one), self._creating(other)))
            self._known[pair] = bool(both) and all(self._kbuild.exclude_each_other(a, b) for a, b in both)
        return self._known[pair]

    def _creating(self, header: str) -> list[str]:
        if header not in self._created:
            # A header may be outside a tree that is used only for its includes.
            self._created[header] = [
                str(file.relative_to(self._root))
                for file in self._creators.of(Path(header).absolute())
                if file.is_relative_to(self._root)
            ]
        return self._created[header]

    def _text(self, path: str) -> str | None:
        data = self._disk.read(str(self._root / path))
        return None if data is None else decode(data)
