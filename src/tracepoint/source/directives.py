"""The directives of files that are included for their macros: the rest of their text is never read.

The body of a `#define` becomes tokens on first use; most macros of a tree are never used.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from tracepoint.source.lexer import Kind, lex
from tracepoint.source.macros import Macro, parse_define

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.source.lexer import Token
    from tracepoint.source.text import SourceFile

#: The directives of files with this many characters together are kept: many headers include the same few.
MAX_KEPT_CHARS = 1 << 24
#: A longer definition is split into tokens at once, so that its fault is reported where it is read.
_MAX_LATER = 1 << 16

_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\/]|\\[\s\S]|/\*(?:[^*]|\*(?!/))*\*/|/)*", re.MULTILINE)
_HIDING = re.compile(r'//(?:[^\n\\]|\\[\s\S])*|"(?:\\.|[^"\\\n])*"|/\*(?:[^*]|\*(?!/))*\*/')
_DEFINE = re.compile(
    r"[ \t]*#[ \t]*define[ \t]+([A-Za-z_$][A-Za-z0-9_$]*)(?:(?![A-Za-z0-9_$(])|\(([A-Za-z0-9_, \t]*)\))"
)
_PARAMETER = re.compile(r"[ \t]*[A-Za-z_][A-Za-z0-9_]*[ \t]*")


class LaterMacro(Macro):
    """A macro whose parameters and body become tokens when they are first asked for."""

    __slots__ = ("_end", "_file", "_start")

    def __init__(self, name: str, file: SourceFile, start: int, end: int) -> None:
        self.name = name
        self._file = file
        self._start = start
        self._end = end

    def __getattr__(self, name: str) -> object:
        # Called for what is not set yet.
        if name not in Macro.__slots__:
            raise AttributeError(name)
        read = parse_define(lex(self._file, self._start, self._end)[2:-1])
        self.params = read.params
        self.body = read.body
        self.definition = read.definition
        self.is_variadic = read.is_variadic
        return getattr(read, name)


_KEPT: dict[int, tuple[SourceFile, list[list[Token] | Macro]]] = {}


def directives_of(file: SourceFile) -> list[list[Token] | Macro]:
    """Return the directives of a file in order: macros for what defines one, tokens for all others."""
    known = _KEPT.get(id(file))
    if known is not None and known[0] is file:
        return known[1]
    found: list[list[Token] | Macro] = []
    for start, end in _ranges(file.text):
        macro = _later(file, start, end)
        found += _split(lex(file, start, end)[:-1]) if macro is None else [macro]
    if sum(len(kept.text) for kept, _ in list(_KEPT.values())) + len(file.text) > MAX_KEPT_CHARS:
        _KEPT.clear()
    _KEPT[id(file)] = (file, found)
    return found


def _ranges(text: str) -> list[tuple[int, int]]:
    """Find the directives of a text without splitting all of it into tokens."""
    ranges: list[tuple[int, int]] = []
    hidden = [(m.start(), m.end()) for m in _HIDING.finditer(text) if "\n" in m[0] and "#" in m[0]]
    for match in _DIRECTIVE.finditer(text):
        start = match.start()
        if not any(begin < start < end for begin, end in hidden):
            ranges.append((start, match.end()))
    return ranges


def _split(tokens: list[Token]) -> Iterator[list[Token]]:
    """Yield the directives of a range: a comment that `//` hides the begin of may make it several lines."""
    begins = [at for at, token in enumerate(tokens) if token.first]
    for begin, end in pairwise([*begins, len(tokens)]):
        if tokens[begin].text == "#" and tokens[begin].kind is Kind.PUNCT:
            yield tokens[begin:end]


def _later(file: SourceFile, start: int, end: int) -> Macro | None:
    """Return the macro of a plain `#define`, None for what must be looked at closely."""
    match = _DEFINE.match(file.text, start, end)
    if match is None or end - start > _MAX_LATER or file.text.find("//", start, end) >= 0:
        return None
    name, params = match.groups()
    if params and not params.isspace() and not all(map(_PARAMETER.fullmatch, params.split(","))):
        return None
    return LaterMacro(name, file, start, end)
