"""What each word of a header is, for colors: macros, events, classes, fields, parameters, helpers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tracepoint.lsp.mentions import declared_names
from tracepoint.lsp.outline import Word
from tracepoint.model.vocabulary import (
    ASSIGN_HELPERS,
    DECLARING_MACROS,
    FIELD_HELPERS,
    FIELD_MACROS,
    HEADER_MACROS,
    PART_MACROS,
    PRINT_HELPERS,
)
from tracepoint.source.brackets import read_macro_arguments
from tracepoint.source.lexer import Kind, lex
from tracepoint.source.text import SourceFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracepoint.source.lexer import Token

#: The kinds of words, by the names that the protocol has for them.
KINDS = ("macro", "event", "class", "property", "parameter", "function", "variable")
_MACROS = frozenset(
    {*DECLARING_MACROS, *HEADER_MACROS}
    | {name for names in PART_MACROS.values() for name in names}
    | {f"__{kind}" for kind in FIELD_MACROS}
)
_HELPERS = PRINT_HELPERS | ASSIGN_HELPERS
_NAMES_FIELD = FIELD_HELPERS | {name for name in ASSIGN_HELPERS if name.startswith("__assign_")}
_PROTO = frozenset(PART_MACROS["proto"]) - {"PARAMS"}
_AFTER_NAME = re.compile(r"[,)\[]")


def colored(text: str) -> list[tuple[Word, str]]:
    """Return the words of a header that are something of its own, each with one of KINDS, in order.

    >>> [(word.text, kind) for word, kind in colored("TRACE_EVENT(tick, TP_PROTO(int n))")]
    [('TRACE_EVENT', 'macro'), ('tick', 'event'), ('TP_PROTO', 'macro'), ('n', 'parameter')]
    """
    tokens = lex(SourceFile("", text))
    found: dict[int, tuple[Word, str]] = {}
    for kinds, token in declared_names(tokens):
        found[token.start] = _word(token), "event" if "event" in kinds else "class"
    parameters: frozenset[str] = frozenset()
    for at, token in enumerate(tokens):
        if token.kind is not Kind.NAME or token.start in found:
            continue
        if token.text in DECLARING_MACROS:
            parameters = frozenset()
        if token.text in _PROTO:
            own = {one.text: one for one in _parameters(tokens, at)}
            parameters = frozenset(own)
            found |= {one.start: (_word(one), "parameter") for one in own.values()}
        kind = _kind(tokens, at, parameters)
        if kind:
            found[token.start] = _word(token), kind
        if (name := _field_name(tokens, at)) is not None:
            found[name.start] = _word(name), "property"
    return [found[start] for start in sorted(found)]


def _kind(tokens: Sequence[Token], at: int, parameters: frozenset[str]) -> str:
    text = tokens[at].text
    if text in _MACROS:
        return "macro"
    if text in _HELPERS:
        return "function"
    if text == "__entry":
        return "variable"
    before = tokens[at - 1].text if at else ""
    if before == "->" and at > 1 and tokens[at - 2].text == "__entry":
        return "property"
    return "parameter" if text in parameters and before not in ("->", ".") else ""


def _parameters(tokens: Sequence[Token], at: int) -> Iterator[Token]:
    """Yield the names of the parameters in a TP_PROTO: the last word of each."""
    arguments = read_macro_arguments(tokens, at + 1) if tokens[at + 1].text == "(" else None
    for argument in arguments[0] if arguments is not None else ():
        names = [
            token
            for place, token in enumerate(argument)
            if token.kind is Kind.NAME
            and (place + 1 == len(argument) or _AFTER_NAME.match(argument[place + 1].text))
        ]
        if len(argument) > 1 and names:
            yield names[0]


def _field_name(tokens: Sequence[Token], at: int) -> Token | None:
    """Return the name of a field in its macro, or in a helper that takes one."""
    text = tokens[at].text
    roles = FIELD_MACROS.get(text[2:], ()) if text.startswith("__") else ()
    index = 0 if text in _NAMES_FIELD else roles.index("name") if "name" in roles else -1
    if index < 0 or tokens[at + 1].text != "(":
        return None
    arguments = read_macro_arguments(tokens, at + 1)
    if arguments is None or len(arguments[0]) <= index or len(arguments[0][index]) != 1:
        return None
    name = arguments[0][index][0]
    return name if name.kind is Kind.NAME else None


def _word(token: Token) -> Word:
    return Word(token.text, token.start, token.end)
