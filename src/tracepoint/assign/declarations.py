"""Local declarations of C: `const struct foo *a = b, c[4];`.

Typedef names are not known here, so `name * name =` and `name name;` count as declarations:
neither is a useful expression statement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.assign.tree import Declare
from tracepoint.errors import SourceError
from tracepoint.source.cexpr import parse_arguments
from tracepoint.source.ctype import QUALIFIERS, CType, find_close, scan_type, starts_type, tokens_text
from tracepoint.source.lexer import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.source.ast import Node
    from tracepoint.source.lexer import Token

_DECORATION = frozenset({"auto", "__maybe_unused", "__always_unused", "__read_mostly", "__unused"})
_BETWEEN = QUALIFIERS | _DECORATION


def is_declaration(tokens: Sequence[Token]) -> bool:
    """Tell whether a statement declares something, by its first tokens alone."""
    first = tokens[0]
    if first.kind is not Kind.NAME:
        return False
    if starts_type(first.text) or first.text in _DECORATION:
        return True
    at = 1
    while at < len(tokens) and (tokens[at].text == "*" or tokens[at].text in _BETWEEN):
        at += 1
    if at >= len(tokens) or tokens[at].kind is not Kind.NAME:
        return False
    return (
        at + 1 >= len(tokens) or tokens[at + 1].text in ("=", ",", "[") or tokens[at + 1].text in _DECORATION
    )


def parse_declaration(tokens: Sequence[Token]) -> tuple[Declare, ...]:
    """Read one declaration statement without its semicolon.

    Raises SourceError for what is beyond this reader: function pointers, a struct defined here.
    """
    kept = [token for token in tokens if token.text not in _DECORATION]
    # The stars belong to the first declarator, so the base is read without them.
    scanned = scan_type(kept, 0, len(kept))
    if scanned is None:
        raise SourceError("not a type that this reader knows", tokens[0].root.span)
    if "{" in scanned[0].base:
        raise SourceError("a type defined inside the assignment is not followed", tokens[0].root.span)
    base = CType(scanned[0].base, 0, (), scanned[0].qualifiers)
    at = scanned[1]
    pointers = scanned[0].pointers
    declared: list[Declare] = []
    while at < len(kept):
        declarator, at = _declarator(kept, at, base, pointers)
        declared.append(declarator)
        pointers = 0
        if at < len(kept):
            if kept[at].text != ",":
                raise SourceError(f"unexpected {kept[at].text!r} in a declaration", kept[at].root.span)
            at += 1
    if not declared:
        raise SourceError("a declaration without a name", tokens[0].root.span)
    return tuple(declared)


def _declarator(tokens: list[Token], at: int, base: CType, pointers: int) -> tuple[Declare, int]:
    start = at
    while at < len(tokens) and (tokens[at].text == "*" or tokens[at].text in QUALIFIERS):
        pointers += tokens[at].text == "*"
        at += 1
    if at >= len(tokens) or tokens[at].kind is not Kind.NAME:
        raise SourceError("a name is expected in the declaration", tokens[start - 1].root.span)
    name = tokens[at].text
    at += 1
    lengths: list[str] = []
    while at < len(tokens) and tokens[at].text == "[":
        close = find_close(tokens, at, len(tokens))
        lengths.append(tokens_text(tokens[at + 1 : close]))
        at = close + 1
    initial = None
    if at < len(tokens) and tokens[at].text == "=":
        end = _comma(tokens, at + 1)
        initial = _initial(tokens[at + 1 : end], tokens[at])
        at = end
    ctype = CType(base.base, pointers, tuple(lengths), base.qualifiers)
    return Declare(name, ctype, initial, first=tokens[start], last=tokens[at - 1]), at


def _initial(tokens: list[Token], equals: Token) -> Node:
    items = parse_arguments(tokens)
    if len(items) != 1:
        raise SourceError("one initial value is expected", equals.root.span)
    return items[0]


def _comma(tokens: list[Token], at: int) -> int:
    depth = 0
    while at < len(tokens):
        text = tokens[at].text
        depth += text in ("(", "[", "{")
        depth -= text in (")", "]", "}")
        if depth == 0 and text == ",":
            return at
        at += 1
    return at
