"""What expressions mean: constants, operators, conversions and calls; inputs are asked for when needed."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tracepoint.assign.lvalues import address, dereference
from tracepoint.assign.machine import CONDITION, NO_WANT
from tracepoint.assign.stores import assign
from tracepoint.assign.values import CannotFollowError, Int, Outside, Pointer, Slot, Value, Want
from tracepoint.source import ast
from tracepoint.source.cexpr import write_expression
from tracepoint.source.cvalue import COMPARISONS, binary_value, conversions, number_type, promote, unary_value
from tracepoint.source.functions import TRANSPARENT
from tracepoint.source.typed import Typed, Typer
from tracepoint.source.types import INT, IntType

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.assign.machine import Machine
    from tracepoint.source.ctype import CType


def _number(machine: Machine, node: ast.Number, _want: Want) -> Value:
    long_size = machine.shapes.long_size
    kind = number_type(node.value, node.suffix, is_decimal=node.is_decimal, long_size=long_size)
    return Int(kind.wrap(node.value), kind)


def _char(_machine: Machine, node: ast.Char, _want: Want) -> Value:
    return Int(node.value, INT)


def _comma(machine: Machine, node: ast.Comma, want: Want) -> Value:
    machine.evaluate(node.left)
    return machine.evaluate(node.right, want)


def _unary(machine: Machine, node: ast.Unary, want: Want) -> Value:
    match node.op:
        case "&":
            return address(machine, node)
        case "*":
            return dereference(machine, node)
        case "!":
            return Int(int(not machine.is_true(node.operand)), INT)
        case "++" | "--" | "p++" | "p--":
            return _increment(machine, node)
    inner = machine.integer(node.operand, want)
    return Int(unary_value(node.op, inner.value, inner.kind), promote(inner.kind))


def _increment(machine: Machine, node: ast.Unary) -> Value:
    before = machine.value(node.operand)
    assign(machine, ast.Assign("+=" if "+" in node.op else "-=", node.operand, ast.Number(1)))
    return before if node.op.startswith("p") else machine.value(node.operand)


def _ternary(machine: Machine, node: ast.Ternary, want: Want) -> Value:
    first = node.then if node.then is not None else node.condition
    if machine.is_exploring:
        machine.is_true(node.condition)
        then, otherwise = machine.attempt(first, want), machine.attempt(node.otherwise, want)
        return then or otherwise or Int(0, INT)
    found = machine.evaluate(first if machine.is_true(node.condition) else node.otherwise, want)
    both = kind_of(machine, node)
    return found if both is None else _converted(machine.to_int(machine.read(found), want), both)


def _converted(number: Int, kind: IntType) -> Int:
    """Convert to a type; the name of the input goes when its value changes."""
    kept = kind.wrap(number.value)
    return Int(kept, kind, number.input_ if kept == number.value else "")


def _binary(machine: Machine, node: ast.Binary, want: Want) -> Value:
    op = node.op
    if op in ("&&", "||"):
        left = machine.is_true(node.left)
        if machine.is_exploring:
            machine.attempt(node.right, CONDITION)
        elif left == (op == "||"):
            return Int(int(left), INT)
        return Int(int(machine.is_true(node.right)), INT)
    inner = NO_WANT if op in COMPARISONS else want
    left_value = machine.value(node.left, inner)
    right_value = machine.value(node.right, NO_WANT if op in ("<<", ">>") else inner)
    pointed = _pointer_binary(machine, node, left_value, right_value, want)
    if pointed is not None:
        return pointed
    left_want, right_want = _wants(op, left_value, right_value, inner)
    left_int = machine.to_int(left_value, left_want)
    right_int = machine.to_int(right_value, right_want)
    try:
        result = binary_value(op, left_int.value, left_int.kind, right_int.value, right_int.kind)
    except ZeroDivisionError:
        raise CannotFollowError(f"{write_expression(node)[:60]} divides by zero") from None
    except KeyError:
        raise CannotFollowError(f"operator {op} is not followed") from None
    return Int(result, conversions(op, left_int.kind, right_int.kind).result)


def _pointer_binary(
    machine: Machine, node: ast.Binary, left: Value, right: Value, want: Want
) -> Value | None:
    op = node.op
    if isinstance(left, Pointer) and op in ("+", "-") and not isinstance(right, Pointer):
        amount = machine.to_int(right, NO_WANT).value * (left.shape.size or 1)
        return replace(left, offset=left.offset + (amount if op == "+" else -amount))
    if isinstance(left, Pointer) and isinstance(right, Pointer):
        if op == "-" and left.memory is right.memory:
            return Int((left.offset - right.offset) // (left.shape.size or 1), machine.shapes.long)
        if op in ("==", "!="):
            same = left.memory is right.memory and left.offset == right.offset
            return Int(int(same == (op == "==")), INT)
    if op in ("+", "-") and isinstance(left, Outside):
        is_pointer = left.ctype is not None and left.ctype.pointers > 0
        if is_pointer or want.role in ("pointer", "bytes", "string"):
            return Outside(replace(node, left=left.node, right=machine.canonical(node.right)), left.ctype)
    return None


def _wants(op: str, left: Value, right: Value, want: Want) -> tuple[Want, Want]:
    """Let each operand want the other one's type when its own is not known."""
    if op in ("<<", ">>"):
        return want, NO_WANT
    if isinstance(left, Int) and isinstance(right, Outside) and want.kind is None:
        return want, Want(left.kind)
    if isinstance(right, Int) and isinstance(left, Outside) and want.kind is None:
        return Want(right.kind), want
    return want, want


def _cast(machine: Machine, node: ast.Cast, want: Want) -> Value:
    ctype = node.ctype
    if ctype.pointers:
        inner = machine.value(node.operand, replace(want, kind=machine.shapes.ulong))
        return _pointer_cast(machine, ctype, inner)
    kind = machine.shapes.of_element(ctype).kind
    if ctype.base == "void":
        machine.evaluate(node.operand)
        return Int(0, INT)
    if kind is None:
        # A type that is not known here: the value passes as it is.
        return machine.evaluate(node.operand, want)
    number = machine.integer(node.operand, replace(want, kind=kind, role="int"))
    return Int(int(number.value != 0), kind) if ctype.base == "bool" else _converted(number, kind)


def _pointer_cast(machine: Machine, ctype: CType, inner: Value) -> Value:
    match inner:
        case Pointer():
            return replace(inner, shape=machine.shapes.pointee(ctype))
        case Outside(node=outside):
            if ctype.base in ("void", "char", "u8", "unsigned char", "long", "unsigned long"):
                return Outside(outside, ctype)
            return Outside(ast.Cast(ctype, outside), ctype)
        case Slot(memory=memory, offset=offset):
            return Pointer(memory, offset, machine.shapes.pointee(ctype))
    return inner


def _call(machine: Machine, node: ast.Call, want: Want) -> Value:
    if node.name in TRANSPARENT and node.arguments:
        return machine.evaluate(node.arguments[0], want)
    handler = machine.functions.get(node.name)
    return handler(machine, node, want) if handler is not None else Outside(machine.canonical(node))


FORMS: dict[type[ast.Node], Callable[..., Value]] = {
    ast.Number: _number,
    ast.Char: _char,
    ast.Comma: _comma,
    ast.Unary: _unary,
    ast.Binary: _binary,
    ast.Ternary: _ternary,
    ast.Cast: _cast,
    ast.Call: _call,
}


# The integer type an expression has, without evaluating it: the arms of `?:` decide the type
# together, and only one of them is evaluated.


def kind_of(machine: Machine, node: ast.Node) -> IntType | None:
    """Return the integer type of an expression; None for a pointer or when it is unknown here."""
    found = Typer(partial(_known, machine), machine.shapes.long_size).of(node)
    return found.kind if found is not None else None


def _known(machine: Machine, typer: Typer, node: ast.Node) -> Typed | None:
    """Return the types of locals, parameters, constants and fields."""
    match node:
        case ast.Name():
            return _known_name(machine, typer, node.name)
        case ast.Member(base=ast.Name(name="__entry"), name=name, is_arrow=True):
            member = (machine.record_shape.members or {}).get(name)
            return Typed(member[1].kind) if member is not None and not member[1].is_pointer else None
        case ast.Call(arguments=(first, *_)) if node.name in TRANSPARENT:
            return typer.of(first)
    return None


def _known_name(machine: Machine, typer: Typer, name: str) -> Typed | None:
    cell = machine.locals.get(name)
    if cell is not None:
        return Typed(cell.slot.shape.kind) if cell.slot is not None else None
    if name in machine.inputs.params:
        return typer.of_ctype(machine.inputs.params[name])
    known = machine.inputs.constant(name)
    return None if known is None else Typed(number_type(abs(known), long_size=typer.long_size))
