"""From tokens to `Code` and `Origin`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.model.origin import Code, ExpansionStep, Origin
from tracepoint.source.lexer import Kind
from tracepoint.source.macros import spell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.source.lexer import Token


def origin_of(first: Token, last: Token | None = None) -> Origin:
    """Return where a human wrote the tokens from `first` to `last`, with the chain of macros.

    When the tokens came out of a macro, the span is that of the outermost macro call's name.
    """
    last = last or first
    if first.expansion is None and last.expansion is None and first.file is last.file:
        return Origin(first.file.span(first.start, max(last.end, first.end)))
    chain: list[ExpansionStep] = []
    expansion = first.expansion
    while expansion is not None:
        definition = expansion.definition
        chain.append(
            ExpansionStep(
                expansion.name, expansion.call.span, None if definition is None else definition.span
            )
        )
        expansion = expansion.call.expansion
    chain.reverse()
    return Origin(first.root.span, tuple(chain))


def code_of(tokens: Sequence[Token]) -> Code:
    """Make a `Code` of tokens; the END token is dropped."""
    kept = tuple(t for t in tokens if t.kind is not Kind.END)
    return Code(spell(kept), kept)
