"""Balanced macro calls in a token list: `NAME(arg, arg)`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.source.brackets import read_macro_arguments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.source.lexer import Token


@dataclass(frozen=True, slots=True)
class MacroCall:
    """One call: the name's token, the arguments' tokens split at top-level commas, the `)`.

    `arguments` of `F()` is one empty list, as for the preprocessor; `inner` is all that is
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
        kept = self.arguments[: n_parts - 1]
        return (*kept, self.inner[sum(len(part) + 1 for part in kept) :])


def read_call(tokens: Sequence[Token], at: int) -> tuple[MacroCall, int] | None:
    """Read the call whose name is at `at`; returns it and the index after its `)`.

    None when no `(` follows or it never closes.
    """
    if at + 1 >= len(tokens) or tokens[at + 1].text != "(":
        return None
    found = read_macro_arguments(tokens, at + 1)
    if found is None:
        return None
    arguments, close = found
    return MacroCall(tokens[at], arguments, tokens[close], tuple(tokens[at + 2 : close])), close + 1
