"""The integer type an expression has, without evaluating it.

The arms of `?:` decide the type together, and only one of them is evaluated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.assign.state import TRANSPARENT
from tracepoint.source import ast
from tracepoint.source.cvalue import (
    INT,
    IntType,
    binary_type,
    common_type,
    int_type_of,
    number_type,
    promote,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.assign.state import State


def kind_of(state: State, node: ast.Node) -> IntType | None:
    """Return the integer type of an expression; None for a pointer or when nothing here tells it."""
    if isinstance(node, ast.Number):
        long_size = state.shapes.long_size
        return number_type(node.value, node.suffix, is_decimal=node.is_decimal, long_size=long_size)
    form = _FORMS.get(type(node))
    return form(state, node) if form is not None else None


def _of_call(state: State, node: ast.Call) -> IntType | None:
    return kind_of(state, node.arguments[0]) if node.name in TRANSPARENT and node.arguments else None


def _of_member(state: State, node: ast.Member) -> IntType | None:
    if not node.is_arrow or node.base != ast.Name("__entry"):
        return None
    member = (state.record_shape.members or {}).get(node.name)
    return member[1].kind if member is not None and not member[1].is_pointer else None


def _of_name(state: State, node: ast.Name) -> IntType | None:
    name = node.name
    cell = state.locals.get(name)
    if cell is not None:
        return cell.slot.shape.kind if cell.slot is not None else None
    if name in state.inputs.params:
        ctype = state.inputs.params[name]
        return None if ctype.pointers else int_type_of(ctype, state.shapes.long_size)
    known = state.inputs.constant(name)
    return None if known is None else number_type(abs(known), long_size=state.shapes.long_size)


def _of_unary(state: State, node: ast.Unary) -> IntType | None:
    if node.op == "!":
        return INT
    inner = kind_of(state, node.operand) if node.op not in ("&", "*") else None
    return inner if inner is None or node.op.endswith(("++", "--")) else promote(inner)


def _of_ternary(state: State, node: ast.Ternary) -> IntType | None:
    return _of_both(state, "?", node.then if node.then is not None else node.condition, node.otherwise)


def _of_both(state: State, op: str, left: ast.Node, right: ast.Node) -> IntType | None:
    if op in ("&&", "||", "==", "!=", "<", ">", "<=", ">="):
        return INT
    first, second = kind_of(state, left), kind_of(state, right)
    if first is None or second is None:
        return None
    return common_type(first, second) if op == "?" else binary_type(op, first, second)


_FORMS: dict[type[ast.Node], Callable[..., IntType | None]] = {
    ast.Char: lambda _state, _node: INT,
    ast.Name: _of_name,
    ast.Unary: _of_unary,
    ast.Binary: lambda state, node: _of_both(state, node.op, node.left, node.right),
    ast.Ternary: _of_ternary,
    ast.Cast: lambda state, node: None if node.ctype.pointers else state.shapes.of_element(node.ctype).kind,
    ast.SizeOf: lambda state, _node: state.shapes.ulong,
    ast.Comma: lambda state, node: kind_of(state, node.right),
    ast.Call: _of_call,
    ast.Member: _of_member,
}
