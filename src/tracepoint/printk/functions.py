"""Functions of the kernel that are pure functions of values, and so can be computed here.

`FUNCTIONS` are those that are made of ops: byte order, min and max, jiffies, page table values, bits.  All
others of `source.functions` are one op, which C leaves to the twin.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from tracepoint.printk import operators, ops
from tracepoint.printk.decoders import DECODERS
from tracepoint.printk.macros import MACROS
from tracepoint.printk.values import IntValue, MemoryValue, TextValue, Value, constant
from tracepoint.source import ast
from tracepoint.source.cvalue import common_type
from tracepoint.source.functions import BYTE_ORDERS, ByteOrder, PureFunction, pure_functions
from tracepoint.source.types import INT, LLONG, UINT, ULLONG, IntType

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.printk.expressions import Lowering


def _swap(value: IntValue, kind: IntType) -> IntValue:
    number = operators.converted(value, kind)
    return operators.folded(IntValue(kind, ops.Unary("swap", number.op, kind)), number)


def _byte_order(order: ByteOrder) -> Callable[[Lowering, list[Value]], Value]:
    """Make what lowers a conversion."""

    def lower_call(lowering: Lowering, arguments: list[Value]) -> Value:
        value = arguments[0]
        if isinstance(value, MemoryValue):
            value = IntValue(order.kind, ops.LoadAt(value.op, order.kind))
        number = lowering.as_integer(value)
        if order.swaps(is_big_endian=lowering.machine.is_big_endian):
            return _swap(number, order.kind)
        return operators.converted(number, order.kind)

    return lower_call


def _extreme(op: str) -> Callable[[Lowering, list[Value]], Value]:
    def lower_call(lowering: Lowering, arguments: list[Value]) -> Value:
        left, right = lowering.as_integer(arguments[0]), lowering.as_integer(arguments[1])
        return operators.integers(op, left, right)

    return lower_call


def _absolute(lowering: Lowering, arguments: list[Value]) -> Value:
    value = lowering.as_integer(arguments[0])
    return IntValue(value.kind, ops.Unary("abs", value.op, value.kind))


def _same(kind: IntType | None) -> Callable[[Lowering, list[Value]], Value]:
    """Make what lowers a function that returns its argument, as a type."""

    def lower_call(lowering: Lowering, arguments: list[Value]) -> Value:
        if kind is None:
            return arguments[0]
        return operators.converted(lowering.as_integer(arguments[0]), kind)

    return lower_call


def _constant_p(lowering: Lowering, arguments: list[Value]) -> Value:
    # Either answer leads to the same number; the arm for constants is the one made of plain C.
    del lowering, arguments
    return constant(1, INT)


def _jiffies_to(scale: int, kind: IntType) -> Callable[[Lowering, list[Value]], Value]:
    def lower_call(lowering: Lowering, arguments: list[Value]) -> Value:
        jiffies = operators.converted(lowering.as_integer(arguments[0]), lowering.ulong).op
        lowering.reasons.append("HZ")
        hz = ops.Fact("hz", "HZ", INT, ops.Unknown("HZ"))
        return IntValue(kind, ops.JiffiesTo(jiffies, hz, scale, kind))

    return lower_call


def _dev(shift: int, mask: int) -> Callable[[Lowering, list[Value]], Value]:
    def lower_call(lowering: Lowering, arguments: list[Value]) -> Value:
        number = operators.converted(lowering.as_integer(arguments[0]), UINT).op
        shifted = ops.Binary(">>", number, ops.Const(shift), UINT)
        return IntValue(UINT, ops.Binary("&", shifted, ops.Const(mask), UINT))

    return lower_call


def _ilog2(lowering: Lowering, arguments: list[Value]) -> Value:
    value = lowering.as_integer(arguments[0])
    # include/linux/log2.h: what is no constant counts as u32 or u64, by its size.
    return IntValue(INT, ops.Log2(operators.converted(value, UINT if value.kind.size <= 4 else ULLONG).op))


def _bit_count(kind: IntType | None) -> Callable[[Lowering, list[Value]], Value]:
    def lower_call(lowering: Lowering, arguments: list[Value]) -> Value:
        number = operators.converted(lowering.as_integer(arguments[0]), kind or lowering.ulong).op
        return IntValue(UINT, ops.CountBits(number))

    return lower_call


FUNCTIONS: dict[str, Callable[[Lowering, list[Value]], Value]] = {
    **{name: _byte_order(order) for name, order in BYTE_ORDERS.items()},
    "min": _extreme("min"),
    "max": _extreme("max"),
    "abs": _absolute,
    "__builtin_constant_p": _constant_p,
    "__builtin_expect": _same(None),
    "MAJOR": _dev(20, 0xFFF),
    "MINOR": _dev(0, 0xFFFFF),
    "jiffies_to_msecs": _jiffies_to(1000, UINT),
    "jiffies_to_usecs": _jiffies_to(1_000_000, UINT),
    "ktime_to_ns": _same(LLONG),
    "ilog2": _ilog2,
    "hweight32": _bit_count(UINT),
    "hweight64": _bit_count(ULLONG),
    "hweight_long": _bit_count(None),
    **dict.fromkeys(
        ("native_make_pte", "native_make_pmd", "native_make_pud", "native_make_pgd", "native_make_p4d",
         "pte_val", "pmd_val", "pud_val", "pgd_val", "p4d_val", "native_pte_val", "native_pmd_val",
         "__pte", "__pmd", "__pud", "__pgd", "pgprot_val"),
        _same(None),
    ),
}  # fmt: skip


def _typed_extreme(lowering: Lowering, call: ast.Call) -> Value | None:
    """Lower `min_t(type, a, b)` and `max_t`."""
    if call.name not in ("min_t", "max_t") or len(call.arguments) != 3:
        return None
    first = call.arguments[0]
    kind = lowering.kind_of(first.ctype) if isinstance(first, ast.TypeName) else None
    if kind is None:
        return lowering.unknown(f"the type in {call.name}()")
    a, b = (operators.converted(lowering.integer(node), kind).op for node in call.arguments[1:])
    return IntValue(kind, ops.Binary(call.name.removesuffix("_t"), a, b, kind))


def lower_call(lowering: Lowering, call: ast.Call) -> Value:
    """Lower a call of a macro or of a kernel function whose meaning is known."""
    name = call.name
    macro = MACROS.get(name)
    if macro is not None:
        if not call.arguments and not name.startswith("__event_in"):
            return _bad(lowering, name)
        return macro(lowering, call)
    typed = _typed_extreme(lowering, call)
    if typed is not None:
        return typed
    if name in DECODERS:
        values = [lowering.value(node) for node in call.arguments]
        made: Value | None = DECODERS[name](lowering, values)
        return made if made is not None else _bad(lowering, name)
    if name in FUNCTIONS:
        return _plain_function(lowering, call)
    pure = pure_functions(lowering.long_size).get(name)
    if pure is not None:
        return _pure_function(lowering, call, pure)
    return lowering.unknown(f"the function {name}()" if name else "a call of an expression")


def _plain_function(lowering: Lowering, call: ast.Call) -> Value:
    name = call.name
    values = [lowering.value(node) for node in call.arguments]
    wanted = 2 if name in ("min", "max", "__builtin_expect") else 1
    if len(values) != wanted or (name != "__builtin_constant_p" and isinstance(values[0], TextValue)):
        return _bad(lowering, name)
    return FUNCTIONS[name](lowering, values)


def _pure_function(lowering: Lowering, call: ast.Call, pure: PureFunction) -> Value:
    if len(call.arguments) != len(pure.arguments):
        return _bad(lowering, call.name)
    values = [lowering.integer(node) for node in call.arguments]
    common = reduce(common_type, (value.kind for value in values), INT)
    given = [
        operators.converted(value, want or common) for value, want in zip(values, pure.arguments, strict=True)
    ]
    result = pure.result or common
    op = ops.Apply(call.name, lowering.long_size, tuple(value.op for value in given), result)
    return operators.folded(IntValue(result, op), *given)


def _bad(lowering: Lowering, name: str) -> IntValue:
    return lowering.unknown(f"the arguments of {name}()")
