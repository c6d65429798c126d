"""Preprocessor tokens of C text, lossless: trivia plus token texts give the file back.

White space, comments and line splices are not tokens of their own.  Each token knows where the
trivia before it begins (`lead`), so `file.text[token.lead:token.end]` of all tokens, joined, is
the file.  The last token is always `END`, which carries the trailing trivia.
"""

from __future__ import annotations

import enum
import re
from itertools import islice
from typing import TYPE_CHECKING

from tracepoint.errors import SourceError

if TYPE_CHECKING:
    from tracepoint.diagnostics import Span
    from tracepoint.source.text import SourceFile


#: Ten times the tokens of the largest trace header of the kernel (fs/xfs/xfs_trace.h).
MAX_TOKENS = 500_000


class Kind(enum.IntEnum):
    """What a token is; `BAD` is a stray byte or a literal that never closes."""

    NAME = 1
    NUMBER = 2
    STRING = 3
    CHAR = 4
    PUNCT = 5
    BAD = 6
    END = 7


class Expansion:
    """One macro expansion: the macro's name, the token that called it, where it was defined.

    `call` may itself come from an expansion: follow `call.expansion` to reach the line that a
    human wrote.
    """

    __slots__ = ("call", "definition", "name")

    def __init__(self, name: str, call: Token, definition: Token | None) -> None:
        self.name = name
        self.call = call
        self.definition = definition


class Token:
    """One preprocessing token; treat it as immutable.

    `start` and `end` are offsets in `file.text`, `space` says whether white space came before
    it, `first` whether it is the first token of its logical line, `expansion` which macro body
    it was copied from (None when it is in the text itself).  `is_painted` marks a macro name
    that must not be expanded again, because it came out of its own expansion.
    """

    __slots__ = ("expansion", "file", "first", "is_painted", "kind", "lead", "space", "start", "text")

    def __init__(
        self,
        kind: Kind,
        text: str,
        start: int,
        lead: int,
        file: SourceFile,
        *,
        space: bool = False,
        first: bool = False,
        expansion: Expansion | None = None,
    ) -> None:
        self.kind = kind
        self.text = text
        self.start = start
        self.lead = lead
        self.file = file
        self.space = space
        self.first = first
        self.expansion = expansion
        self.is_painted = False

    @property
    def end(self) -> int:
        """The offset after the token's last character."""
        return self.start + len(self.text)

    @property
    def span(self) -> Span:
        """Where the token's own characters stand (in the macro's definition, if it came from one)."""
        return self.file.span(self.start, self.end)

    @property
    def root(self) -> Token:
        """The token that a human wrote at the place of use: itself, or the outermost macro call."""
        token = self
        while token.expansion is not None:
            token = token.expansion.call
        return token

    def __repr__(self) -> str:
        return f"Token({self.kind.name}, {self.text!r})"


# No group repeats once a character: a comment or string of megabytes would fill a stack with places to
# return to.  Possessive repetition would say it shorter, but Python 3.11.2 (Debian 12's) gets it wrong.
_TRIVIA = r"(?:[ \t\r\n\f\v]+|//[^\n\\]*(?:(?:\\.|\\\r?\n)[^\n\\]*)*|/\*[\s\S]*?\*/|\\\r?\n)*"
_TOKEN = re.compile(
    rf"(?P<trivia>{_TRIVIA})"
    r"(?:(?P<NAME>[A-Za-z_$][A-Za-z0-9_$]*)"
    r"|(?P<PUNCT>\.\.\.|<<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||\+=|-=|\*=|/=|%=|&=|\^=|\|=|\#\#"
    r"|[(),;{}\[\]&*+\-~!%<>^|?:=\#]|\.(?![0-9])|/(?!\*))"
    r"|(?P<NUMBER>\.?[0-9](?:[eEpP][+-]|[0-9A-Za-z_.])*)"
    r'|(?P<STRING>"[^"\\\n]*(?:\\(?:\r\n|[\s\S])[^"\\\n]*)*")'
    r"|(?P<CHAR>'[^'\\\n]*(?:\\(?:\r\n|[\s\S])[^'\\\n]*)*')"
    r"|(?P<END>\Z)"
    r"|(?P<BAD>/\*[\s\S]*|[\"'][^\n]*|[\s\S]))"
)
_KIND_OF_GROUP = {index: Kind[name] for name, index in _TOKEN.groupindex.items() if name != "trivia"}
_NOT_NEWLINE = re.compile(r"//[^\n\\]*(?:(?:\\.|\\\r?\n)[^\n\\]*)*|/\*[\s\S]*?\*/|\\\r?\n")


def _has_newline(trivia: str) -> bool:
    if "/" in trivia or "\\" in trivia:
        trivia = _NOT_NEWLINE.sub("", trivia)
    return "\n" in trivia


def lex(file: SourceFile, start: int = 0, end: int | None = None, *, limit: int = MAX_TOKENS) -> list[Token]:
    """Split a file into tokens; damage becomes `Kind.BAD` tokens.

    `start` and `end` are character offsets, for a part of the file that begins a line.  Raises
    SourceError at the place where a file has more than `limit` tokens.

    >>> from tracepoint.source.text import SourceFile
    >>> [t.text for t in lex(SourceFile("a.h", "a = b /* c */ + 1;"))]
    ['a', '=', 'b', '+', '1', ';', '']
    """
    tokens = _read(file, start, len(file.text) if end is None else end, limit + 1)
    if len(tokens) > limit and tokens[-1].kind is not Kind.END:
        raise SourceError(f"more than {limit:,} tokens: this is not a trace header", tokens[-1].span)
    return tokens


def _read(file: SourceFile, start: int, end: int, limit: int) -> list[Token]:
    """Return the first tokens of a text, at most `limit`."""
    tokens: list[Token] = []
    append = tokens.append
    new = Token.__new__
    kinds, end_group = _KIND_OF_GROUP, _TOKEN.groupindex["END"]
    at = start
    first = True
    for match in islice(_TOKEN.finditer(file.text, start, end), limit):
        group = match.lastindex or 0
        trivia, text = match.group(1, group)
        if trivia:
            begin = at + len(trivia)
            first = first or ("\n" in trivia and _has_newline(trivia))
        else:
            begin = at
        # Calling Token would take a tenth more.
        token = new(Token)
        token.kind = kinds[group]
        token.text = text
        token.start = begin
        token.lead = at
        token.file = file
        token.space = bool(trivia)
        token.first = first
        token.expansion = None
        token.is_painted = False
        append(token)
        first = False
        at = begin + len(text)
        if group == end_group:
            break
    return tokens
