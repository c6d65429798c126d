"""The syntax tree of C statements, as `statements` builds it.

Every statement keeps its first and last token, so that what cannot be followed has a place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.source.ast import Node

if TYPE_CHECKING:
    from tracepoint.diagnostics import Span
    from tracepoint.source.ctype import CType


@dataclass(frozen=True, slots=True)
class Statement(Node):
    """Base of all statements; `first` and `last` are the tokens at its ends."""

    @property
    def span(self) -> Span | None:
        """The place a human wrote: that of the outermost macro call, if one was expanded."""
        return self.first.root.span if self.first is not None else None


@dataclass(frozen=True, slots=True)
class Run(Statement):
    """An expression followed by a semicolon."""

    expression: Node


@dataclass(frozen=True, slots=True)
class Declare(Statement):
    """One declarator: `type name = initial`; the base may be `typeof(expression)`."""

    name: str
    ctype: CType
    initial: Node | None = None


@dataclass(frozen=True, slots=True)
class Block(Statement):
    """`{ ... }`, or the whole of `TP_fast_assign`; `is_scope` is False for `int a, b;`."""

    body: tuple[Statement, ...]
    is_scope: bool = True


@dataclass(frozen=True, slots=True)
class If(Statement):
    """`if (condition) then else otherwise`."""

    condition: Node
    then: Statement
    otherwise: Statement | None = None


@dataclass(frozen=True, slots=True)
class Loop(Statement):
    """`for`, `while` and `do`; a missing condition is true, `is_do` runs the body first."""

    body: Statement
    condition: Node | None = None
    start: Statement | None = None
    step: Node | None = None
    is_do: bool = False


@dataclass(frozen=True, slots=True)
class Switch(Statement):
    """`switch (value) body`; the labels stand in the body as `Case`."""

    value: Node
    body: Block


@dataclass(frozen=True, slots=True)
class Case(Statement):
    """`case value:`, `case value ... high:`, or `default:` when `value` is None."""

    value: Node | None = None
    high: Node | None = None


@dataclass(frozen=True, slots=True)
class Jump(Statement):
    """`break`, `continue` or `return`."""

    kind: str
    value: Node | None = None


@dataclass(frozen=True, slots=True)
class Unreadable(Statement):
    """A statement that is not followed: `text` as written, and `reason` why.

    `names` are the identifiers in it, so that what it may have stored can be named.
    """

    text: str
    reason: str
    names: frozenset[str] = frozenset()
