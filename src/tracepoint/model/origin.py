"""Where a piece of a declaration came from, and pieces of C text that remember it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, cast

from tracepoint.source.cexpr import parse_arguments, parse_expression
from tracepoint.source.lexer import lex
from tracepoint.source.statements import parse_statements
from tracepoint.source.text import SourceFile
from tracepoint.wording import one_line, tail

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tracepoint.diagnostics import Span
    from tracepoint.source.ast import Node
    from tracepoint.source.lexer import Token
    from tracepoint.source.statements import Block

Source = TypeVar("Source")
Made = TypeVar("Made")


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
    _kept: dict[Callable[..., Any], Any] = field(default_factory=dict, compare=False, repr=False, init=False)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Code {one_line(self.text)}>"

    def __bool__(self) -> bool:
        return bool(self.text)

    def all_tokens(self) -> Sequence[Token]:
        """Return the tokens, read once from the text when that is all there is."""
        return self.tokens or self._once(_lex, self.text)

    def expression(self) -> Node:
        """Return the C expression that it is, parsed once; raises SourceError.

        >>> Code("a + 1").expression()
        Binary(op='+', left=Name(name='a'), right=Number(value=1, suffix='', is_decimal=True))
        """
        return self._once(parse_expression, self.all_tokens())

    def arguments(self) -> tuple[Node, ...]:
        """Return the C expressions between its commas, parsed once; raises SourceError.

        >>> [argument.name for argument in Code("a, b").arguments()]
        ['a', 'b']
        """
        return self._once(parse_arguments, self.all_tokens())

    def statements(self) -> Block:
        """Return the C statements that it holds, parsed once; raises SourceError when they are damaged."""
        return self._once(parse_statements, self.all_tokens())

    def _once(self, read: Callable[[Source], Made], source: Source) -> Made:
        if read not in self._kept:
            self._kept[read] = read(source)
        return cast("Made", self._kept[read])


def _lex(text: str) -> Sequence[Token]:
    return lex(SourceFile("<code>", text))
