"""The types of C expressions: one pass that gives each its type, converts as C does, and folds constants.

In: an expression, and a function that knows what is not C's: names, members, calls.  Out: a `Typed`.
Constant folding (`constants`), the rules about print formats and assignments ask here.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from tracepoint.errors import SourceError
from tracepoint.named import NamedTuple
from tracepoint.source import ast
from tracepoint.source.cexpr import parse_expression
from tracepoint.source.ctype import CType
from tracepoint.source.cvalue import (
    COMPARISONS,
    binary_value,
    common_type,
    conversions,
    int_type_of,
    number_type,
    promote,
    unary_value,
)
from tracepoint.source.types import INT, IntType

if TYPE_CHECKING:
    from collections.abc import Callable


class Typed(NamedTuple):
    """What is known of an expression.

    `kind` is the type of an integer, None for anything else; `value` is what a constant comes to;
    `ctype` the type as it was declared, for pointers and structs at least.
    """

    kind: IntType | None
    value: int | None = None
    ctype: CType | None = None

    @property
    def is_pointer(self) -> bool:
        """Whether it is an address."""
        return self.kind is None and self.ctype is not None and self.ctype.is_pointer


#: The type of a string literal, and of what makes a string.
TEXT = Typed(None, None, CType("char", 1))
#: An address of which nothing more is known.
ADDRESS = Typed(None, None, CType("void", 1))


class Typer:
    """Types expressions on a machine with a `long` of 4 or 8 bytes.

    `leaf` is asked for names, members, elements, calls, `sizeof`, addresses and what pointers lead to; it
    may type what is in them, and returns None for what it does not know.
    """

    def __init__(self, leaf: Callable[[Typer, ast.Node], Typed | None], long_size: int = 8) -> None:
        self.leaf = leaf
        self.long_size = long_size
        self.ulong = IntType(long_size, is_signed=False)

    def of(self, node: ast.Node) -> Typed | None:
        """Return what is known of an expression, None when it is nothing.

        >>> from tracepoint.source.cexpr import parse_expression
        >>> typer = Typer(lambda typer, node: Typed(IntType(2, is_signed=False)))
        >>> typer.of(parse_expression("x + 1 < 2u ? x << 40ull : -1L")).kind
        IntType(size=8, is_signed=True)
        """
        form = _FORMS.get(type(node))
        return self.leaf(self, node) if form is None else form(self, node)

    def of_ctype(self, ctype: CType, value: int | None = None) -> Typed:
        """Return a value of a declared type, converted to it."""
        kind = None if ctype.pointers else int_type_of(ctype, self.long_size)
        wide = self.ulong if ctype.pointers else kind
        if value is None or wide is None:
            return Typed(kind, None, ctype)
        return Typed(kind, int(bool(value)) if ctype.base == "bool" else wide.wrap(value), ctype)

    def number_of(self, typed: Typed | None) -> tuple[int, IntType] | None:
        """Return the value of a constant, an address as an unsigned long; None when it is none."""
        if typed is None or typed.value is None:
            return None
        kind = self.ulong if typed.is_pointer else typed.kind
        return None if kind is None else (typed.value, kind)


def _number(typer: Typer, node: ast.Number) -> Typed:
    kind = number_type(node.value, node.suffix, is_decimal=node.is_decimal, long_size=typer.long_size)
    return Typed(kind, kind.wrap(node.value))


def _unary(typer: Typer, node: ast.Unary) -> Typed | None:
    op = node.op
    if op in ("&", "*"):
        return typer.leaf(typer, node)
    inner = typer.of(node.operand)
    value = inner.value if inner is not None else None
    if op == "!":
        return Typed(INT, None if value is None else int(not value))
    if inner is None or inner.kind is None:
        return None
    if op not in ("+", "-", "~"):
        return Typed(inner.kind)
    return Typed(promote(inner.kind), None if value is None else unary_value(op, value, inner.kind))


def _logical(typer: Typer, node: ast.Binary) -> Typed:
    left = typer.of(node.left)
    first = left.value if left is not None else None
    if first is not None and bool(first) == (node.op == "||"):
        return Typed(INT, int(bool(first)))
    right = typer.of(node.right)
    is_known = first is not None and right is not None and right.value is not None
    return Typed(INT, int(bool(right.value)) if is_known and right is not None else None)


def _binary(typer: Typer, node: ast.Binary) -> Typed | None:
    op = node.op
    if op in ("&&", "||"):
        return _logical(typer, node)
    left, right = typer.of(node.left), typer.of(node.right)
    numbers = typer.number_of(left), typer.number_of(right)
    value = None
    if numbers[0] and numbers[1]:
        with suppress(ZeroDivisionError, KeyError):
            value = binary_value(op, *numbers[0], *numbers[1])
    if op in COMPARISONS:
        return Typed(INT, value)
    if left is None or right is None:
        return None
    if left.kind is not None and right.kind is not None:
        return Typed(conversions(op, left.kind, right.kind).result, value)
    if left.is_pointer == right.is_pointer:
        return None
    return Typed(None, value, left.ctype if left.is_pointer else right.ctype)


def _ternary(typer: Typer, node: ast.Ternary) -> Typed | None:
    condition = typer.of(node.condition)
    then = typer.of(node.then) if node.then is not None else condition
    otherwise = typer.of(node.otherwise)
    test = condition.value if condition is not None else None
    chosen = None if test is None else then if test else otherwise
    value = chosen.value if chosen is not None else None
    if then is not None and otherwise is not None:
        if then.kind is not None and otherwise.kind is not None:
            kind = common_type(then.kind, otherwise.kind)
            return Typed(kind, None if value is None else kind.wrap(value))
        if then.is_pointer and otherwise.is_pointer:
            return then._replace(value=value) if _is_alike(then, otherwise) else None
    if chosen is None or chosen.kind is None:
        return chosen
    # Both arms decide the type, if both are known.
    return Typed(promote(chosen.kind), value)


def _is_alike(one: Typed, other: Typed) -> bool:
    """Return whether two pointers lead to the same type, or neither to characters."""
    kinds = [int_type_of(CType(t.ctype.base, t.ctype.pointers - 1)) for t in (one, other) if t.ctype]
    return kinds[0] == kinds[1] or all(kind is None or kind.size != 1 for kind in kinds)


def _cast(typer: Typer, node: ast.Cast) -> Typed | None:
    ctype = node.ctype
    inner = typer.of(node.operand)
    value = inner.value if inner is not None else None
    kind = _kind_of_typeof(typer, ctype)
    if kind is not None:
        return Typed(kind, None if value is None else kind.wrap(value))
    return typer.of_ctype(ctype, value)


def _kind_of_typeof(typer: Typer, ctype: CType) -> IntType | None:
    """Return the type of the expression in `typeof(expression)`, as ALIGN() casts to it."""
    if not ctype.base.startswith("typeof(") or ctype.pointers:
        return None
    try:
        found = typer.of(parse_expression(ctype.base[7:-1]))
    except SourceError:
        return None
    return found.kind if found is not None else None


def _sizeof(typer: Typer, node: ast.SizeOf) -> Typed:
    return typer.leaf(typer, node) or Typed(typer.ulong, None, CType("size_t"))


_FORMS: dict[type[ast.Node], Callable[..., Typed | None]] = {
    ast.Number: _number,
    ast.Char: lambda _typer, node: Typed(INT, node.value),
    ast.String: lambda _typer, _node: TEXT,
    ast.Unary: _unary,
    ast.Binary: _binary,
    ast.Ternary: _ternary,
    ast.Cast: _cast,
    ast.SizeOf: _sizeof,
    ast.Comma: lambda typer, node: typer.of(node.right),
}
