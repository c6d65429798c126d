"""C integers: widths, signs, conversions and operators.

`printk` and `assign` compute with these, so that a value wraps, promotes and compares as it
does in the kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.named import NamedTuple
from tracepoint.source.ctype import CType, parse_ctype
from tracepoint.source.types import INT, UINT, ULLONG, IntType, int_type_named

if TYPE_CHECKING:
    from collections.abc import Callable


def int_type_of(ctype: CType | str, long_size: int = 8) -> IntType | None:
    """Return the integer type of a C type; pointers count as unsigned long, enums as unsigned int.

    `long_size` is 4 or 8 bytes.  None when the type is not an integer or not known.

    >>> int_type_of("unsigned long", 4)
    IntType(size=4, is_signed=False)
    """
    if isinstance(ctype, str):
        found = int_type_named(ctype, long_size)
        if found is not None:
            return found
        ctype = parse_ctype(ctype)
    if ctype.array:
        return None
    if ctype.pointers:
        return IntType(long_size, is_signed=False)
    found = int_type_named(ctype.base, long_size)
    return UINT if found is None and ctype.base.startswith("enum ") else found


def is_build_check(ctype: CType) -> bool:
    """Return whether a type is that of BUILD_BUG_ON_ZERO(), a struct of size 0 in code that compiles.

    include/linux/build_bug.h: its only member is a bit-field of width `-!!(condition)`.
    """
    return ctype.base.startswith("struct { int:(-!!(") and not ctype.pointers


def promote(kind: IntType) -> IntType:
    """Return what a value of a type becomes in an expression: at least int."""
    return INT if kind.size < 4 else kind


def common_type(left: IntType, right: IntType) -> IntType:
    """Return the type of the usual arithmetic conversions.

    >>> from tracepoint.source.types import LLONG
    >>> common_type(INT, UINT), common_type(UINT, LLONG)
    (IntType(size=4, is_signed=False), IntType(size=8, is_signed=True))
    """
    left, right = promote(left), promote(right)
    if left.size != right.size:
        return left if left.size > right.size else right
    return left if not left.is_signed else right


def number_type(value: int, suffix: str = "", *, is_decimal: bool = True, long_size: int = 8) -> IntType:
    """Return the type of an integer constant, as C11 6.4.4.1 orders the candidates."""
    least = 8 if "ll" in suffix else long_size if "l" in suffix else 4
    only_unsigned = "u" in suffix
    for size in (4, 8):
        if size < least:
            continue
        bits = 8 * size
        if not only_unsigned and value < 1 << (bits - 1):
            return IntType(size, is_signed=True)
        if (only_unsigned or not is_decimal) and value < 1 << bits:
            return IntType(size, is_signed=False)
    return ULLONG


def divide(left: int, right: int) -> int:
    """Divide as C does, towards zero; raises ZeroDivisionError."""
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def remainder(left: int, right: int) -> int:
    """Return the remainder with the sign of the dividend; raises ZeroDivisionError."""
    return left - right * divide(left, right)


_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": divide,
    "%": remainder,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "<": lambda a, b: int(a < b),
    ">": lambda a, b: int(a > b),
    "<=": lambda a, b: int(a <= b),
    ">=": lambda a, b: int(a >= b),
}
COMPARISONS = frozenset({"==", "!=", "<", ">", "<=", ">="})


class Conversions(NamedTuple):
    """The types that C converts the operands of a binary operator to, and that of what it gives."""

    left: IntType
    right: IntType
    result: IntType


def conversions(op: str, left: IntType, right: IntType) -> Conversions:
    """Return what C does to two integers before it computes `left op right` (C11 6.3.1.8, 6.5.7).

    The amount of a shift keeps its type: promotion would not change its value.

    >>> from tracepoint.source.types import UCHAR
    >>> [kind.size for kind in conversions("<<", UCHAR, ULLONG)]
    [4, 8, 4]
    """
    if op in ("<<", ">>"):
        kind = promote(left)
        return Conversions(kind, right, kind)
    kind = common_type(left, right)
    return Conversions(kind, kind, INT if op in COMPARISONS or op in ("&&", "||") else kind)


def unary_value(op: str, value: int, kind: IntType) -> int:
    """Compute `+`, `-` or `~` of a value of a type, in the type that it is promoted to.

    >>> from tracepoint.source.types import UCHAR
    >>> unary_value("~", 1, UCHAR), unary_value("-", 1, UINT)
    (-2, 4294967295)
    """
    return promote(kind).wrap({"-": -value, "~": ~value}.get(op, value))


def binary_value(op: str, left: int, left_type: IntType, right: int, right_type: IntType) -> int:
    """Compute `left op right` for values that fit their types.

    A shift by the width or more counts modulo the width, as x86 does.  Raises
    ZeroDivisionError for a division by zero, KeyError for an operator of other kind.

    >>> binary_value("-", 1, UINT, 2, UINT)
    4294967295
    """
    # As `conversions`, written out: compiled assignments compute with this.
    if op in ("<<", ">>"):
        kind = promote(left_type)
        amount = right & (8 * kind.size - 1)
        return kind.wrap(left << amount if op == "<<" else left >> amount)
    kind = common_type(left_type, right_type)
    value = _OPERATORS[op](kind.wrap(left), kind.wrap(right))
    return value if op in COMPARISONS else kind.wrap(value)
