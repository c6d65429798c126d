"""Balanced macro calls in a token list: `NAME(arg, arg)`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.source.brackets import find_parenthesis, split_macro_arguments

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
        return tuple(tuple(part) for part in split_macro_arguments(self.inner, n_parts))


def read_call(tokens: Sequence[Token], at: int) -> tuple[MacroCall, int] | None:
    """Read the call whose name stands at `at`; returns it and the index after its `)`.

    None when no `(` follows or it never closes.
    """
    if at + 1 >= len(tokens) or tokens[at + 1].text != "(":
        return None
    close = find_parenthesis(tokens, at + 1)
    if close < 0:
        return None
    inner = tuple(tokens[at + 2 : close])
    arguments = tuple(map(tuple, split_macro_arguments(inner)))
    return MacroCall(tokens[at], arguments, tokens[close], inner), close + 1
