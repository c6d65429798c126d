"""What the compilation of a print format offers to those who compile a part of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tracepoint.printk.values import IntValue, Value
    from tracepoint.source import ast
    from tracepoint.source.ctype import CType
    from tracepoint.source.cvalue import IntType


class Compiling(Protocol):
    """One print format being compiled: `evaluate.Evaluator`.

    `long_size` is in bytes and `ulong` the type of that size; `reasons` are why parts of the format cannot
    be known, and `locals` the variables of the statement expression at hand.
    """

    long_size: int
    ulong: IntType
    reasons: list[str]
    locals: dict[str, Value]

    def unknown(self, reason: str) -> IntValue:
        """Return a value that cannot be read, and remember why."""

    def size_of(self, ctype: CType) -> int | None:
        """Return the size in bytes of a type, None when it is not known."""

    def value(self, node: ast.Node) -> Value:
        """Compile an expression."""

    def truth(self, value: Value) -> IntValue:
        """Return whether a value counts as true, as an int."""

    def cast(self, ctype: CType, value: Value) -> Value:
        """Compile a cast."""
