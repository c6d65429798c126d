"""Functions of the kernel that are pure functions of values, and so can be computed here.

`FUNCTIONS` is the registry: byte order, min and max, jiffies, page table values, bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.printk import operators
from tracepoint.printk.decoders import DECODERS
from tracepoint.printk.facts import NO_FACTS, UnknownPartError
from tracepoint.printk.helpers import HELPERS
from tracepoint.printk.values import IntValue, MemoryValue, Record, TextValue, Value, constant
from tracepoint.source import ast
from tracepoint.source.cvalue import INT, LLONG, UINT, ULLONG, USHORT, IntType, common_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.printk.evaluate import Evaluator

_NOTHING = Record(b"", NO_FACTS)
_KINDS = {16: USHORT, 32: UINT, 64: ULLONG}


def _swap(value: IntValue, kind: IntType) -> IntValue:
    read = operators.converted(value, kind).read
    size = kind.size
    result = IntValue(kind, lambda record: int.from_bytes(read(record).to_bytes(size, "little"), "big"))
    return constant(result.read(_NOTHING), kind) if value.constant is not None else result


def _byte_order(kind: IntType, *, is_big: bool | None) -> Callable[[Evaluator, list[Value]], Value]:
    """Make the compiler of a conversion; `is_big` None swaps always."""

    def compile_call(evaluator: Evaluator, arguments: list[Value]) -> Value:
        value = arguments[0]
        if isinstance(value, MemoryValue):
            value = evaluator.scalar(kind, value.read)
        number = evaluator.as_integer(value)
        if is_big is None or is_big != evaluator.is_big_endian:
            return _swap(number, kind)
        return operators.converted(number, kind)

    return compile_call


def _make_byte_orders() -> dict[str, Callable[[Evaluator, list[Value]], Value]]:
    made: dict[str, Callable[[Evaluator, list[Value]], Value]] = {}
    for bits, kind in _KINDS.items():
        for name in (f"__builtin_bswap{bits}", f"__fswab{bits}", f"swab{bits}", f"__swab{bits}",
                     f"__arch_swab{bits}", f"___constant_swab{bits}"):  # fmt: skip
            made[name] = _byte_order(kind, is_big=None)
        for order, is_big in (("be", True), ("le", False)):
            for name in (f"{order}{bits}_to_cpu", f"cpu_to_{order}{bits}"):
                for form in (name, f"__{name}", f"{name}p", f"__{name}p", f"get_unaligned_{order}{bits}"):
                    made[form] = _byte_order(kind, is_big=is_big)
    for name in ("ntohs", "htons", "__be16_to_cpu"):
        made[name] = _byte_order(USHORT, is_big=True)
    for name in ("ntohl", "htonl"):
        made[name] = _byte_order(UINT, is_big=True)
    return made


def _extreme(pick: Callable[[int, int], int]) -> Callable[[Evaluator, list[Value]], Value]:
    def compile_call(evaluator: Evaluator, arguments: list[Value]) -> Value:
        left, right = evaluator.as_integer(arguments[0]), evaluator.as_integer(arguments[1])
        kind = common_type(left.kind, right.kind)
        a, b = operators.converted(left, kind).read, operators.converted(right, kind).read
        return IntValue(kind, lambda record: pick(a(record), b(record)))

    return compile_call


def _absolute(evaluator: Evaluator, arguments: list[Value]) -> Value:
    value = evaluator.as_integer(arguments[0])
    read = value.read
    return IntValue(value.kind, lambda record: abs(read(record)))


def _same(kind: IntType | None) -> Callable[[Evaluator, list[Value]], Value]:
    """Make the compiler of a function that returns its argument, as a type."""

    def compile_call(evaluator: Evaluator, arguments: list[Value]) -> Value:
        if kind is None:
            return arguments[0]
        return operators.converted(evaluator.as_integer(arguments[0]), kind)

    return compile_call


def _constant_p(evaluator: Evaluator, arguments: list[Value]) -> Value:
    # Either answer leads to the same number; the arm for constants is the one made of plain C.
    del evaluator, arguments
    return constant(1, INT)


def _jiffies_to(scale: int, kind: IntType) -> Callable[[Evaluator, list[Value]], Value]:
    def compile_call(evaluator: Evaluator, arguments: list[Value]) -> Value:
        read = operators.converted(evaluator.as_integer(arguments[0]), evaluator.ulong).read
        evaluator.reasons.append("HZ")

        def value(record: Record) -> int:
            hz = record.facts.hz
            if not hz:
                raise UnknownPartError("HZ")
            number = read(record) * scale
            # kernel/time/time.c: jiffies_to_msecs() rounds up where HZ does not divide 1000.
            return kind.wrap(number // hz if scale % hz == 0 else -(-number // hz))

        return IntValue(kind, value)

    return compile_call


def _dev(shift: int, mask: int) -> Callable[[Evaluator, list[Value]], Value]:
    def compile_call(evaluator: Evaluator, arguments: list[Value]) -> Value:
        read = operators.converted(evaluator.as_integer(arguments[0]), UINT).read
        return IntValue(UINT, lambda record: read(record) >> shift & mask)

    return compile_call


def _ilog2(evaluator: Evaluator, arguments: list[Value]) -> Value:
    read = operators.converted(evaluator.as_integer(arguments[0]), ULLONG).read

    def value(record: Record) -> int:
        number = read(record)
        if number == 0:
            raise UnknownPartError("the logarithm of 0")
        return number.bit_length() - 1

    return IntValue(INT, value)


def _bit_count(kind: IntType) -> Callable[[Evaluator, list[Value]], Value]:
    def compile_call(evaluator: Evaluator, arguments: list[Value]) -> Value:
        read = operators.converted(evaluator.as_integer(arguments[0]), kind).read
        return IntValue(UINT, lambda record: read(record).bit_count())

    return compile_call


FUNCTIONS: dict[str, Callable[[Evaluator, list[Value]], Value]] = {
    **_make_byte_orders(),
    "min": _extreme(min),
    "max": _extreme(max),
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
    "hweight_long": _bit_count(ULLONG),
    **dict.fromkeys(
        ("native_make_pte", "native_make_pmd", "native_make_pud", "native_make_pgd", "native_make_p4d",
         "pte_val", "pmd_val", "pud_val", "pgd_val", "p4d_val", "native_pte_val", "native_pmd_val",
         "__pte", "__pmd", "__pud", "__pgd", "pgprot_val"),
        _same(None),
    ),
}  # fmt: skip


def _typed_extreme(evaluator: Evaluator, call: ast.Call) -> Value | None:
    """Compile `min_t(type, a, b)` and `max_t`."""
    if call.name not in ("min_t", "max_t") or len(call.arguments) != 3:
        return None
    first = call.arguments[0]
    kind = evaluator.kind_of(first.ctype) if isinstance(first, ast.TypeName) else None
    if kind is None:
        return evaluator.unknown(f"the type in {call.name}()")
    values = [operators.converted(evaluator.integer(node), kind).read for node in call.arguments[1:]]
    pick = min if call.name == "min_t" else max
    a, b = values
    return IntValue(kind, lambda record: pick(a(record), b(record)))


def compile_call(evaluator: Evaluator, call: ast.Call) -> Value:
    """Compile a call of a helper or of a kernel function whose meaning is known."""
    name = call.name
    helper = HELPERS.get(name)
    if helper is not None:
        if not call.arguments and not name.startswith("__event_in"):
            return _bad(evaluator, name)
        return helper(evaluator, call)
    typed = _typed_extreme(evaluator, call)
    if typed is not None:
        return typed
    if name in DECODERS:
        values = [evaluator.value(node) for node in call.arguments]
        made: Value | None = DECODERS[name](evaluator, values)
        return made if made is not None else _bad(evaluator, name)
    if name not in FUNCTIONS:
        return evaluator.unknown(f"the function {name}()" if name else "a call of an expression")
    return _plain_function(evaluator, call)


def _plain_function(evaluator: Evaluator, call: ast.Call) -> Value:
    name = call.name
    values = [evaluator.value(node) for node in call.arguments]
    wanted = 2 if name in ("min", "max", "__builtin_expect") else 1
    if len(values) != wanted or (name != "__builtin_constant_p" and isinstance(values[0], TextValue)):
        return _bad(evaluator, name)
    return FUNCTIONS[name](evaluator, values)


def _bad(evaluator: Evaluator, name: str) -> IntValue:
    return evaluator.unknown(f"the arguments of {name}()")
