"""The operators of C on what reads numbers out of a record."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from tracepoint.printk.facts import UnknownPartError
from tracepoint.source.cvalue import COMPARISONS, divide, remainder

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.printk.memory import RecordMemory
    from tracepoint.printk.twin.maker import Number
    from tracepoint.source.types import IntType

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
    "min": min,
    "max": max,
}
_NEEDS_WRAP = frozenset({"+", "-", "*", "/"})


def wrapped(read: Number, kind: IntType) -> Number:
    """Return what reads a number as a store into a type keeps it."""
    mask = (1 << 8 * kind.size) - 1
    if not kind.is_signed:
        return lambda record: read(record) & mask
    half = 1 << (8 * kind.size - 1)
    return lambda record: ((read(record) + half) & mask) - half


def binary(op: str, left: Number, right: Number, kind: IntType) -> Number:
    """Return what computes `left op right`, both of a type."""
    if op in ("<<", ">>"):
        return _shift(op, left, right, kind)
    compute = _PLAIN[op]
    if op in ("/", "%"):
        read = _division(compute, left, right)
    else:

        def read(record: RecordMemory) -> int:
            return compute(left(record), right(record))

    if op in COMPARISONS:
        return lambda record: int(compute(left(record), right(record)))
    return wrapped(read, kind) if op in _NEEDS_WRAP else read


def with_number(op: str, left: Number, number: int, kind: IntType) -> Number:
    """Return what computes `left op number`, as `binary` does: formats mostly have such a number there."""
    if op == "&":
        return lambda record: left(record) & number
    if op == "==":
        return lambda record: int(left(record) == number)
    return binary(op, left, lambda _: number, kind)


def _division(compute: Callable[[int, int], int], a: Number, b: Number) -> Number:
    def read(record: RecordMemory) -> int:
        divisor = b(record)
        if divisor == 0:
            raise UnknownPartError("a division by zero")
        return compute(a(record), divisor)

    return read


def _shift(op: str, a: Number, b: Number, kind: IntType) -> Number:
    # By the width or more is undefined in C; x86 and arm64 count modulo the width.
    limit = 8 * kind.size - 1
    if op == ">>":
        return lambda record: a(record) >> (b(record) & limit)
    return wrapped(lambda record: a(record) << (b(record) & limit), kind)
