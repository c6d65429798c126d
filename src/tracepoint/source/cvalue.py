"""C integers: widths, signs, conversions and operators, and constant expressions.

`printk` and `assign` compute with these, so that a value wraps, promotes and compares as it
does in the kernel.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tracepoint.errors import SourceError
from tracepoint.source import ast
from tracepoint.source.cexpr import parse_expression
from tracepoint.source.ctype import CType, parse_ctype
from tracepoint.source.types import INT, LLONG, UINT, ULLONG, USHORT, IntType, int_type_named

if TYPE_CHECKING:
    from collections.abc import Callable

    Lookup = Callable[[str], int | None]
    SizeOf = Callable[[CType], int | None]
    Place = Callable[[ast.Node], tuple[int, CType] | None]


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


def binary_type(op: str, left: IntType, right: IntType) -> IntType:
    """Return the type of a binary operation's value."""
    if op in COMPARISONS or op in ("&&", "||"):
        return INT
    return promote(left) if op in ("<<", ">>") else common_type(left, right)


def binary_value(op: str, left: int, left_type: IntType, right: int, right_type: IntType) -> int:
    """Compute `left op right` for values that fit their types.

    A shift by the width or more counts modulo the width, as x86 does.  Raises
    ZeroDivisionError for a division by zero, KeyError for an operator of other kind.

    >>> binary_value("-", 1, UINT, 2, UINT)
    4294967295
    """
    if op in ("<<", ">>"):
        kind = promote(left_type)
        amount = right & (8 * kind.size - 1)
        return kind.wrap(left << amount if op == "<<" else left >> amount)
    kind = common_type(left_type, right_type)
    value = _OPERATORS[op](kind.wrap(left), kind.wrap(right))
    return value if op in COMPARISONS else kind.wrap(value)


Typed = tuple[int, IntType]


_SWAPS = {"__builtin_bswap16": USHORT, "__builtin_bswap32": UINT, "__builtin_bswap64": ULLONG}


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


class _Constant:
    """Evaluates constant expressions; a method returns None when something is not constant."""

    def __init__(self, lookup: Lookup, sizeof: SizeOf | None, long_size: int, place: Place | None) -> None:
        self.lookup = lookup
        self.sizeof = sizeof
        self.place = place
        self.long_size = long_size

    def value(self, node: ast.Node) -> Typed | None:  # noqa: C901  one case a kind of node
        match node:
            case ast.Number(value=value, suffix=suffix, is_decimal=is_decimal):
                kind = number_type(value, suffix, is_decimal=is_decimal, long_size=self.long_size)
                return kind.wrap(value), kind
            case ast.Char(value=value):
                return value, INT
            case ast.Name(name=name):
                found = self.lookup(name)
                return None if found is None else (found, self.kind_of_name(found))
            case ast.Unary(op=op, operand=operand):
                return self.unary(op, operand)
            case ast.Binary(op=op, left=left, right=right):
                return self.binary(op, left, right)
            case ast.Ternary():
                return self.ternary(node)
            case ast.Cast(ctype=ctype, operand=operand):
                return self.cast(ctype, operand)
            case ast.SizeOf(op="sizeof"):
                size = self.size_of_operand(node)
                return None if size is None else (size, IntType(self.long_size, is_signed=False))
            case ast.Comma(right=right):
                return self.value(right)
            case ast.Call():
                return self.call(node)
        return None

    def kind_of_name(self, value: int) -> IntType:
        if -(1 << 31) <= value < 1 << 31:
            return INT
        if 0 <= value < 1 << 32:
            return UINT
        return LLONG if value < 1 << 63 else ULLONG

    def size_of_operand(self, node: ast.SizeOf) -> int | None:
        if node.ctype is not None:
            return self.size(node.ctype)
        match node.operand:
            case ast.String(pieces=(), value=text):
                return len(text) + 1
            case ast.Node() if self.place is not None and (found := self.place(node.operand)) is not None:
                return self.size(found[1])
        return None

    def size(self, ctype: CType) -> int | None:
        if is_build_check(ctype):
            return 0
        if self.sizeof is not None and (found := self.sizeof(ctype)) is not None:
            return found
        kind = int_type_of(ctype, self.long_size)
        return kind.size if kind else None

    def unary(self, op: str, operand: ast.Node) -> Typed | None:
        inner = self.value(operand)
        if inner is None:
            return None
        value, kind = inner[0], promote(inner[1])
        match op:
            case "+":
                return value, kind
            case "-":
                return kind.wrap(-value), kind
            case "~":
                return kind.wrap(~value), kind
            case "!":
                return int(not value), INT
        return None

    def binary(self, op: str, left: ast.Node, right: ast.Node) -> Typed | None:
        a = self.value(left)
        if a is None:
            return None
        if (op == "&&" and not a[0]) or (op == "||" and a[0]):
            return int(op == "||"), INT
        b = self.value(right)
        if b is None:
            return None
        if op in ("&&", "||"):
            return int(bool(b[0])), INT
        try:
            return binary_value(op, *a, *b), binary_type(op, a[1], b[1])
        except (ZeroDivisionError, KeyError):
            return None

    def ternary(self, node: ast.Ternary) -> Typed | None:
        condition = self.value(node.condition)
        if condition is None:
            return None
        then = self.value(node.then) if node.then is not None else condition
        otherwise = self.value(node.otherwise)
        chosen = then if condition[0] else otherwise
        if chosen is None:
            return None
        # Both arms decide the type, if both are known.
        kind = common_type(then[1], otherwise[1]) if then and otherwise else promote(chosen[1])
        return kind.wrap(chosen[0]), kind

    def cast(self, ctype: CType, operand: ast.Node) -> Typed | None:
        inner = self.value(operand)
        kind = self.kind_of_typeof(ctype) or int_type_of(ctype, self.long_size)
        if inner is None or kind is None:
            return None
        return (int(bool(inner[0])) if ctype.base == "bool" else kind.wrap(inner[0])), kind

    def kind_of_typeof(self, ctype: CType) -> IntType | None:
        """Return the type of the expression in `typeof(expression)`, as ALIGN() casts to it."""
        if not ctype.base.startswith("typeof(") or ctype.pointers:
            return None
        try:
            found = self.value(parse_expression(ctype.base[7:-1]))
        except SourceError:
            return None
        return found[1] if found is not None else None

    def offset_of(self, struct: ast.Node, member: ast.Node) -> Typed | None:
        if isinstance(struct, ast.Name):
            struct = ast.TypeName(CType(struct.name))
        found = self.place(_below(struct, member)) if self.place is not None else None
        return None if found is None else (found[0], IntType(self.long_size, is_signed=False))

    def call(self, node: ast.Call) -> Typed | None:
        swapped = _SWAPS.get(node.name)
        if swapped is not None and len(node.arguments) == 1:
            inner = self.value(node.arguments[0])
            raw = None if inner is None else swapped.wrap(inner[0]).to_bytes(swapped.size, "little")
            return None if raw is None else (int.from_bytes(raw, "big"), swapped)
        if node.name in ("offsetof", "__builtin_offsetof") and len(node.arguments) == 2:
            return self.offset_of(*node.arguments)
        if node.name in ("BIT", "BIT_ULL") and len(node.arguments) == 1:
            bit = self.value(node.arguments[0])
            kind = ULLONG if node.name == "BIT_ULL" else IntType(self.long_size, is_signed=False)
            return None if bit is None or not 0 <= bit[0] < 64 else (kind.wrap(1 << bit[0]), kind)
        if node.name == "__builtin_constant_p":
            return 1, INT
        if node.name == "ilog2" and len(node.arguments) == 1:
            inner = self.value(node.arguments[0])
            return None if inner is None or inner[0] <= 0 else (inner[0].bit_length() - 1, INT)
        return None


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
    that is not a plain integer, `long_size` is 4 or 8 bytes, `place` says where a member of a struct
    stands (in bytes) and of which type it is.

    >>> from tracepoint.source.cexpr import parse_expression
    >>> constant_value(parse_expression("1u - 2 > 0 ? sizeof(long) * 2 : X"), lambda name: None)
    16
    """
    found = _Constant(lookup, sizeof, long_size, place).value(node)
    return None if found is None else found[0]
