"""Kernel functions that are arithmetic: computed, so that their arguments are the inputs.

Sources: include/linux/{minmax,kdev_t,math,math64,byteorder/generic,err,jiffies,log2,bits,kernel}.h.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tracepoint.assign.values import CannotFollowError, Int, Outside, Pointer, Slot, Value, Want
from tracepoint.source import ast
from tracepoint.source.cvalue import (
    INT,
    LLONG,
    UINT,
    ULLONG,
    USHORT,
    IntType,
    common_type,
    divide,
    int_type_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.assign.expressions import Evaluator, Handler

MAX_ERRNO = 4095


def _arguments(node: ast.Call, count: int) -> tuple[ast.Node, ...]:
    if len(node.arguments) != count:
        raise CannotFollowError(f"{node.name}() with {len(node.arguments)} arguments instead of {count}")
    return node.arguments


def _extreme(choose: Callable[[int, int], int]) -> Handler:
    def handler(machine: Evaluator, node: ast.Call, want: Want) -> Value:
        first, second = _arguments(node, 2)
        return _pick(machine.integer(first, want), machine.integer(second, want), choose)

    return handler


def _as_int(want: Want, kind: IntType | None, *, is_swapped: bool = False) -> Want:
    """Want an integer of a type, still as a length or an index if that is its use."""
    role = want.role if want.role in ("length", "index") else "int"
    return replace(want, kind=kind, role=role, is_swapped=is_swapped)


def _pick(a: Int, b: Int, choose: Callable[[int, int], int]) -> Int:
    kind = common_type(a.kind, b.kind)
    return Int(choose(kind.wrap(a.value), kind.wrap(b.value)), kind)


def _typed_extreme(choose: Callable[[int, int], int]) -> Handler:
    def handler(machine: Evaluator, node: ast.Call, want: Want) -> Value:
        type_node, first, second = _arguments(node, 3)
        text = type_node.name if isinstance(type_node, ast.Name) else ""
        if isinstance(type_node, ast.TypeName):
            text = str(type_node.ctype)
        kind = int_type_of(text, machine.shapes.long_size) if text else None
        if kind is None:
            raise CannotFollowError(f"{node.name}() over a type that is not known")
        typed = _as_int(want, kind)
        a, b = machine.integer(first, typed), machine.integer(second, typed)
        return Int(choose(kind.wrap(a.value), kind.wrap(b.value)), kind)

    return handler


def _clamp(machine: Evaluator, node: ast.Call, want: Want) -> Value:
    value, low, high = (machine.integer(a, want) for a in _arguments(node, 3))
    return _pick(_pick(value, low, max), high, min)


def _unsigned_swap(size: int, *, is_big: bool) -> Handler:
    """Convert between the machine's order and the named one; both directions are the same."""

    def handler(machine: Evaluator, node: ast.Call, want: Want) -> Value:
        kind = IntType(size, is_signed=False)
        swaps = machine.inputs.layout.is_big_endian != is_big
        inner = machine.integer(_arguments(node, 1)[0], _as_int(want, kind, is_swapped=swaps))
        raw = kind.wrap(inner.value).to_bytes(size, "little")
        return Int(int.from_bytes(raw, "big") if swaps else kind.wrap(inner.value), kind)

    return handler


def _pointer_swap(size: int, *, is_big: bool) -> Handler:
    def handler(machine: Evaluator, node: ast.Call, want: Want) -> Value:
        kind = IntType(size, is_signed=False)
        swaps = machine.inputs.layout.is_big_endian != is_big
        found = machine.value(_arguments(node, 1)[0], Want(role="pointer"))
        if isinstance(found, Outside):
            pointed = Outside(_pointed(found.node))
            value = machine.input_int(pointed, _as_int(want, kind, is_swapped=swaps)).value
            raw = kind.wrap(value).to_bytes(size, "big" if machine.inputs.layout.is_big_endian else "little")
        else:
            raw = machine.as_bytes(found, size, want)
        return Int(int.from_bytes(raw, "big" if is_big else "little"), kind)

    return handler


def _pointed(node: ast.Node) -> ast.Node:
    """Return what a pointer expression points to: `x` for `&x`."""
    return node.operand if isinstance(node, ast.Unary) and node.op == "&" else ast.Unary("*", node)


def _swab(size: int) -> Handler:
    def handler(machine: Evaluator, node: ast.Call, want: Want) -> Value:
        kind = IntType(size, is_signed=False)
        inner = machine.integer(_arguments(node, 1)[0], _as_int(want, kind, is_swapped=True))
        return Int(int.from_bytes(kind.wrap(inner.value).to_bytes(size, "little"), "big"), kind)

    return handler


def _unary(compute: Callable[[int], int], kind: IntType, argument: IntType | None = None) -> Handler:
    def handler(machine: Evaluator, node: ast.Call, want: Want) -> Value:
        inner = machine.integer(_arguments(node, 1)[0], _as_int(want, argument or want.kind))
        return Int(kind.wrap(compute(argument.wrap(inner.value) if argument else inner.value)), kind)

    return handler


def _binary(compute: Callable[[int, int], int], kind: IntType) -> Handler:
    def handler(machine: Evaluator, node: ast.Call, _want: Want) -> Value:
        first, second = _arguments(node, 2)
        a, b = machine.integer(first, Want(kind)), machine.integer(second, Want(kind))
        try:
            return Int(kind.wrap(compute(a.value, b.value)), kind)
        except ZeroDivisionError:
            raise CannotFollowError(f"{node.name}() divides by zero") from None

    return handler


def _array_size(machine: Evaluator, node: ast.Call, _want: Want) -> Value:
    found = machine.evaluate(_arguments(node, 1)[0])
    if isinstance(found, Slot) and found.shape.element is not None and found.shape.element.size:
        return Int(found.shape.size // found.shape.element.size, machine.shapes.ulong)
    return Outside(machine.canonical(node))


def _is_err(value: int, bits: int) -> bool:
    return value % (1 << bits) >= (1 << bits) - MAX_ERRNO


def _error(machine: Evaluator, node: ast.Call) -> tuple[int, int]:
    inner = machine.integer(_arguments(node, 1)[0], Want(machine.shapes.ulong, "pointer"))
    return inner.value, 8 * machine.shapes.long_size


def _is_err_handler(machine: Evaluator, node: ast.Call, _want: Want) -> Value:
    return Int(int(_is_err(*_error(machine, node))), INT)


def _is_err_or_null(machine: Evaluator, node: ast.Call, _want: Want) -> Value:
    value, bits = _error(machine, node)
    return Int(int(value == 0 or _is_err(value, bits)), INT)


def _ptr_err(machine: Evaluator, node: ast.Call, want: Want) -> Value:
    inner = machine.integer(_arguments(node, 1)[0], _as_int(want, machine.shapes.long))
    return Int(machine.shapes.long.wrap(inner.value), machine.shapes.long)


def _ptr_err_or_zero(machine: Evaluator, node: ast.Call, _want: Want) -> Value:
    value, bits = _error(machine, node)
    return Int(INT.wrap(value) if _is_err(value, bits) else 0, INT)


def _bit(machine: Evaluator, node: ast.Call, _want: Want) -> Value:
    kind = ULLONG if node.name == "BIT_ULL" else machine.shapes.ulong
    return Int(kind.wrap(1 << _shift(machine, _arguments(node, 1)[0])), kind)


def _shift(machine: Evaluator, node: ast.Node) -> int:
    amount = machine.integer(node).value
    if not 0 <= amount < 64:
        raise CannotFollowError(f"a shift by {amount}")
    return amount


def _test_bit(machine: Evaluator, node: ast.Call, _want: Want) -> Value:
    number, where = _arguments(node, 2)
    found = machine.value(where, Want(role="pointer"))
    if isinstance(found, Pointer):
        bit = machine.integer(number).value
        size = machine.shapes.long_size
        word = found.memory.read_int(found.offset + size * (bit // (8 * size)), machine.shapes.ulong)
        return Int(word >> (bit % (8 * size)) & 1, INT)
    return Outside(machine.canonical(node))


def _is_enabled(machine: Evaluator, node: ast.Call, _want: Want) -> Value:
    argument = _arguments(node, 1)[0]
    if isinstance(argument, ast.Number):
        return Int(int(argument.value != 0), INT)
    name = argument.name if isinstance(argument, ast.Name) else ""
    known = machine.inputs.constant(name)
    if known is not None:
        return Int(int(known != 0), INT)
    return Outside(machine.canonical(node))


def _mode(test: int) -> Handler:
    return _unary(lambda mode: int(mode & 0o170000 == test), INT, USHORT)


def _mask(machine: Evaluator, node: ast.Call, _want: Want) -> Value:
    high, low = (_shift(machine, a) for a in _arguments(node, 2))
    if high < low:
        raise CannotFollowError(f"GENMASK({high}, {low})")
    kind = ULLONG if node.name == "GENMASK_ULL" else machine.shapes.ulong
    return Int(kind.wrap((1 << (high + 1)) - (1 << low)), kind)


def _field_get(machine: Evaluator, node: ast.Call, want: Want) -> Value:
    mask, value = _arguments(node, 2)
    bits = machine.integer(mask)
    if bits.value <= 0:
        raise CannotFollowError("FIELD_GET() with an empty mask")
    inner = machine.integer(value, _as_int(want, bits.kind))
    return Int((inner.value & bits.value) // (bits.value & -bits.value), bits.kind)


def _ilog2(value: int) -> int:
    return value.bit_length() - 1 if value > 0 else 0


def _round(value: int, step: int, *, up: bool) -> int:
    if step <= 0:
        raise ZeroDivisionError
    return (value + step - 1 if up else value) // step * step


PURE: dict[str, Handler] = {
    "min": _extreme(min),
    "max": _extreme(max),
    "umin": _extreme(min),
    "umax": _extreme(max),
    "min_t": _typed_extreme(min),
    "max_t": _typed_extreme(max),
    "clamp": _clamp,
    "abs": _unary(abs, LLONG),
    "ntohs": _unsigned_swap(2, is_big=True),
    "htons": _unsigned_swap(2, is_big=True),
    "ntohl": _unsigned_swap(4, is_big=True),
    "htonl": _unsigned_swap(4, is_big=True),
    "MAJOR": _unary(lambda dev: dev >> 20, UINT, UINT),
    "MINOR": _unary(lambda dev: dev & 0xFFFFF, UINT, UINT),
    "MKDEV": _binary(lambda major, minor: major << 20 | minor, UINT),
    "lower_32_bits": _unary(lambda n: n & 0xFFFFFFFF, UINT, ULLONG),
    "upper_32_bits": _unary(lambda n: n >> 32, UINT, ULLONG),
    "lower_16_bits": _unary(lambda n: n & 0xFFFF, USHORT, UINT),
    "upper_16_bits": _unary(lambda n: n >> 16, USHORT, UINT),
    "ilog2": _unary(_ilog2, INT),
    "order_base_2": _unary(lambda n: (n - 1).bit_length() if n > 1 else 0, INT),
    "hweight8": _unary(lambda n: (n & 0xFF).bit_count(), UINT),
    "hweight16": _unary(lambda n: (n & 0xFFFF).bit_count(), UINT),
    "hweight32": _unary(lambda n: (n & 0xFFFFFFFF).bit_count(), UINT),
    "hweight64": _unary(lambda n: (n & 0xFFFFFFFFFFFFFFFF).bit_count(), INT),
    "hweight_long": _unary(lambda n: (n & 0xFFFFFFFFFFFFFFFF).bit_count(), INT),
    "ARRAY_SIZE": _array_size,
    "IS_ERR": _is_err_handler,
    "IS_ERR_VALUE": _is_err_handler,
    "IS_ERR_OR_NULL": _is_err_or_null,
    "PTR_ERR": _ptr_err,
    "PTR_ERR_OR_ZERO": _ptr_err_or_zero,
    "BIT": _bit,
    "BIT_ULL": _bit,
    "GENMASK": _mask,
    "GENMASK_ULL": _mask,
    "FIELD_GET": _field_get,
    "DIV_ROUND_UP": _binary(lambda a, b: -(-a // b), LLONG),
    "round_up": _binary(lambda a, b: _round(a, b, up=True), LLONG),
    "round_down": _binary(lambda a, b: _round(a, b, up=False), LLONG),
    "roundup": _binary(lambda a, b: _round(a, b, up=True), LLONG),
    "ALIGN": _binary(lambda a, b: _round(a, b, up=True), LLONG),
    "div_u64": _binary(lambda a, b: a // b, ULLONG),
    "div64_u64": _binary(lambda a, b: a // b, ULLONG),
    "div64_ul": _binary(lambda a, b: a // b, ULLONG),
    "div_s64": _binary(divide, LLONG),
    "div64_s64": _binary(divide, LLONG),
    "ktime_sub": _binary(lambda a, b: a - b, LLONG),
    "ktime_add": _binary(lambda a, b: a + b, LLONG),
    "ktime_to_ns": _unary(lambda n: n, LLONG, LLONG),
    "ns_to_ktime": _unary(lambda n: n, LLONG, LLONG),
    "ktime_to_us": _unary(lambda n: divide(n, 1000), LLONG, LLONG),
    "ktime_to_ms": _unary(lambda n: divide(n, 1_000_000), LLONG, LLONG),
    "ktime_us_delta": _binary(lambda a, b: divide(a - b, 1000), LLONG),
    "ktime_ms_delta": _binary(lambda a, b: divide(a - b, 1_000_000), LLONG),
    "test_bit": _test_bit,
    "IS_ENABLED": _is_enabled,
    "S_ISDIR": _mode(0o040000),
    "S_ISREG": _mode(0o100000),
    "S_ISLNK": _mode(0o120000),
    "S_ISBLK": _mode(0o060000),
    "S_ISCHR": _mode(0o020000),
    "swab16": _swab(2),
    "swab32": _swab(4),
    "swab64": _swab(8),
}
for _bits in (16, 32, 64):
    for _order, _is_big in (("le", False), ("be", True)):
        _size = _bits // 8
        for _under in ("", "__"):
            PURE[f"{_under}{_order}{_bits}_to_cpu"] = _unsigned_swap(_size, is_big=_is_big)
            PURE[f"{_under}cpu_to_{_order}{_bits}"] = _unsigned_swap(_size, is_big=_is_big)
            PURE[f"{_under}{_order}{_bits}_to_cpup"] = _pointer_swap(_size, is_big=_is_big)
        PURE[f"get_unaligned_{_order}{_bits}"] = _pointer_swap(_size, is_big=_is_big)
