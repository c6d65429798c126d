"""Find a statement of a function by its text or its line."""

from __future__ import annotations

import difflib
from bisect import bisect_right
from typing import TYPE_CHECKING

from tracepoint.errors import PlaceError
from tracepoint.place.statements import StatementKind, StatementSpan
from tracepoint.source.lexer import Kind as TokenKind
from tracepoint.source.lexer import lex
from tracepoint.source.text import SourceFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.place.code import SourceCode

_MAX_SHOWN = 4
_MAX_COMPARED = 2000
_MAX_TOKENS = 2000


def normal(text: str) -> list[str]:
    """Return the texts of the tokens of a piece of C.

    >>> normal("a = b /* c */ + 1;")
    ['a', '=', 'b', '+', '1', ';']
    """
    return [token.text for token in lex(SourceFile("<statement>", text)) if token.kind is not TokenKind.END]


def find_by_text(code: SourceCode, body: StatementSpan, text: str, line: int = 0) -> StatementSpan:
    """Return the statement with this text; a line chooses among several.

    The text of an `if`, loop or switch may end after its parentheses.  Raises PlaceError when there is
    none, or more than one.
    """
    wanted = normal(text)
    if len(wanted) > _MAX_TOKENS:
        raise PlaceError(f"a statement of {len(wanted):,} tokens is too long to search for: give its line")
    found = [s for s in body.walk() if not _is_braces(s) and _matches(code, s, wanted)]
    if line:
        found = [s for s in found if code.line(s.first) <= line <= code.line(s.last)] or found
    if len(found) > 1:
        lines = ", ".join(str(code.line(s.first)) for s in found[:_MAX_SHOWN])
        more = ", …" if len(found) > _MAX_SHOWN else ""
        raise PlaceError(
            f"`{short(text)}` is {len(found)} statements here, in lines {lines}{more}: give the line",
            code.span(found[0].first, found[0].last),
        )
    if not found:
        raise _not_found(code, body, text, wanted)
    return found[0]


def _is_braces(statement: StatementSpan) -> bool:
    """Return whether it is just the braces of a function, an `if` or a loop."""
    parent = statement.parent
    return statement.kind is StatementKind.BLOCK and (
        parent is None or parent.kind is not StatementKind.BLOCK
    )


def _matches(code: SourceCode, statement: StatementSpan, wanted: list[str]) -> bool:
    if not wanted or code.texts[statement.first] != wanted[0]:
        return False
    texts = code.texts[statement.first : statement.last + 1]
    if texts in (wanted, [*wanted, ";"]) or (
        statement.kind is StatementKind.LABEL and texts == [*wanted, ":"]
    ):
        return True
    if statement.header is None or code.texts[statement.first] == "do":
        return False
    head = code.texts[statement.first : statement.header[1] + 1]
    return wanted in (head, [*head, "{"])


def short(text: str) -> str:
    """Return a piece of C on one line, truncated if it is long."""
    joined = " ".join(text.split())
    return joined if len(joined) <= 60 else joined[:57] + "..."


def _not_found(code: SourceCode, body: StatementSpan, text: str, wanted: list[str]) -> PlaceError:
    bare = wanted[:-1] if wanted[-1:] == [";"] else wanted
    for at in range(body.first, body.last - len(bare) + 1):
        if bare and code.texts[at : at + len(bare)] == bare:
            return _part_of_one(code, body, text, at)
    for start, end, why in code.unseen:
        is_here = code.tokens[body.first].start <= start <= code.tokens[body.last].start
        if bare and is_here and " ".join(bare) in " ".join(normal(code.file.text[start:end])):
            return PlaceError(f"`{short(text)}` {why}", code.file.span(start, start + 1))
    known = [s for s in body.walk() if not s.children][:_MAX_COMPARED]
    spelled = {" ".join(code.texts[s.first : min(s.last + 1, s.first + 40)]): s for s in known}
    close = difflib.get_close_matches(" ".join(wanted[:40]), spelled, n=1)
    advice = f"; did you mean `{short(_source(code, spelled[close[0]]))}`?" if close else ""
    return code.error(f"`{short(text)}` is not a statement of this function{advice}", body.first)


def _source(code: SourceCode, statement: StatementSpan) -> str:
    return code.file.text[code.tokens[statement.first].start : code.tokens[statement.last].end]


def _part_of_one(code: SourceCode, body: StatementSpan, text: str, at: int) -> PlaceError:
    around = innermost(body, at)
    if around.header is not None and around.header[0] <= at <= around.header[1]:
        reason = f"is in the header of a `{code.texts[around.first]}`, where no call can be added"
        return code.error(f"`{short(text)}` {reason}", at)
    return code.error(f"`{short(text)}` is only part of a statement: give all of it", at)


def innermost(body: StatementSpan, at: int) -> StatementSpan:
    """Return the smallest statement around a token."""
    found = body
    while True:
        inner = None
        for among in (found.children, found.values):
            index = bisect_right(among, at, key=lambda s: s.first) - 1
            if index >= 0 and among[index].last >= at:
                inner = among[index]
        if inner is None:
            return found
        found = inner


def find_by_line(code: SourceCode, body: StatementSpan, line: int, *, is_after: bool) -> StatementSpan:
    """Return the statement that begins in a line or contains it.

    The line of a closing brace refers to the whole statement, if the call goes after it.  Raises
    PlaceError when there is none, or more than one.
    """
    first, last = code.line(body.first), code.line(body.last)
    if not first <= line <= last:
        raise code.error(
            f"line {line} is not in this function, which is in lines {first} to {last}", body.first
        )
    for start, end, why in code.unseen:
        if code.file.position(start)[0] <= line <= code.file.position(max(start, end - 1))[0]:
            raise PlaceError(f"line {line} {why}", code.file.span(start, start + 1))
    tokens = [at for at in range(body.first, body.last + 1) if code.line(at) == line]
    if not tokens:
        raise _nothing_there(code, body, line)
    if tokens[0] in {body.first, body.last} and len(tokens) == 1:
        raise code.error(f"line {line} is a brace of the function: use its entry or its returns", tokens[0])
    starting = _starting(body, tokens)
    if len(starting) > 1:
        raise code.error(f"line {line} has {len(starting)} statements: name one by its text", tokens[0])
    if starting:
        return starting[0]
    found = innermost(body, tokens[0])
    is_closer = tokens[0] == found.last and code.texts[tokens[0]] == "}"
    if (
        found.kind is StatementKind.BLOCK
        and found.parent is not None
        and found.parent.kind is not StatementKind.BLOCK
    ):
        found = found.parent
    if code.texts[tokens[0]] in {"}", "else", "{"} and not (
        is_after and is_closer and code.line(found.last) == line
    ):
        raise code.error(f"line {line} begins or ends a block: name a statement", tokens[0])
    return found


def _starting(body: StatementSpan, tokens: Sequence[int]) -> list[StatementSpan]:
    """Return the outermost statements that begin at one of these tokens; labels only when alone."""
    begins = [
        s for s in body.walk() if s is not body and s.kind is not StatementKind.BLOCK and s.first in tokens
    ]
    outer = [s for s in begins if not any(around in begins for around in s.ancestors())]
    others = [s for s in outer if s.kind is not StatementKind.LABEL]
    return others or outer


def _nothing_there(code: SourceCode, body: StatementSpan, line: int) -> PlaceError:
    lines = sorted({code.line(s.first) for s in body.walk() if s is not body})
    before = [n for n in lines if n < line]
    behind = [n for n in lines if n > line]
    near = " and ".join(str(n) for n in before[-1:] + behind[:1])
    advice = f": the nearest begin in line {near}" if near else ""
    return code.error(f"line {line} has no statement{advice}", body.first)
