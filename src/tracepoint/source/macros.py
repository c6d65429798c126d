"""Macro definitions: `#define` lines as values, and tokens spelt as the preprocessor does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.errors import SourceError
from tracepoint.source.lexer import Kind, Token, lex
from tracepoint.source.text import SourceFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_NAME = Kind.NAME


class Macro:
    """One `#define`: its name, parameters (None when object-like), and body tokens."""

    __slots__ = ("body", "definition", "is_variadic", "name", "params")

    def __init__(
        self,
        name: str,
        params: tuple[str, ...] | None,
        body: list[Token],
        definition: Token | None,
        *,
        is_variadic: bool = False,
    ) -> None:
        self.name = name
        self.params = params
        self.body = body
        self.definition = definition
        self.is_variadic = is_variadic

    @property
    def text(self) -> str:
        """The body as `#` would print it."""
        return spell(self.body)


def spell(tokens: Iterable[Token]) -> str:
    """Join tokens with one space where the source had white space, as the `#` operator does."""
    parts: list[str] = []
    for token in tokens:
        if token.kind is Kind.END:
            continue
        if token.space and parts:
            parts.append(" ")
        parts.append(token.text if "\\\n" not in token.text else token.text.replace("\\\n", ""))
    return "".join(parts)


def parse_define(tokens: Sequence[Token]) -> Macro:
    """Make a macro from the tokens after `#define`; raises SourceError when they are not one."""
    if not tokens or tokens[0].kind is not _NAME:
        where = tokens[0].span if tokens else None
        raise SourceError("#define needs a name", where)
    name = tokens[0]
    if len(tokens) < 2 or tokens[1].text != "(" or tokens[1].space:
        return Macro(name.text, None, list(tokens[1:]), name)
    params: list[str] = []
    is_variadic = False
    at = 2
    while at < len(tokens) and tokens[at].text != ")":
        token = tokens[at]
        if token.text == "...":
            is_variadic = True
            if not (tokens[at - 1].kind is _NAME and params):
                params.append("__VA_ARGS__")
        elif token.kind is _NAME:
            params.append(token.text)
        elif token.text != ",":
            raise SourceError(f"bad parameter list of macro {name.text}", token.span)
        at += 1
    if at >= len(tokens):
        raise SourceError(f"parameter list of macro {name.text} never ends", name.span)
    return Macro(name.text, tuple(params), list(tokens[at + 1 :]), name, is_variadic=is_variadic)


def define(name: str, value: str = "1", path: str = "<command line>") -> Macro:
    """Make a macro from a name such as `PARAMS(x...)` and a value, as `-D` does."""
    tokens = [t for t in lex(SourceFile(path, f"{name} {value}")) if t.kind is not Kind.END]
    return parse_define(tokens)
