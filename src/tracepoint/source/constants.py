"""Constant expressions of C to their values, over the types of `typed`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tracepoint.source import ast
from tracepoint.source.ctype import CType
from tracepoint.source.cvalue import int_type_of, is_build_check
from tracepoint.source.functions import BYTE_ORDERS, pure_functions
from tracepoint.source.typed import Typed, Typer
from tracepoint.source.types import INT, LLONG, UINT, ULLONG

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.source.types import IntType

    Lookup = Callable[[str], int | None]
    SizeOf = Callable[[CType], int | None]
    Place = Callable[[ast.Node], tuple[int, CType] | None]

# Macros of constants that expand to what a reader of macros does not see as constant.
_FOLDED = frozenset({"BIT", "BIT_ULL", "ilog2"})


def constant_value(
    node: ast.Node,
    lookup: Lookup,
    *,
    sizeof: SizeOf | None = None,
    long_size: int = 8,
    place: Place | None = None,
) -> int | None:
    """Evaluate an integer constant expression as C does; None when it is not constant.

    `lookup` gives the value of a name (an enum constant) or None, `sizeof` the size of a type
    that is not a plain integer, `long_size` is 4 or 8 bytes, `place` gives the offset of a member of a
    struct (in bytes) and its type.

    >>> from tracepoint.source.cexpr import parse_expression
    >>> constant_value(parse_expression("1u - 2 > 0 ? sizeof(long) * 2 : X"), lambda name: None)
    16
    """
    found = Typer(_Constants(lookup, sizeof, place), long_size).of(node)
    return None if found is None else found.value


class _Constants:
    """Knows names, sizes and the few functions that stand in constant expressions."""

    def __init__(self, lookup: Lookup, sizeof: SizeOf | None, place: Place | None) -> None:
        self.lookup = lookup
        self.sizeof = sizeof
        self.place = place

    def __call__(self, typer: Typer, node: ast.Node) -> Typed | None:
        match node:
            case ast.Name(name=name):
                found = self.lookup(name)
                return None if found is None else Typed(_kind_of_name(found), found)
            case ast.SizeOf(op="sizeof"):
                size = self._size_of_operand(typer, node)
                return None if size is None else Typed(typer.ulong, size)
            case ast.Call():
                return self._call(typer, node)
        return None

    def _size_of_operand(self, typer: Typer, node: ast.SizeOf) -> int | None:
        if node.ctype is not None:
            return self._size(typer, node.ctype)
        match node.operand:
            case ast.String(pieces=(), value=text):
                return len(text) + 1
            case ast.Node() if self.place is not None and (found := self.place(node.operand)) is not None:
                return self._size(typer, found[1])
        return None

    def _size(self, typer: Typer, ctype: CType) -> int | None:
        if is_build_check(ctype):
            return 0
        if self.sizeof is not None and (found := self.sizeof(ctype)) is not None:
            return found
        kind = int_type_of(ctype, typer.long_size)
        return kind.size if kind else None

    def _call(self, typer: Typer, node: ast.Call) -> Typed | None:
        name = node.name
        if name in ("offsetof", "__builtin_offsetof") and len(node.arguments) == 2:
            return self._offset_of(typer, *node.arguments)
        if name == "__builtin_constant_p":
            return Typed(INT, 1)
        order = BYTE_ORDERS.get(name) if name.startswith("__builtin_bswap") else None
        if len(node.arguments) != 1 or (order is None and name not in _FOLDED):
            return None
        inner = typer.of(node.arguments[0])
        if inner is None or inner.value is None:
            return None
        if order is not None:
            return Typed(order.kind, order.call(inner.value))
        try:
            value, kind = pure_functions(typer.long_size)[name].call((inner.value, inner.kind or typer.ulong))
        except ArithmeticError:
            return None
        return Typed(kind, value)

    def _offset_of(self, typer: Typer, struct: ast.Node, member: ast.Node) -> Typed | None:
        if isinstance(struct, ast.Name):
            struct = ast.TypeName(CType(struct.name))
        found = self.place(_below(struct, member)) if self.place is not None else None
        return None if found is None else Typed(typer.ulong, found[0])


def _kind_of_name(value: int) -> IntType:
    if -(1 << 31) <= value < 1 << 31:
        return INT
    if 0 <= value < 1 << 32:
        return UINT
    return LLONG if value < 1 << 63 else ULLONG


def _below(struct: ast.Node, member: ast.Node) -> ast.Node:
    """Return `struct.a.b` for the `a.b` that offsetof() takes."""
    match member:
        case ast.Name(name=name):
            return ast.Member(struct, name, is_arrow=False)
        case ast.Member(base=base):
            return replace(member, base=_below(struct, base))
        case ast.Index(base=base):
            return replace(member, base=_below(struct, base))
    return member
