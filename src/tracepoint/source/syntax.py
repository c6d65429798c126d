"""Balanced macro calls in a token list: `NAME(arg, arg)`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.source.lexer import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.source.lexer import Token


@dataclass(frozen=True, slots=True)
class MacroCall:
    """One call: the name's token, the arguments' tokens split at top-level commas, the `)`.

    `arguments` of `F()` is one empty list, as for the preprocessor; `inner` is all that stands
    between the parentheses.
    """

    name: Token
    arguments: tuple[tuple[Token, ...], ...]
    close: Token

    inner: tuple[Token, ...]

    def split(self, n_parts: int) -> tuple[tuple[Token, ...], ...]:
        """Return at most `n_parts` arguments; the last one keeps the commas of the rest."""
        if len(self.arguments) <= n_parts:
            return self.arguments
        return tuple(tuple(part) for part in split_arguments(self.inner, n_parts))


def match_parenthesis(tokens: Sequence[Token], at: int) -> int:
    """Return the index of the `)` that closes the `(` at `at`, or -1."""
    depth = 0
    for index in range(at, len(tokens)):
        text = tokens[index].text
        if text == "(":
            depth += 1
        elif text == ")":
            depth -= 1
            if depth == 0:
                return index
        elif not text and tokens[index].kind is Kind.END:
            return -1
    return -1


def split_arguments(tokens: Sequence[Token], n_parts: int = 0) -> list[list[Token]]:
    """Split tokens at commas that stand outside parentheses, into at most `n_parts` if that is given.

    Braces and brackets do not protect a comma: the preprocessor does not know them.
    """
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        text = token.text
        if text == "(":
            depth += 1
        elif text == ")":
            depth -= 1
        elif text == "," and depth == 0 and len(parts) != n_parts:
            parts.append([])
            continue
        parts[-1].append(token)
    return parts


def read_call(tokens: Sequence[Token], at: int) -> tuple[MacroCall, int] | None:
    """Read the call whose name stands at `at`; returns it and the index after its `)`.

    None when no `(` follows or it never closes.
    """
    if at + 1 >= len(tokens) or tokens[at + 1].text != "(":
        return None
    close = match_parenthesis(tokens, at + 1)
    if close < 0:
        return None
    inner = tuple(tokens[at + 2 : close])
    arguments = tuple(tuple(part) for part in split_arguments(inner))
    return MacroCall(tokens[at], arguments, tokens[close], inner), close + 1
