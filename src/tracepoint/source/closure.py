"""The files that a header includes, directly or not, and which of them hold a name.

Nothing is read before it is asked for, and then only up to the nearest file that answers.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tracepoint.source.declarations import Declarations
    from tracepoint.source.macros import Macro
    from tracepoint.source.preprocess import Loader, Preprocessed
    from tracepoint.source.structs import StructText
    from tracepoint.source.text import SourceFile

MAX_CLOSURE_FILES = 6000
MAX_CLOSURE_CHARS = 200_000_000
#: The text of files that were asked for last is kept up to this many tokens together.
MAX_KEPT_TOKENS = 200_000

_DIRECTIVE = re.compile(r'#[ \t]*(?:define[ \t]+([A-Za-z_]\w*)|include[ \t]*([<"])([^>"\n]+)[>"])')
_COMMENT = re.compile(r"/\*(?:[^*]|\*(?!/))*\*/|//[^\n]*")
#: The text between `enum` and its brace is short; a bound keeps endless text from being read again.
_DECLARATION = re.compile(r"\b(?:enum\b\s{0,80}(\w*)[^;{}()]{0,400}\{|typedef\b)")
_WORD = re.compile(r"[A-Za-z_]\w*")
_TAG = re.compile(r"\benum\s+(\w+)")
_STOP = re.compile(r"[;{}]")
_LAST_WORD = re.compile(r"(\w+)\s*\Z")
#: What may stand between `struct` and its brace, with bounds as above.  It is only looked at: in `a struct is
#: struct s {` the first word hides nothing.
_BEFORE_BRACE = r"(?=\s([\w\s]{1,300}(?:\([^;{}]{0,400})?)\{)"
_STRUCT = tuple(re.compile(keyword + _BEFORE_BRACE) for keyword in ("struct", "union"))
_AFTER_BRACE = re.compile(r"\}([^;{}]*);")
_POINTER = re.compile(r"\(\s*\*\s*(\w+)\s*\)")


class FileNames(NamedTuple):
    """What a file includes, as `(name, is_quoted)`, and the names that it defines and may declare."""

    includes: list[tuple[str, bool]]
    defined: list[str]
    declared: list[str]


@dataclass(slots=True)
class SharedFiles:
    """What was found in included files, by path; headers read under one configuration share it.

    `names_of` looks into a file; `defining` and `declaring` say by name which of the files that were
    looked into hold it, `structs_in` which of those that were searched for structs may define
    one of that tag or typedef; `visited` are the paths that were looked into since it was
    cleared.
    """

    names_of: Callable[[SourceFile], FileNames] = field(default_factory=lambda: names_in)
    macros: dict[str, dict[str, Macro]] = field(default_factory=dict)
    declared: dict[str, Declarations] = field(default_factory=dict)
    structs: dict[tuple[str, str, str], StructText | None] = field(default_factory=dict)
    defining: dict[str, list[str]] = field(default_factory=dict)
    declaring: dict[str, list[str]] = field(default_factory=dict)
    structs_in: dict[str, set[str]] = field(default_factory=dict)
    visited: set[str] = field(default_factory=set)
    _recent: dict[str, Preprocessed] = field(default_factory=dict)
    _includes: dict[str, list[tuple[str, bool]]] = field(default_factory=dict)
    _searched: set[str] = field(default_factory=set)
    _resolved: dict[int, tuple[Loader, dict[str, tuple[SourceFile, ...]]]] = field(default_factory=dict)

    def resolved(self, loader: Loader) -> dict[str, tuple[SourceFile, ...]]:
        """Return the table of what each file includes, as a loader finds it."""
        return self._resolved.setdefault(id(loader), (loader, {}))[1]

    def preprocessed(self, path: str, read: Callable[[], Preprocessed]) -> Preprocessed:
        """Return the file at a path as `read` preprocesses it: a header often asks for many of its types."""
        known = self._recent.pop(path, None)
        known = self._recent[path] = read() if known is None else known
        n_tokens = sum(len(file.tokens) for file in self._recent.values())
        for oldest in list(self._recent)[:-1]:
            if n_tokens <= MAX_KEPT_TOKENS:
                break
            n_tokens -= len(self._recent.pop(oldest).tokens)
        return known

    def includes(self, file: SourceFile) -> list[tuple[str, bool]]:
        """Return what a file includes, as `(name, is_quoted)`, and remember the names that it holds."""
        known = self._includes.get(file.path)
        if known is None:
            path = file.path
            known, defined, declared = self.names_of(file)
            self._includes[path] = known
            for name in defined:
                self.defining.setdefault(name, []).append(path)
            for name in declared:
                self.declaring.setdefault(name, []).append(path)
        return known

    def may_define(self, file: SourceFile, tag: str) -> bool:
        """Return whether a file may define a struct or union of that tag, or a typedef for one."""
        if file.path not in self._searched:
            self._searched.add(file.path)
            for name in _struct_names(file.text):
                self.structs_in.setdefault(name, set()).add(file.path)
        return file.path in self.structs_in.get(tag, ())


class IncludeClosure:
    """All files that some roots include, directly or not, nearest first.

    `roots` are `(name, is_quoted, includer path)`; `more` are asked for once what the roots include
    has no answer.  Files that cannot be had are passed over.
    """

    def __init__(
        self,
        loader: Loader,
        roots: Iterable[tuple[str, bool, str]],
        shared: SharedFiles | None = None,
        *,
        more: Iterable[tuple[str, bool, str]] = (),
    ) -> None:
        self._loader = loader
        self._shared = shared or SharedFiles()
        self._resolved = self._shared.resolved(loader)
        self._roots = iter((roots, more))
        self._queue: deque[SourceFile] = deque()
        self._ranks: dict[str, int] = {}
        self._files: list[SourceFile] = []
        self._n_chars = 0

    @property
    def files(self) -> list[SourceFile]:
        """All the files, nearest first."""
        while self._grow() is not None:
            pass
        return self._files

    def _grow(self) -> SourceFile | None:
        """Look into one more file and return it, None when there are no more."""
        while not self._queue:
            roots = next(self._roots, None)
            if roots is None:
                return None
            for name, is_quoted, includer in roots:
                file = self._loader.load(name, is_quoted=is_quoted, includer=includer)
                if file is not None:
                    self._ask(file)
        if len(self._files) >= MAX_CLOSURE_FILES or self._n_chars >= MAX_CLOSURE_CHARS:
            return None
        file = self._queue.popleft()
        self._files.append(file)
        self._shared.visited.add(file.path)
        self._n_chars += len(file.text)
        for included in self._included(file):
            self._ask(included)
        return file

    def _included(self, file: SourceFile) -> tuple[SourceFile, ...]:
        known = self._resolved.get(file.path)
        if known is None:
            asked = self._shared.includes(file)
            load, path = self._loader.load, file.path
            files = (load(name, is_quoted=is_quoted, includer=path) for name, is_quoted in asked)
            known = self._resolved[path] = tuple(found for found in files if found is not None)
        return known

    def _ask(self, file: SourceFile) -> None:
        # A file is looked into in the order in which it was first asked for.
        if file.path not in self._ranks:
            self._ranks[file.path] = len(self._ranks)
            self._queue.append(file)

    def defining(self, name: str) -> Iterator[SourceFile]:
        """Yield the files that have a `#define name`, nearest first."""
        return self._holding(name, (self._shared.defining,))

    def declaring(self, name: str) -> Iterator[SourceFile]:
        """Yield the files that may declare the name as enumerator, enum tag or typedef, nearest first."""
        return self._holding(name, (self._shared.declaring,))

    def holding(self, name: str) -> Iterator[SourceFile]:
        """Yield the files that define or may declare the name, nearest first."""
        return self._holding(name, (self._shared.defining, self._shared.declaring))

    def defines(self, file: SourceFile, name: str) -> bool:
        """Return whether a file that was looked into has a `#define name`."""
        return file.path in self._shared.defining.get(name, ())

    def declares(self, file: SourceFile, name: str) -> bool:
        """Return whether a file that was looked into may declare the name."""
        return file.path in self._shared.declaring.get(name, ())

    def matching(self, tag: str, pattern: re.Pattern[str]) -> Iterator[SourceFile]:
        """Yield the files that may define a struct and in which a pattern is found, nearest first."""
        may_define = self._shared.may_define
        n_files = 0
        while n_files < len(self._files) or self._grow() is not None:
            file = self._files[n_files]
            n_files += 1
            if may_define(file, tag) and pattern.search(file.text):
                yield file

    def _holding(self, name: str, tables: tuple[dict[str, list[str]], ...]) -> Iterator[SourceFile]:
        n_files = len(self._files)
        ranks = self._ranks
        holders = {path for table in tables for path in table.get(name, ())}
        for rank in sorted(rank for path in holders if (rank := ranks.get(path, n_files)) < n_files):
            yield self._files[rank]
        while True:
            if n_files < len(self._files):
                file = self._files[n_files]
            else:
                grown = self._grow()
                if grown is None:
                    return
                file = grown
            n_files += 1
            if any(file.path in table.get(name, ()) for table in tables):
                yield file


def names_in(file: SourceFile) -> FileNames:
    """Look into a file for what it includes and for the names that it holds."""
    text = file.text
    included: dict[tuple[str, bool], None] = {}
    defined: dict[str, None] = {}
    for match in _DIRECTIVE.finditer(text):
        if not _begins_line(text, match.start()):
            continue
        name, quote, other = match.groups()
        if name:
            defined[name] = None
        else:
            included[other, quote == '"'] = None
    return FileNames(list(included), list(defined), list(_declared_names(text)))


def _begins_line(text: str, at: int) -> bool:
    """Return whether there is only white space between the beginning of the line and a place."""
    while at and text[at - 1] in " \t":
        at -= 1
    return at == 0 or text[at - 1] == "\n"


def _declared_names(text: str) -> set[str]:
    """Return every name in an enum's braces, after `enum`, or at the end of a typedef.

    A quick look by patterns, so that only files that can hold a name are read in earnest.
    """
    names: set[str] = set()
    at = 0
    stop: re.Match[str] | None = None
    enum = typedef = -1
    while True:
        # Looking for two words takes a tenth of looking for a pattern that begins with either.
        if enum < at:
            enum = _find(text, "enum", at)
        if typedef < at:
            typedef = _find(text, "typedef", at)
        at = min(enum, typedef)
        if at == len(text):
            return names
        match = _DECLARATION.match(text, at)
        if match is None:
            at += 1
            continue
        at = match.end()
        if match[1] is None:
            if stop is None or stop.start() < at:
                stop = _STOP.search(text, at)
            if stop is None:
                return names
            if stop[0] == ";":
                bare = _COMMENT.sub(" ", text[at : stop.start()])
                last = _LAST_WORD.search(bare[-200:]) or _POINTER.search(bare[:400])
                names.update(last.groups() if last else ())
                at = stop.start()
            continue
        # The word may stand in a comment before the enum itself: every name after one counts.
        names.update(_TAG.findall(match[0]))
        end = _closing_brace(text, at)
        names.update(_WORD.findall(_COMMENT.sub(" ", text[at:end])))
        at = end


def _struct_names(text: str) -> set[str]:
    """Return every word that may be the tag of a struct or union with members, or the typedef of one."""
    names: set[str] = set()
    for pattern in _STRUCT:
        for between in pattern.findall(text):
            names.update(_WORD.findall(between))
    for after in _AFTER_BRACE.findall(text):
        last = _LAST_WORD.search(after.rstrip()[-200:])
        if last is not None:
            names.add(last[1])
    return names


def _find(text: str, word: str, at: int) -> int:
    """Return where a word comes next, the end of the text when it does not."""
    found = text.find(word, at)
    return found if found >= 0 else len(text)


def _closing_brace(text: str, at: int) -> int:
    """Return where the next `}` is that is not in a comment; the end of the text without one."""
    begin = at
    while True:
        end = text.find("}", at)
        if end < 0:
            return len(text)
        comment = text.rfind("/*", begin, end)
        if comment >= 0 and text.find("*/", comment + 2, end) < 0:
            closed = text.find("*/", end)
            if closed < 0:
                return len(text)
            at = closed
        elif text.find("//", text.rfind("\n", begin, end) + 1 or begin, end) >= 0:
            at = end + 1
        else:
            return end
