"""Where a piece of a declaration came from, and pieces of C text that remember it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracepoint.wording import one_line, tail

if TYPE_CHECKING:
    from tracepoint.diagnostics import Span
    from tracepoint.source.lexer import Token


@dataclass(frozen=True, slots=True)
class ExpansionStep:
    """One macro on the way from what a human wrote to what was read."""

    macro: str
    call: Span
    definition: Span | None


@dataclass(frozen=True, slots=True)
class Origin:
    """The span a human wrote, and the macro expansions that led on from there, innermost last."""

    span: Span
    chain: tuple[ExpansionStep, ...] = ()

    def __str__(self) -> str:
        via = "".join(f" via {step.macro}" for step in self.chain)
        return f"{self.span}{via}"

    def __repr__(self) -> str:
        return f"<Origin {tail(str(self))}>"


@dataclass(frozen=True, slots=True)
class Code:
    """A piece of C text after macro expansion.

    `text` is normalised: single spaces where the source had white space, as the
    preprocessor's `#` operator would print it.  `tokens` are the expanded tokens (empty when
    the code was given as text from Python); parse them rather than the text, so that findings
    have a place.
    """

    text: str
    tokens: tuple[Token, ...] = field(default=(), compare=False, repr=False)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Code {one_line(self.text)}>"

    def __bool__(self) -> bool:
        return bool(self.text)
