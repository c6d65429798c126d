"""The operators of C on compiled values: integers with C's conversions, and pointers into the record."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from tracepoint.printk.facts import NO_FACTS, UnknownPartError
from tracepoint.printk.values import (
    IntValue,
    MemoryValue,
    PlaceValue,
    Record,
    TextValue,
    Value,
    constant,
    memory_of,
    text_of,
)
from tracepoint.source.cvalue import COMPARISONS, INT, IntType, common_type, divide, promote, remainder

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.printk.compiling import Compiling
    from tracepoint.printk.values import Location
    from tracepoint.source.ctype import CType

    Read = Callable[[Record], int]
    Where = Callable[[Record], Location | None]

_PLAIN: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": divide,
    "%": remainder,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}
_NEEDS_WRAP = frozenset({"+", "-", "*", "/"})
_NOTHING = Record(b"", NO_FACTS)


def _fits(source: IntType, target: IntType) -> bool:
    """Whether every value of one type is a value of the other."""
    if source.is_signed:
        return target.is_signed and target.size >= source.size
    return target.size > source.size or (target.size == source.size and not target.is_signed)


def converted(value: IntValue, kind: IntType, ctype: CType | None = None) -> IntValue:
    """Return a value converted to a type, as an assignment or cast does."""
    if value.constant is not None:
        return constant(kind.wrap(value.constant), kind, ctype)
    read = value.read
    if not _fits(value.kind, kind) or value.is_unknown:
        read = _wrapped(read, kind)
    return IntValue(kind, read, None, ctype, value.is_unknown)


def _wrapped(read: Read, kind: IntType) -> Read:
    mask = (1 << 8 * kind.size) - 1
    if not kind.is_signed:
        return lambda record: read(record) & mask
    half = 1 << (8 * kind.size - 1)
    return lambda record: ((read(record) + half) & mask) - half


def _folded(result: IntValue, *operands: IntValue) -> IntValue:
    """Compute a value now when all it needs is constant."""
    if any(value.constant is None for value in operands):
        return result
    try:
        number = result.read(_NOTHING)
    except UnknownPartError:
        return result
    return constant(number, result.kind, result.ctype)


def unary(op: str, value: IntValue) -> IntValue:
    """Compile `+`, `-` or `~`."""
    kind = promote(value.kind)
    read = value.read
    if op == "+":
        return converted(value, kind)
    negate: Read = (lambda record: -read(record)) if op == "-" else (lambda record: ~read(record))
    return _folded(IntValue(kind, _wrapped(negate, kind), is_unknown=value.is_unknown), value)


def negated(value: IntValue) -> IntValue:
    """Compile `!`."""
    read = value.read
    return _folded(IntValue(INT, lambda record: int(not read(record)), is_unknown=value.is_unknown), value)


def moved(where: Where, by: Read, size: int) -> Where:
    """Return the function that gives a place moved by a number of elements."""

    def read(record: Record) -> Location | None:
        place = where(record)
        return None if place is None else (place[0], place[1] + by(record) * size)

    return read


def binary(evaluator: Compiling, op: str, left: Value, right: Value) -> Value:
    """Compile a binary operator."""
    if op in ("&&", "||"):
        return _logical(op, evaluator.truth(left), evaluator.truth(right))
    if isinstance(left, IntValue) and isinstance(right, IntValue):
        if left.ctype is not None or right.ctype is not None:
            return _addresses(evaluator, op, left, right)
        return integers(op, left, right)
    if op in ("==", "!=") and not isinstance(left, PlaceValue) and not isinstance(right, PlaceValue):
        return _compare_pointers(evaluator, op, left, right)
    if op in ("+", "-") and isinstance(left, MemoryValue) and isinstance(right, IntValue):
        return _move(evaluator, left, right, 1 if op == "+" else -1)
    if op == "+" and isinstance(right, MemoryValue) and isinstance(left, IntValue):
        return _move(evaluator, right, left, 1)
    if op == "-" and isinstance(left, MemoryValue) and isinstance(right, MemoryValue):
        return _distance(evaluator, left, right)
    return evaluator.unknown(f"an address in the record used with {op}")


def _logical(op: str, left: IntValue, right: IntValue) -> IntValue:
    a, b = left.read, right.read
    if op == "&&":
        result = IntValue(INT, lambda record: int(bool(a(record) and b(record))))
    else:
        result = IntValue(INT, lambda record: int(bool(a(record) or b(record))))
    return _folded(result, left, right)


def integers(op: str, left: IntValue, right: IntValue) -> IntValue:
    """Compile a binary operator on two integers."""
    is_unknown = left.is_unknown or right.is_unknown
    if op in ("<<", ">>"):
        return _folded(_shift(op, left, right, is_unknown=is_unknown), left, right)
    kind = common_type(left.kind, right.kind)
    a, b = converted(left, kind).read, converted(right, kind).read
    compute = _PLAIN[op]
    if op in ("/", "%"):
        read = _division(compute, a, b)
    elif right.constant is not None:
        number = kind.wrap(right.constant)
        read = _with_number(op, a, number)
    else:

        def read(record: Record) -> int:
            return compute(a(record), b(record))

    if op in COMPARISONS:
        plain = read
        return _folded(IntValue(INT, lambda record: int(plain(record)), is_unknown=is_unknown), left, right)
    if op in _NEEDS_WRAP:
        read = _wrapped(read, kind)
    return _folded(IntValue(kind, read, is_unknown=is_unknown), left, right)


def _with_number(op: str, a: Read, number: int) -> Read:
    if op == "&":
        return lambda record: a(record) & number
    if op == "==":
        return lambda record: a(record) == number
    compute = _PLAIN[op]
    return lambda record: compute(a(record), number)


def _division(compute: Callable[[int, int], int], a: Read, b: Read) -> Read:
    def read(record: Record) -> int:
        divisor = b(record)
        if divisor == 0:
            raise UnknownPartError("a division by zero")
        return compute(a(record), divisor)

    return read


def _shift(op: str, left: IntValue, right: IntValue, *, is_unknown: bool) -> IntValue:
    kind = promote(left.kind)
    # By the width or more is undefined in C; x86 and arm64 count modulo the width.
    limit = 8 * kind.size - 1
    a, b = left.read, right.read
    if op == ">>":
        return IntValue(kind, lambda record: a(record) >> (b(record) & limit), is_unknown=is_unknown)
    return IntValue(
        kind, _wrapped(lambda record: a(record) << (b(record) & limit), kind), is_unknown=is_unknown
    )


def _addresses(evaluator: Compiling, op: str, left: IntValue, right: IntValue) -> Value:
    """Compile arithmetic on kernel addresses, scaled by what they point to."""
    if op in COMPARISONS or op not in ("+", "-"):
        return integers(op, left, right)
    pointer, other = (left, right) if left.ctype is not None else (right, left)
    ctype = pointer.ctype
    if ctype is None or (left.ctype is not None and right.ctype is not None):
        return evaluator.unknown("the distance of two kernel addresses")
    target = type(ctype)(ctype.base, ctype.pointers - 1)
    size = evaluator.size_of(target)
    name = str(target)
    if size is None and f"sizeof({name})" not in evaluator.reasons:
        evaluator.reasons.append(f"sizeof({name})")
    a, b = pointer.read, other.read
    sign = 1 if op == "+" else -1

    def read(record: Record) -> int:
        scale = size if size is not None else record.facts.sizeof(name)
        if scale is None:
            raise UnknownPartError(f"sizeof({name})")
        return a(record) + sign * b(record) * scale

    return IntValue(evaluator.ulong, _wrapped(read, evaluator.ulong), None, ctype)


def _move(evaluator: Compiling, base: MemoryValue, by: IntValue, sign: int) -> Value:
    size = evaluator.size_of(base.ctype)
    if base.ctype.base == "struct <record>":
        size = None
    if size is None:
        return evaluator.unknown(f"the size of {base.ctype}")
    return MemoryValue(base.ctype, moved(base.read, by.read, sign * size))


def _distance(evaluator: Compiling, left: MemoryValue, right: MemoryValue) -> IntValue:
    size = evaluator.size_of(left.ctype) or 1
    a, b = left.read, right.read

    def read(record: Record) -> int:
        one, two = a(record), b(record)
        if one is None or two is None or one[0] is not two[0]:
            raise UnknownPartError("the distance of two pointers")
        return (one[1] - two[1]) // size

    return IntValue(IntType(evaluator.long_size, is_signed=True), read)


def _compare_pointers(evaluator: Compiling, op: str, left: Value, right: Value) -> IntValue:
    """Compile a comparison with NULL; other addresses of memory are not known."""
    if isinstance(left, IntValue) and left.constant == 0:
        left, right = right, left
    if not (isinstance(right, IntValue) and right.constant == 0):
        return evaluator.unknown("a comparison of addresses")
    truth = evaluator.truth(left)
    return negated(truth) if op == "==" else negated(negated(truth))


def choice(evaluator: Compiling, condition: IntValue, then: Value, otherwise: Value) -> Value:
    """Compile `condition ? then : otherwise` for every kind of value."""
    if condition.constant is not None and _same_kind(then, otherwise):
        chosen = then if condition.constant else otherwise
        if not isinstance(chosen, IntValue):
            return chosen
    test = condition.read
    if isinstance(then, IntValue) and isinstance(otherwise, IntValue):
        return _choose_integer(condition, then, otherwise)
    if isinstance(then, PlaceValue) or isinstance(otherwise, PlaceValue):
        if not (isinstance(then, PlaceValue) and isinstance(otherwise, PlaceValue)):
            return evaluator.unknown("a choice between a struct and a value")
        c, d = then.read, otherwise.read
        return PlaceValue(then.ctype, lambda record: c(record) if test(record) else d(record), then.extent)
    if _is_text(then) and _is_text(otherwise):
        a, b = text_of(then), text_of(otherwise)
        return TextValue(lambda record: a(record) if test(record) else b(record))
    memory = then if isinstance(then, MemoryValue) else otherwise
    if not isinstance(memory, MemoryValue):
        return evaluator.unknown("a choice of strings")
    c, d = memory_of(then), memory_of(otherwise)
    return MemoryValue(memory.ctype, lambda record: c(record) if test(record) else d(record))


def _same_kind(one: Value, two: Value) -> bool:
    return type(one) is type(two)


def _is_text(value: Value) -> bool:
    """Whether a value is a string or an address that may be one, and at least made text or a literal."""
    return isinstance(value, TextValue | IntValue) or (
        isinstance(value, MemoryValue) and value.literal is not None
    )


def _choose_integer(condition: IntValue, then: IntValue, otherwise: IntValue) -> IntValue:
    test = condition.read
    if then.is_unknown or otherwise.is_unknown:
        kind = otherwise.kind if then.is_unknown else then.kind
        a, b = then.read, otherwise.read
        ctype = otherwise.ctype if then.is_unknown else then.ctype
    else:
        kind = common_type(then.kind, otherwise.kind)
        a, b = converted(then, kind).read, converted(otherwise, kind).read
        ctype = then.ctype or otherwise.ctype
    result = IntValue(kind, lambda record: a(record) if test(record) else b(record), None, ctype)
    return _folded(result, condition, then, otherwise)
