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
    from tracepoint.assign.state import State


def kind_of(state: State, node: ast.Node) -> IntType | None:
    """Return the integer type of an expression; None for a pointer or when nothing here tells it."""
    match node:
        case ast.Number(value=value, suffix=suffix, is_decimal=is_decimal):
            return number_type(value, suffix, is_decimal=is_decimal, long_size=state.shapes.long_size)
        case ast.Char():
            return INT
        case ast.Name(name=name):
            return _of_name(state, name)
        case ast.Unary(op=op, operand=operand):
            return _of_unary(state, op, operand)
        case ast.Binary(op=op, left=left, right=right):
            return _of_both(state, op, left, right)
        case ast.Ternary(condition=condition, then=then, otherwise=otherwise):
            return _of_both(state, "?", then if then is not None else condition, otherwise)
        case ast.Cast(ctype=ctype):
            return None if ctype.pointers else state.shapes.of_element(ctype).kind
    return _of_rest(state, node)


def _of_rest(state: State, node: ast.Node) -> IntType | None:
    match node:
        case ast.SizeOf():
            return state.shapes.ulong
        case ast.Comma(right=right):
            return kind_of(state, right)
        case ast.Call(arguments=(first, *_)) if node.name in TRANSPARENT:
            return kind_of(state, first)
        case ast.Member(base=ast.Name(name="__entry"), name=name, is_arrow=True):
            member = (state.record_shape.members or {}).get(name)
            return member[1].kind if member is not None and not member[1].is_pointer else None
    return None


def _of_name(state: State, name: str) -> IntType | None:
    cell = state.locals.get(name)
    if cell is not None:
        return cell.slot.shape.kind if cell.slot is not None else None
    if name in state.inputs.params:
        ctype = state.inputs.params[name]
        return None if ctype.pointers else int_type_of(ctype, state.shapes.long_size)
    known = state.inputs.constant(name)
    return None if known is None else number_type(abs(known), long_size=state.shapes.long_size)


def _of_unary(state: State, op: str, operand: ast.Node) -> IntType | None:
    if op == "!":
        return INT
    if op in ("&", "*"):
        return None
    inner = kind_of(state, operand)
    return None if inner is None else inner if op.lstrip("p") in ("++", "--") else promote(inner)


def _of_both(state: State, op: str, left: ast.Node, right: ast.Node) -> IntType | None:
    if op in ("&&", "||", "==", "!=", "<", ">", "<=", ">="):
        return INT
    first, second = kind_of(state, left), kind_of(state, right)
    if first is None or second is None:
        return None
    return common_type(first, second) if op == "?" else binary_type(op, first, second)
