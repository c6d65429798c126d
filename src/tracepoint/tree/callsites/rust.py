"""Call sites of tracepoints in Rust: what `declare_trace!` declares, and its callers.

A declaration `declare_trace! { unsafe fn foo(n: c_int); }` makes a function `foo` that fires the
tracepoint `foo` (rust/kernel/tracepoint.rs).  It is unsafe to call, so drivers wrap it in
a function `trace_foo` of the same module, whose users are found too.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from tracepoint.named import NamedTuple
from tracepoint.source.brackets import find_close_in_text
from tracepoint.source.text import SourceFile
from tracepoint.tree.callsites.calls import MAX_TEXT, RawSite, SiteKind

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

_DECLARE = re.compile(r"\bdeclare_trace!\s*[{(\[]")
_NOISE = re.compile(
    r'//[^\n]*|/\*|\bb?r(#*)".*?(?:"\1|\Z)|"(?:[^"\\]|\\.)*(?:"|\Z)|\'(?:\\[^\n]{1,10}?|[^\\\'\n])\'',
    re.DOTALL,
)
_COMMENT_ENDS = re.compile(r"/\*|\*/")
_NOT_NEWLINE = re.compile(r"[^\n]+")
_UNSAFE_FN = re.compile(r"\bunsafe\s+fn\s+(\w+)")
_BLOCKS = re.compile(r"\b(fn|mod)\s+(\w+)|[{};]")
#: What precedes a call: a path of modules, or text that shows that it is not a call.
_PATH = re.compile(r"(?:\b\w+\s*::\s*)+\Z")
_NO_CALL = re.compile(r"(?:\.|\bfn)\s*\Z")
_SEGMENT = re.compile(r"\w+")
_SPACE = re.compile(r"\s+")
_HERE = frozenset({"self", "super", "crate"})
_USE = re.compile(r"\buse\s([^;]*)(?:;|\Z)")
_IMPORTED = re.compile(r"\w+|\*")
#: Files with these names are the module of their folder.
_OF_FOLDER = ("mod.rs", "lib.rs")
_MAX_PATH = 200
#: Characters of a call, calls examined in one file, nested blocks: far more than any driver has.
_MAX_CALL = 4000
_MAX_USES = 5000
_MAX_DEPTH = 100


class _Block(NamedTuple):
    """A function or module: its name, where it begins, where its body ends; `outer` is one around it."""

    keyword: str
    name: str
    start: int
    end: int
    outer: int


@dataclass(frozen=True, slots=True)
class _Target:
    """A function that fires tracepoints; `via` is its name if it is only a wrapper."""

    name: str
    events: tuple[str, ...]
    path: str
    module: str
    via: str = ""


class _Text:
    """One file: its text, the same without comments and literals, its functions and modules."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.file = SourceFile(path, text)
        self.code = blank_rust(text)
        self._blocks = _blocks(self.code)
        self._starts = [block.start for block in self._blocks]
        self._imports = [frozenset(_IMPORTED.findall(m[1])) for m in _USE.finditer(self.code)]

    def around(self, offset: int, keyword: str) -> str:
        """Return the name of the innermost function or module around an offset, empty without one."""
        at = bisect_right(self._starts, offset) - 1
        while at >= 0:
            block = self._blocks[at]
            if block.keyword == keyword and offset < block.end:
                return block.name
            at = block.outer
        return ""

    def module(self, offset: int) -> str:
        """Return the name of the module at an offset."""
        path = PurePosixPath(self.path)
        return self.around(offset, "mod") or (path.parent.name if path.name in _OF_FOLDER else path.stem)

    def has_imported(self, name: str, module: str) -> bool:
        """Return whether a `use` names a function of a module, or everything in the module."""
        return any(module in words and (name in words or "*" in words) for words in self._imports)

    def calls(self, names: Iterable[str]) -> Iterator[tuple[str, int, int, list[str]]]:
        """Yield each call of functions by these names: name, start and end of the path, its segments."""
        wanted = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names)))})(?=\s*\()")
        for match in islice(wanted.finditer(self.code), _MAX_USES):
            before = self.code[max(0, match.start() - _MAX_PATH) : match.start()]
            if _NO_CALL.search(before) is None:
                path = _PATH.search(before)
                length = len(path[0]) if path is not None else 0
                segments = _SEGMENT.findall(path[0]) if path is not None else []
                yield match[0], match.start() - length, match.end(), segments


def blank_rust(text: str) -> str:
    r"""Blank comments and literals of a Rust text; offsets and lines stay.

    >>> blank_rust("a(); /* b() /* c */ */ r#\"d(\"#; f::<'x>('y')")
    "a();                          ; f::<'x>(   )"
    """
    pieces: list[str] = []
    at = 0
    while (match := _NOISE.search(text, at)) is not None:
        end = _comment_end(text, match.start()) if match[0] == "/*" else match.end()
        pieces.append(text[at : match.start()])
        pieces.append(_NOT_NEWLINE.sub(lambda m: " " * len(m[0]), text[match.start() : end]))
        at = end
    pieces.append(text[at:])
    return "".join(pieces)


def _comment_end(text: str, start: int) -> int:
    """Return where a comment ends; comments nest."""
    depth = 0
    for match in _COMMENT_ENDS.finditer(text, start):
        depth += 1 if match[0] == "/*" else -1
        if depth == 0:
            return match.end()
    return len(text)


def _blocks(code: str) -> list[_Block]:
    """Return the functions and modules of a text in the order in which they begin."""
    found: list[_Block] = []
    opened: list[int] = []  # for each open brace the block around what follows
    named: tuple[str, str, int] | None = None
    for match in _BLOCKS.finditer(code):
        outer = opened[-1] if opened else -1
        if match[1]:
            named = (match[1], match[2], match.start())
        elif match[0] == "{":
            if named is not None and len(opened) < _MAX_DEPTH:
                found.append(_Block(*named, end=len(code), outer=outer))
                outer = len(found) - 1
            opened.append(outer)
            named = None
        elif match[0] == ";":
            named = None
        elif opened:
            opened.pop()
            if outer != (opened[-1] if opened else -1):
                found[outer] = found[outer]._replace(end=match.end())
    return found


def find_rust_sites(texts: Mapping[str, str], names: Container[str]) -> dict[str, list[RawSite]]:
    r"""Return the calls of tracepoints in Rust files, by path; `texts` are those that contain `trace`.

    >>> made = "declare_trace! { unsafe fn foo(n: c_int); }\npub fn trace_foo() { unsafe { foo(1) } }"
    >>> used = "fn open() { crate::trace::trace_foo() }"
    >>> found = find_rust_sites({"drivers/a/trace.rs": made, "drivers/a/file.rs": used}, {"foo"})
    >>> [(path, site.function, site.text, site.via) for path, sites in found.items() for site in sites]
    ... # doctest: +NORMALIZE_WHITESPACE
    [('drivers/a/file.rs', 'open', 'crate::trace::trace_foo()', 'trace_foo'),
     ('drivers/a/trace.rs', 'trace_foo', 'foo(1)', '')]
    """
    read = {path: _Text(path, text) for path, text in texts.items() if "declare_trace!" in text}
    targets = list(dict.fromkeys(target for file in read.values() for target in _declared(file, names)))
    targets += [wrapper for file in read.values() for wrapper in _wrappers(file, targets)]
    found = {}
    for path, text in sorted(texts.items()):
        seen = [t for t in targets if t.name in text and path.startswith(_scope(t.path))]
        if seen:
            sites = list(_sites(read.get(path) or _Text(path, text), seen))
            found.update({path: sites} if sites else {})
    return found


def _scope(path: str) -> str:
    """Return the folder in which a file's functions are called: roughly that of its crate."""
    parts = PurePosixPath(path).parts
    if parts[0] == "rust":
        return ""
    folder = parts[:-1][: 3 if parts[0] in ("drivers", "fs") else 2]
    return "/".join(folder) + "/" if folder else ""


def _declared(file: _Text, names: Container[str]) -> Iterator[_Target]:
    """Yield the functions that the `declare_trace!` of a file declare."""
    end = 0
    while (match := _DECLARE.search(file.code, end)) is not None:
        close = find_close_in_text(file.code, match.end() - 1, len(file.code))
        end = close if close >= 0 else len(file.code)
        for name in _UNSAFE_FN.findall(file.code, match.end(), end):
            if name in names:
                yield _Target(name, (name,), file.path, file.module(match.start()))


def _wrappers(file: _Text, targets: Iterable[_Target]) -> Iterator[_Target]:
    """Yield the functions `trace_…` next to a declaration that fire what it declares."""
    own = [target for target in targets if target.path == file.path and not target.via]
    fired: dict[tuple[str, str], dict[str, None]] = {}
    for target, start, _ in _uses(file, own):
        name = file.around(start, "fn")
        if name.startswith("trace_") and file.module(start) == target.module:
            fired.setdefault((name, target.module), {})[target.name] = None
    for (name, module), events in fired.items():
        yield _Target(name, tuple(events), file.path, module, via=name)


def _uses(file: _Text, targets: Iterable[_Target]) -> Iterator[tuple[_Target, int, int]]:
    """Yield the functions out of some that a file calls, with start and end of the path in the call."""
    by_name: dict[str, list[_Target]] = {}
    near = set()
    for target in targets:
        by_name.setdefault(target.name, []).append(target)
        if file.path == target.path or file.has_imported(target.name, target.module):
            near.add(target)
    for name, start, end, segments in file.calls(by_name) if by_name else ():
        is_bare = not segments or segments[-1] in _HERE
        for target in by_name[name]:
            if target in near if is_bare else segments[-1] == target.module:
                yield target, start, end


def _sites(file: _Text, targets: Iterable[_Target]) -> Iterator[RawSite]:
    for target, start, end in _uses(file, targets):
        function = file.around(start, "fn")
        if function:
            close = find_close_in_text(file.code, file.code.index("(", end), _MAX_CALL)
            text = _SPACE.sub(" ", file.file.text[start : close + 1 if close >= 0 else end])
            shown = text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 3] + "..."
            line, column = file.file.position(start)
            for event in target.events:
                yield RawSite(SiteKind.CALL, event, line, column, function, shown, target.via)
