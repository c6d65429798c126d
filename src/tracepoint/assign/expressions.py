"""Evaluates C expressions of an assignment, asking for inputs only when a value is needed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from tracepoint.assign.core import CONDITION, NO_WANT
from tracepoint.assign.kinds import kind_of
from tracepoint.assign.objects import Objects
from tracepoint.assign.state import TRANSPARENT
from tracepoint.assign.values import (
    CannotFollowError,
    Int,
    Outside,
    Pointer,
    Slot,
    Value,
    Want,
)
from tracepoint.source import ast
from tracepoint.source.cexpr import write_expression
from tracepoint.source.cvalue import COMPARISONS, INT, binary_type, binary_value, number_type, promote

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tracepoint.source.ctype import CType

    Handler = Callable[["Evaluator", ast.Call, Want], Value]


class Evaluator(Objects):
    """The whole evaluator; `handlers` are the functions whose meaning is known."""

    handlers: ClassVar[Mapping[str, Handler]] = {}

    def _number(self, node: ast.Number, _want: Want) -> Value:
        long_size = self.shapes.long_size
        kind = number_type(node.value, node.suffix, is_decimal=node.is_decimal, long_size=long_size)
        return Int(kind.wrap(node.value), kind)

    def _char(self, node: ast.Char, _want: Want) -> Value:
        return Int(node.value, INT)

    def _comma(self, node: ast.Comma, want: Want) -> Value:
        self.evaluate(node.left)
        return self.evaluate(node.right, want)

    def _statements(self, node: ast.StatementExpression, _want: Want) -> Value:
        return self.run_tokens(node.tokens)

    def _compound(self, node: ast.CompoundLiteral, _want: Want) -> Value:
        return self.initialised(self.shape_of(node.ctype, node.items), node.items, "a compound literal")

    # Operators

    def _unary(self, node: ast.Unary, want: Want) -> Value:
        match node.op:
            case "&":
                return self.address(node)
            case "*":
                return self.dereference(node)
            case "!":
                return Int(int(not self.is_true(node.operand)), INT)
            case "++" | "--" | "p++" | "p--":
                return self._increment(node)
        inner = self.integer(node.operand, want)
        kind = promote(inner.kind)
        value = {"-": -inner.value, "~": ~inner.value}.get(node.op, inner.value)
        return Int(kind.wrap(value), kind)

    def _increment(self, node: ast.Unary) -> Value:
        before = self.value(node.operand)
        amount = ast.Number(1)
        self.assign(ast.Assign("+=" if "+" in node.op else "-=", node.operand, amount))
        return before if node.op.startswith("p") else self.value(node.operand)

    def _ternary(self, node: ast.Ternary, want: Want) -> Value:
        if self.is_exploring:
            self.is_true(node.condition)
            then = self.attempt(node.then if node.then is not None else node.condition, want)
            otherwise = self.attempt(node.otherwise, want)
            return otherwise if then is None and otherwise is not None else then or Int(0, INT)
        first = node.then if node.then is not None else node.condition
        found = self.evaluate(first if self.is_true(node.condition) else node.otherwise, want)
        both = kind_of(self, node)
        if both is None:
            return found
        chosen = self.to_int(self.read(found), want)
        kept = both.wrap(chosen.value)
        return Int(kept, both, chosen.input_ if kept == chosen.value else "")

    def _binary(self, node: ast.Binary, want: Want) -> Value:
        op = node.op
        if op in ("&&", "||"):
            left = self.is_true(node.left)
            if self.is_exploring:
                self.attempt(node.right, CONDITION)
            elif left == (op == "||"):
                return Int(int(left), INT)
            return Int(int(self.is_true(node.right)), INT)
        inner = NO_WANT if op in COMPARISONS else want
        left_value = self.value(node.left, inner)
        right_value = self.value(node.right, NO_WANT if op in ("<<", ">>") else inner)
        pointed = self._pointer_binary(node, left_value, right_value, want)
        if pointed is not None:
            return pointed
        left_want, right_want = _wants(op, left_value, right_value, inner)
        left_int = self.to_int(left_value, left_want)
        right_int = self.to_int(right_value, right_want)
        try:
            result = binary_value(op, left_int.value, left_int.kind, right_int.value, right_int.kind)
        except ZeroDivisionError:
            raise CannotFollowError(f"{write_expression(node)[:60]} divides by zero") from None
        except KeyError:
            raise CannotFollowError(f"operator {op} is not followed") from None
        return Int(result, binary_type(op, left_int.kind, right_int.kind))

    def _pointer_binary(self, node: ast.Binary, left: Value, right: Value, want: Want) -> Value | None:
        op = node.op
        if isinstance(left, Pointer) and op in ("+", "-") and not isinstance(right, Pointer):
            amount = self.to_int(right, NO_WANT).value * (left.shape.size or 1)
            return replace(left, offset=left.offset + (amount if op == "+" else -amount))
        if isinstance(left, Pointer) and isinstance(right, Pointer):
            if op == "-" and left.memory is right.memory:
                return Int((left.offset - right.offset) // (left.shape.size or 1), self.shapes.long)
            if op in ("==", "!="):
                same = left.memory is right.memory and left.offset == right.offset
                return Int(int(same == (op == "==")), INT)
        if op in ("+", "-") and isinstance(left, Outside):
            is_pointer = left.ctype is not None and left.ctype.pointers > 0
            if is_pointer or want.role in ("pointer", "bytes", "string"):
                return Outside(replace(node, left=left.node, right=self.canonical(node.right)), left.ctype)
        return None

    def _cast(self, node: ast.Cast, want: Want) -> Value:
        ctype = node.ctype
        if ctype.pointers:
            return self._pointer_cast(ctype, self.value(node.operand, replace(want, kind=self.shapes.ulong)))
        kind = self.shapes.of_element(ctype).kind
        if ctype.base == "void":
            self.evaluate(node.operand)
            return Int(0, INT)
        if kind is None:
            # A type that is not known here: the value passes as it is.
            return self.evaluate(node.operand, want)
        inner = self.integer(node.operand, replace(want, kind=kind, role="int"))
        if ctype.base == "bool":
            return Int(int(inner.value != 0), kind)
        kept = kind.wrap(inner.value)
        return Int(kept, kind, inner.input_ if kept == inner.value else "")

    def _pointer_cast(self, ctype: CType, inner: Value) -> Value:
        match inner:
            case Pointer():
                return replace(inner, shape=self.shapes.pointee(ctype))
            case Outside(node=outside):
                if ctype.base in ("void", "char", "u8", "unsigned char", "long", "unsigned long"):
                    return Outside(outside, ctype)
                return Outside(ast.Cast(ctype, outside), ctype)
            case Slot(memory=memory, offset=offset):
                return Pointer(memory, offset, self.shapes.pointee(ctype))
        return inner

    def _call(self, node: ast.Call, want: Want) -> Value:
        if node.name in TRANSPARENT and node.arguments:
            return self.evaluate(node.arguments[0], want)
        handler = self.handlers.get(node.name)
        if handler is not None:
            return handler(self, node, want)
        if self.is_exploring:
            return Outside(self.canonical(node))
        return Outside(self.canonical(node))

    forms: ClassVar[Mapping[type[ast.Node], Callable[..., Value]]] = {
        ast.Number: _number,
        ast.Char: _char,
        ast.String: Objects.string_form,
        ast.Name: Objects.name_form,
        ast.Member: Objects.member_form,
        ast.Index: Objects.index_form,
        ast.SizeOf: Objects.sizeof_form,
        ast.Unary: _unary,
        ast.Binary: _binary,
        ast.Ternary: _ternary,
        ast.Cast: _cast,
        ast.Call: _call,
        ast.Comma: _comma,
        ast.Assign: Objects.assign,
        ast.StatementExpression: _statements,
        ast.CompoundLiteral: _compound,
    }


def _wants(op: str, left: Value, right: Value, want: Want) -> tuple[Want, Want]:
    """Let each operand want the other one's type when its own is not known."""
    if op in ("<<", ">>"):
        return want, NO_WANT
    if isinstance(left, Int) and isinstance(right, Outside) and want.kind is None:
        return want, Want(left.kind)
    if isinstance(right, Int) and isinstance(left, Outside) and want.kind is None:
        return Want(right.kind), want
    return want, want
