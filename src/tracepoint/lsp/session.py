"""The files that an editor has open: their texts, findings and headers, by path."""

from __future__ import annotations

import gc
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.check.engine import Checker
from tracepoint.check.engine_python import check_python_text
from tracepoint.diagnostics import Diagnostic, Severity, Span
from tracepoint.errors import SourceError, TracepointError
from tracepoint.layout.abi import Abi
from tracepoint.lsp.complete import closed_text
from tracepoint.lsp.incremental import after_change, checked_text
from tracepoint.model.surroundings import DECLARES
from tracepoint.tree.callsites.calls import classify
from tracepoint.tree.facts import read_facts
from tracepoint.tree.headers import paused_collector
from tracepoint.tree.loader import find_kernel_root
from tracepoint.tree.query.opening import open_saved, open_updated
from tracepoint.tree.string_callers import StringCallers, string_events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tracepoint.lsp.incremental import CheckedText
    from tracepoint.model.event import TraceHeader
    from tracepoint.tree.headers import HeaderReader
    from tracepoint.tree.query.tree import Tree
    from tracepoint.tree.tracing_macros import TreeFacts

#: Every so many checks of a whole text, all objects are searched for garbage: it takes as long as a key may.
FULL_COLLECTION_EVERY = 16


@dataclass
class OpenFiles:
    """What all open files share: a reader of headers, the tree's facts, and which rules run.

    `open_reader` makes a reader for which texts by absolute path stand for files of the disk; it is
    asked for a new one when a file was saved, since that may change what others include.
    """

    open_reader: Callable[[Mapping[str, str]], HeaderReader]
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    abi: Abi = Abi.X86_64
    texts: dict[str, str] = field(default_factory=dict)
    _reader: HeaderReader | None = None
    _n_settled: int = 0
    _indexes: dict[Path, Tree | None] = field(default_factory=dict)
    _trees: dict[Path | None, tuple[TreeFacts, StringCallers]] = field(default_factory=dict)

    def forget(self) -> None:
        """Read included files, and what the tree says, again."""
        self._reader = None
        self._trees.clear()
        self._indexes.clear()

    def collect_garbage(self) -> None:
        """Free what is no longer used, now and then among all objects; meant for pauses in typing."""
        self._n_settled += 1
        gc.collect(1 if self._n_settled % FULL_COLLECTION_EVERY else 2)

    def read(self, path: str, text: str) -> TraceHeader:
        """Read a header of this text; raises SourceError when that is not possible."""
        real = str(Path(path).resolve())
        before = self.texts.get(real)
        self.texts[real] = text
        try:
            with paused_collector():
                return self._open().read(path)
        finally:
            if before is None:
                del self.texts[real]
            else:
                self.texts[real] = before

    def read_file(self, path: str) -> TraceHeader | None:
        """Read a header of the disk, None if it cannot be read."""
        try:
            with paused_collector():
                return self._open().read(path)
        except TracepointError:
            return None

    def may_declare(self, path: str, text: str, word: str) -> Iterator[str]:
        """Yield the headers that may declare the tracepoint of `trace_x` in a file: first those of the index.

        Without a valid index of the tree these are the trace headers that the file includes itself.
        """
        tree = self.tree_of(path)
        if tree is not None:
            for header in dict.fromkeys(_declaring(tree, word)):
                yield str(Path(tree.root, header))
        for file in self._open().included(path, text):
            if DECLARES.search(file.text):
                yield file.path

    def check(self, path: str, text: str) -> tuple[TraceHeader, list[Diagnostic]]:
        """Read a header of this text and return it with its findings, those of `tracepoint check`."""
        header = self.read(path, text)
        facts, callers = self._tree(find_kernel_root(Path(path).resolve().parent))
        checker = Checker(select=self.select, ignore=self.ignore, abi=self.abi.name.lower(), facts=facts)
        checker.add(header, callers.of(string_events(header)))
        return header, checker.findings()

    def _open(self) -> HeaderReader:
        if self._reader is None:
            self._reader = self.open_reader(self.texts)
        return self._reader

    def tree_of(self, path: str) -> Tree | None:
        """Return the saved index of the tree that a file is in, None without a valid one."""
        root = find_kernel_root(Path(path).resolve().parent)
        if root is None:
            return None
        if root not in self._indexes:
            self._indexes[root] = open_saved(root)
        return self._indexes[root]

    def updated_tree_of(self, path: str) -> Tree | None:
        """Return the index of the tree that a file is in, updated where files changed since it was saved.

        None outside of trees; raises TracepointError for a tree without an index.
        """
        root = find_kernel_root(Path(path).resolve().parent)
        if root is None:
            return None
        tree = self.tree_of(path) or open_updated(root)
        if tree is None:
            raise TracepointError(
                f"{root}: callers cannot be found without an index: run `tracepoint index {root}`"
            )
        self._indexes[root] = tree
        return tree

    def _tree(self, root: Path | None) -> tuple[TreeFacts, StringCallers]:
        if root not in self._trees:
            self._trees[root] = read_facts(root), StringCallers(root)
        return self._trees[root]


class Document:
    """One open file.  Its findings are those of its text; a header's are exact after `settle`.

    `findings` after `change` are those of the changed declaration and of all others as they were; what only
    shows between declarations, and all that a change outside of them does, is found by `settle`.
    """

    def __init__(self, session: OpenFiles, path: str, text: str, version: int = 0) -> None:
        self._session = session
        self.version = version
        self.path = path
        self.text = text
        self.findings: tuple[Diagnostic, ...] = ()
        self.is_settled = False
        self._header: TraceHeader | None = None
        self._checked: CheckedText | None = None

    @property
    def is_python(self) -> bool:
        """Whether it is a Python file; all others are C."""
        return self.path.endswith(".py")

    @property
    def declares(self) -> bool:
        """Whether it is a header that declares events, or at least names a system of them."""
        return not self.is_python and ("TRACE_SYSTEM" in self.text or DECLARES.search(self.text) is not None)

    @property
    def header(self) -> TraceHeader | None:
        """What the text declares now, None if it is no trace header or cannot be read."""
        if self._header is None and self.declares:
            try:
                self._header = self._session.read(self.path, self.text)
            except TracepointError:
                return None
        return self._header

    def read_closed(self, offset: int) -> TraceHeader | None:
        """Return what the text declares up to an offset, as if its open brackets were closed there."""
        try:
            return self._session.read(self.path, closed_text(self.text, offset))
        except TracepointError:
            return None

    def change(self, text: str) -> None:
        """Take a new text, and find what is wrong in the declaration that changed."""
        self.text = text
        self._header = None
        self.is_settled = False
        if self._checked is None or not self.declares:
            self.settle()
            return
        try:
            self._checked = after_change(
                self._checked, text, lambda reduced: self._session.check(self.path, reduced)
            )
        except TracepointError:
            self.settle()
            return
        self.findings = self._checked.findings

    def settle(self) -> None:
        """Find all that is wrong in the text."""
        self._checked = None
        self.is_settled = True
        self.findings = ()
        try:
            if self.is_python:
                session = self._session
                self.findings = tuple(
                    check_python_text(self.text, self.path, select=session.select, ignore=session.ignore)
                )
            elif self.declares:
                self._header, found = self._session.check(self.path, self.text)
                self.findings = tuple(d for d in found if d.span.path == self.path)
                self._checked = checked_text(self._header, list(self.findings))
        except TracepointError as error:
            self.findings = (_unreadable(self.path, error),)
        self._session.collect_garbage()


def _declaring(tree: Tree, word: str) -> Iterator[str]:
    """Yield the headers of an index that declare the tracepoint of `trace_x`, relative to the tree."""
    for event in tree.events():
        if event.name in word and classify(word, {event.name}) and not (event.is_custom or event.is_syscall):
            yield event.header
    for row in tree.bare_tracepoints():
        if row.call_name in word and classify(word, {row.call_name}):
            yield row.header


def _unreadable(path: str, error: TracepointError) -> Diagnostic:
    """Return the finding that a text cannot be read at all."""
    span = error.span if isinstance(error, SourceError) and error.span is not None else Span(path, 1, 1, 1, 1)
    return Diagnostic("", "unreadable", str(error), span, Severity.ERROR)
