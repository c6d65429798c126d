"""A source tree without an index: a query of one name is answered from the few files that have it.

The bytes of all files are searched once; then a name needs one or two headers.  Queries of all
events create the index.
"""

from __future__ import annotations

import re
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

from tracepoint.source.text import decode
from tracepoint.tree.callsites.calls import SiteKind, read_facts
from tracepoint.tree.declaring import DeclaringHeaders
from tracepoint.tree.headers import paused_collector
from tracepoint.tree.index.build import Builder, holding
from tracepoint.tree.index.scan import Holds, read_bytes
from tracepoint.tree.index.store import SYSCALLS, IndexData
from tracepoint.tree.query.tree import CALLING, Tree, TreeEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tracepoint.tree.callsites.calls import CallSite
    from tracepoint.tree.index.headers import Record

_GLOB = frozenset("*?[")
_OF_SYSCALLS = ("sys_enter_", "sys_exit_")
#: A macro with one of these may fire any event.
_PASTES = re.compile(rb"\btrace_\w*\s*##|##\s*(?:\w*trace_|_?trace\b)")


class SearchedTree(Tree):
    """A source tree whose index is created only for queries of all events.

    Queries of one name, system or header search the tree; the answers are those
    of the index. `load` creates the index, using what earlier searches found out about the files.
    """

    def __init__(
        self,
        root: str,
        load: Callable[[IndexData | None], Tree],
        jobs: int = 0,
        on_progress: Callable[[str, int, int], None] | None = None,
    ) -> None:
        super().__init__(root, "source", self._load_whole, lambda: self._whole._more)  # noqa: SLF001 - a tree too
        self._load = load
        self._jobs = jobs
        self._on_progress = on_progress
        self._parts: dict[str, Tree] = {}
        self._with_mentions: dict[str, Tree] = {}
        self._records: dict[str, Record] = {}

    def events(self, pattern: str = "*") -> list[TreeEvent]:
        """Return the events that match a pattern, like a tree with an index."""
        system, colon, name = pattern.partition(":")
        if not colon:
            system, name = "", pattern
        if not self._is_whole:
            if name and not _GLOB & set(name):
                return self._named(name).events(pattern)
            if system and not name and not _GLOB & set(system):
                return self._of_system(system).events(pattern)
        return super().events(pattern)

    def call_sites(self, event: str | TreeEvent, kinds: Iterable[SiteKind] = CALLING) -> list[CallSite]:
        """Return where an event is mentioned, like a tree with an index."""
        name = event.name if isinstance(event, TreeEvent) else event.rpartition(":")[2]
        if self._is_whole or not name or _GLOB & set(name):
            return super().call_sites(event, kinds)
        return self._mentioning(name).call_sites(event, kinds)

    def tracepoints(self, name: str = "") -> list[tuple[str, str, int]]:
        """Return the tracepoints without an event, like a tree with an index."""
        return (
            super().tracepoints(name) if self._is_whole or not name else self._named(name).tracepoints(name)
        )

    def creators(self, header: str) -> list[str]:
        """Return the C files that define CREATE_TRACE_POINTS for a header."""
        if self._is_whole:
            return super().creators(header)
        return sorted(path for path, made in self._created.items() if header in made)

    def exports(self, event: str | TreeEvent) -> list[tuple[str, int, bool]]:
        """Return where a tracepoint is exported to modules, like a tree with an index."""
        if self._is_whole:
            return super().exports(event)
        name = event.name if isinstance(event, TreeEvent) else event.rpartition(":")[2]
        found: list[tuple[str, int, bool]] = []
        for path in holding(self._holds, Holds.TRACE):
            data = read_bytes(self.root, path) or b""
            if b"EXPORT_TRACEPOINT" in data and name.encode() in data:
                self._builder.work.n_sources += 1
                exports = read_facts(decode(data), frozenset()).exports
                self.notes[:] = [str(self._builder.work)]
                found += [(path, line, is_gpl) for one, line, is_gpl in exports if one == name]
        return found

    # The index, if it is needed.

    @cached_property
    def _whole(self) -> Tree:
        state = {"files": self._builder.searched(self._holds)} if "_holds" in self.__dict__ else None
        tree = self._load(IndexData(self.root, "source", {}, {}, state) if state else None)
        self.notes[:] = tree.notes
        return tree

    def _load_whole(self) -> dict[str, Any]:
        return self._whole._head  # noqa: SLF001 - a tree too

    @property
    def _is_whole(self) -> bool:
        return "_whole" in self.__dict__

    # Searching and reading.

    @cached_property
    def _builder(self) -> Builder:
        return Builder(self.root, None, self._jobs, self._on_progress)

    @cached_property
    def _holds(self) -> dict[str, int]:
        with self._builder as builder:
            return builder.search()

    @cached_property
    def _declaring(self) -> DeclaringHeaders:
        def read(path: str) -> str | None:
            data = read_bytes(self.root, path) if path in self._builder.files else None
            return None if data is None else decode(data)

        return DeclaringHeaders(holding(self._holds, Holds.DECLARATIONS), read)

    @cached_property
    def _created(self) -> dict[str, list[str]]:
        return self._builder.creators(self._holds)

    def _named(self, name: str) -> Tree:
        """Return the part of the tree that may declare a name."""
        if name not in self._parts:
            self._parts[name] = self._part(self._declared_in(name))
        return self._parts[name]

    def _mentioning(self, name: str) -> Tree:
        """Return the part of the tree that may declare or mention a name."""
        if name in self._with_mentions:
            return self._with_mentions[name]
        word = name.encode()
        chosen = self._declared_in(name)
        found = [self._having(Holds.TRACE, lambda data: word in data or _may_paste(data))]
        found += [dict.fromkeys(holding(self._holds, flag), flag) for flag in (Holds.RUST, Holds.PASTES)]
        for path, flag in chain.from_iterable(some.items() for some in found):
            chosen[path] = chosen.get(path, Holds.NOTHING) | flag
        self._with_mentions[name] = self._part(chosen)
        return self._with_mentions[name]

    def _declared_in(self, name: str) -> dict[str, Holds]:
        chosen = dict.fromkeys(self._declaring.of_name(name), Holds.DECLARATIONS)
        if name.startswith(_OF_SYSCALLS):
            word = name.split("_", 2)[2].encode()
            chosen.update(self._having(Holds.SYSCALLS, lambda data: word in data))
        return chosen

    def _of_system(self, system: str) -> Tree:
        chosen = dict.fromkeys(self._declaring.of_system(system), Holds.DECLARATIONS)
        if system == SYSCALLS:
            chosen.update(self._having(Holds.SYSCALLS, lambda _data: True))
        return self._part(chosen)

    def _having(self, flag: Holds, is_wanted: Callable[[bytes], bool]) -> dict[str, Holds]:
        """Return the files that contain something and whose bytes are wanted."""
        paths = holding(self._holds, flag)
        return {path: flag for path in paths if is_wanted(read_bytes(self.root, path) or b"")}

    def _part(self, chosen: Mapping[str, Holds]) -> Tree:
        """Return the tree of some files, reading headers that have not been read."""
        with paused_collector(), self._builder as builder:
            wanted = holding(chosen, Holds.DECLARATIONS)
            asked = dict.fromkeys((path for path in wanted if path not in self._records), Holds.DECLARATIONS)
            self._records.update(builder.headers(asked, holding(self._holds, Holds.CREATES)))
            index = builder.index(chosen, {path: self._records[path] for path in wanted}, self._holds)
            self.notes[:] = [str(builder.work)]
            return Tree.of(index)


def _may_paste(data: bytes) -> bool:
    return b"##" in data and _PASTES.search(data) is not None
