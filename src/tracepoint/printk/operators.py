"""The operators of C on lowered values: integers with C's conversions, and pointers into the record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.printk import ops
from tracepoint.printk.twin.run import constant_of
from tracepoint.printk.values import (
    IntValue,
    MemoryValue,
    PlaceValue,
    TextValue,
    Value,
    constant,
    is_set,
    moved,
    place_of,
    text_of,
)
from tracepoint.source.cvalue import COMPARISONS, common_type, conversions, promote
from tracepoint.source.types import INT, IntType

if TYPE_CHECKING:
    from tracepoint.printk.scope import Scope
    from tracepoint.source.ctype import CType


def _fits(source: IntType, target: IntType) -> bool:
    """Return whether every value of one type is a value of the other."""
    if source.is_signed:
        return target.is_signed and target.size >= source.size
    return target.size > source.size or (target.size == source.size and not target.is_signed)


def converted(value: IntValue, kind: IntType, ctype: CType | None = None) -> IntValue:
    """Return a value converted to a type, as an assignment or cast does."""
    if value.constant is not None:
        return constant(kind.wrap(value.constant), kind, ctype)
    op = value.op
    if not _fits(value.kind, kind):
        op = ops.Convert(op, kind)
    return IntValue(kind, op, ctype, value.is_unknown)


def folded(result: IntValue, *operands: IntValue) -> IntValue:
    """Compute a value now when all it needs is constant."""
    if any(value.constant is None for value in operands):
        return result
    return IntValue(result.kind, constant_of(result.op), result.ctype, result.is_unknown)


def truth(value: Value) -> IntValue:
    """Return whether a value counts as true, as an int; an integer is its own truth."""
    return value if isinstance(value, IntValue) else IntValue(INT, is_set(value))


def unary(op: str, value: IntValue) -> IntValue:
    """Lower `+`, `-` or `~`."""
    kind = promote(value.kind)
    number = converted(value, kind)
    if op == "+":
        return number
    return folded(IntValue(kind, ops.Unary(op, number.op, kind), is_unknown=value.is_unknown), value)


def negated(value: IntValue) -> IntValue:
    """Lower `!`."""
    return folded(IntValue(INT, ops.Not(value.op), is_unknown=value.is_unknown), value)


def binary(scope: Scope, op: str, left: Value, right: Value) -> Value:
    """Lower a binary operator."""
    if op in ("&&", "||"):
        return _logical(op, truth(left), truth(right))
    if isinstance(left, IntValue) and isinstance(right, IntValue):
        if left.ctype is not None or right.ctype is not None:
            return _addresses(scope, op, left, right)
        return integers(op, left, right)
    if op in ("==", "!=") and not isinstance(left, PlaceValue) and not isinstance(right, PlaceValue):
        return _compare_pointers(scope, op, left, right)
    if op in ("+", "-") and isinstance(left, MemoryValue) and isinstance(right, IntValue):
        return _move(scope, left, right, 1 if op == "+" else -1)
    if op == "+" and isinstance(right, MemoryValue) and isinstance(left, IntValue):
        return _move(scope, right, left, 1)
    if op == "-" and isinstance(left, MemoryValue) and isinstance(right, MemoryValue):
        size = scope.size_of(left.ctype) or 1
        return IntValue(IntType(scope.long_size, is_signed=True), ops.Distance(left.op, right.op, size))
    return scope.unknown(f"an address in the record used with {op}")


def _logical(op: str, left: IntValue, right: IntValue) -> IntValue:
    made = ops.Both(left.op, right.op) if op == "&&" else ops.Either(left.op, right.op)
    return folded(IntValue(INT, made), left, right)


def integers(op: str, left: IntValue, right: IntValue) -> IntValue:
    """Lower a binary operator on two integers."""
    kinds = conversions(op, left.kind, right.kind)
    made = ops.Binary(op, converted(left, kinds.left).op, converted(right, kinds.right).op, kinds.left)
    is_unknown = left.is_unknown or right.is_unknown
    return folded(IntValue(kinds.result, made, is_unknown=is_unknown), left, right)


def _addresses(scope: Scope, op: str, left: IntValue, right: IntValue) -> Value:
    """Lower arithmetic on kernel addresses, scaled by what they point to."""
    if op in COMPARISONS or op not in ("+", "-"):
        return integers(op, left, right)
    pointer, other = (left, right) if left.ctype is not None else (right, left)
    ctype = pointer.ctype
    if ctype is None or (left.ctype is not None and right.ctype is not None):
        return scope.unknown("the distance of two kernel addresses")
    target = type(ctype)(ctype.base, ctype.pointers - 1)
    size, name = scope.size_of(target), str(target)
    what = f"sizeof({name})"
    if size is None and what not in scope.reasons:
        scope.reasons.append(what)
    scale = ops.Fact("sizeof", name, scope.ulong, ops.Unknown(what)) if size is None else ops.Const(size)
    by = ops.Binary("*", scale, converted(other, scope.ulong).op, scope.ulong)
    start = converted(pointer, scope.ulong).op
    moved_to = ops.Binary(op, by, start, scope.ulong) if op == "+" else ops.Binary(op, start, by, scope.ulong)
    return IntValue(scope.ulong, moved_to, ctype)


def _move(scope: Scope, base: MemoryValue, by: IntValue, sign: int) -> Value:
    size = None if base.ctype.base == "struct <record>" else scope.size_of(base.ctype)
    if size is None:
        return scope.unknown(f"the size of {base.ctype}")
    return MemoryValue(base.ctype, moved(base.op, by.op, sign * size))


def _compare_pointers(scope: Scope, op: str, left: Value, right: Value) -> IntValue:
    """Lower a comparison with NULL; other addresses of memory are not known."""
    if isinstance(left, IntValue) and left.constant == 0:
        left, right = right, left
    if not (isinstance(right, IntValue) and right.constant == 0):
        return scope.unknown("a comparison of addresses")
    is_null = negated(truth(left))
    return is_null if op == "==" else negated(is_null)


def choice(scope: Scope, condition: IntValue, then: Value, otherwise: Value) -> Value:
    """Lower `condition ? then : otherwise` for every kind of value."""
    if condition.constant is not None and type(then) is type(otherwise):
        chosen = then if condition.constant else otherwise
        if not isinstance(chosen, IntValue):
            return chosen
    test = condition.op
    if isinstance(then, IntValue) and isinstance(otherwise, IntValue):
        return _choose_integer(condition, then, otherwise)
    if isinstance(then, PlaceValue) or isinstance(otherwise, PlaceValue):
        if not (isinstance(then, PlaceValue) and isinstance(otherwise, PlaceValue)):
            return scope.unknown("a choice between a struct and a value")
        return PlaceValue(then.ctype, ops.IfPlace(test, then.op, otherwise.op), then.extent)
    if _is_text(then) and _is_text(otherwise):
        return TextValue(ops.IfText(test, text_of(then), text_of(otherwise)))
    memory = then if isinstance(then, MemoryValue) else otherwise
    if not isinstance(memory, MemoryValue):
        return scope.unknown("a choice of strings")
    return MemoryValue(memory.ctype, ops.IfPlace(test, place_of(then), place_of(otherwise)))


def _is_text(value: Value) -> bool:
    """Whether a value is a string or an address that may be one, and at least made text or a literal."""
    return isinstance(value, TextValue | IntValue) or (
        isinstance(value, MemoryValue) and value.literal is not None
    )


def _choose_integer(condition: IntValue, then: IntValue, otherwise: IntValue) -> IntValue:
    if then.is_unknown or otherwise.is_unknown:
        known = otherwise if then.is_unknown else then
        kind, ctype = known.kind, known.ctype
        a, b = then.op, otherwise.op
    else:
        kind = common_type(then.kind, otherwise.kind)
        a, b = converted(then, kind).op, converted(otherwise, kind).op
        ctype = then.ctype or otherwise.ctype
    result = IntValue(kind, ops.IfNumber(condition.op, a, b), ctype)
    return folded(result, condition, then, otherwise)
