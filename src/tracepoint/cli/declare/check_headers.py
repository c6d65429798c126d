"""Checking headers: those that no earlier run has checked are read; headers of one tree go together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.check.engine import Checker
from tracepoint.cli.declare.check_cache import Entry, FoundHeader, Results
from tracepoint.cli.inputs import STDIN, make_reader, read_one
from tracepoint.source.text import encode
from tracepoint.tree.disk import digest_of
from tracepoint.tree.facts import read_facts
from tracepoint.tree.headers import paused_collector
from tracepoint.tree.loader import find_kernel_root
from tracepoint.tree.string_callers import StringCallers, string_events

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.cli.declare.check_cache import CheckCache
    from tracepoint.cli.declare.check_scope import CheckedFiles
    from tracepoint.cli.output import Output
    from tracepoint.cli.settings import Settings
    from tracepoint.tree.disk import Disk


@dataclass(frozen=True, slots=True)
class _Tree:
    """The checker of one kernel tree's headers, and what is known about their callers."""

    checker: Checker
    callers: StringCallers

    @classmethod
    def of(cls, root: Path | None, chosen: Settings, disk: Disk) -> _Tree:
        """Make the checker of a tree, with the facts of that tree."""
        facts = read_facts(root, disk)
        checker = Checker(select=chosen.select, ignore=chosen.ignore, abi=chosen.abi, facts=facts)
        return cls(checker, StringCallers(root))


class HeaderChecker:
    """Checks the headers of a scope in turn, keeping none of them."""

    def __init__(self, chosen: Settings, scope: CheckedFiles, cache: CheckCache) -> None:
        self._chosen = chosen
        self._scope = scope
        self._cache = cache
        self._disk = cache.disk
        self._reader = make_reader(chosen, scope.texts, cache.disk)
        self._trees: dict[Path | None, _Tree] = {}
        roots = [find_kernel_root(Path(cache.disk.real(folder)), cache.disk) for folder in chosen.include]
        self._given = next((root for root in roots if root is not None), None)

    def check(self, paths: Sequence[Path], out: Output) -> Results:
        """Return the findings of the headers at some paths of the scope; `-` is stdin."""
        with paused_collector():
            return self._check_all(paths, out)

    def _check_all(self, paths: Sequence[Path], out: Output) -> Results:
        entries: dict[str, Entry] = {}
        with out.progress("reading", len(paths)) as progress:
            for path in progress.over(paths):
                shown = STDIN if str(path) == "-" else str(path)
                entries[shown] = self._check(path, shown)
        findings = [finding for tree in self._trees.values() for finding in tree.checker.findings()]
        results = Results({path: entry.header for path, entry in entries.items()}, findings)
        if self._cache.is_on:
            asked = {self._root(path) for path, entry in entries.items() if entry.strings}
            index = {str(root): self._trees[root].callers.identity for root in asked if root is not None}
            self._cache.save(self._scope.paths, entries, results, index)
        return results

    def _root(self, path: str) -> Path | None:
        return find_kernel_root(Path(self._disk.real(path)).parent, self._disk) or self._given

    def _check(self, path: Path, shown: str) -> Entry:
        root = self._root(shown)
        if root not in self._trees:
            self._trees[root] = _Tree.of(root, self._chosen, self._disk)
        tree = self._trees[root]
        known = self._cache.entry(shown)
        if known is not None and tree.callers.of(known.strings) == known.callers:
            tree.checker.add_checked(known.checked)
            return known
        self._reader.take_visited()
        header = read_one(self._reader, path, self._scope.texts)
        strings = string_events(header)
        callers = tree.callers.of(strings)
        checked = tree.checker.add(header, callers)
        files = frozenset({shown, *self._reader.take_visited()})
        text = header.source.text if header.source is not None else ""
        found = FoundHeader(header.is_trace_header, digest_of(encode(text)))
        return Entry(checked, found, files, tuple(strings), callers)
