"""What calls mean: arithmetic of the kernel, computed so that its arguments are the inputs, and copies."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tracepoint.assign.copies import COPIES
from tracepoint.assign.stores import as_bytes
from tracepoint.assign.values import CannotFollowError, Int, Outside, Pointer, Slot, Value, Want
from tracepoint.source import ast
from tracepoint.source.cvalue import int_type_of
from tracepoint.source.functions import BYTE_ORDERS, TYPED, PureFunction, pure_functions
from tracepoint.source.types import INT, IntType

if TYPE_CHECKING:
    from tracepoint.assign.machine import Handler, Machine

# What these take is an address, though they compute with it.
_OF_ADDRESSES = frozenset(("IS_ERR", "IS_ERR_VALUE", "IS_ERR_OR_NULL", "PTR_ERR_OR_ZERO"))


def _arguments(node: ast.Call, count: int) -> tuple[ast.Node, ...]:
    if len(node.arguments) != count:
        raise CannotFollowError(f"{node.name}() with {len(node.arguments)} arguments instead of {count}")
    return node.arguments


def _as_int(want: Want, kind: IntType | None, *, is_swapped: bool = False) -> Want:
    """Want an integer of a type, still as a length or an index if that is its use."""
    role = want.role if want.role in ("length", "index") else "int"
    return replace(want, kind=kind, role=role, is_swapped=is_swapped)


def _pure(machine: Machine, node: ast.Call, want: Want) -> Value:
    function = pure_functions(machine.shapes.long_size)[node.name]
    arguments = _arguments(node, len(function.arguments))
    if node.name in _OF_ADDRESSES:
        wants = [Want(machine.shapes.ulong, "pointer")]
    elif len(arguments) > 1 and function.result is not None:
        # No argument alone is what the field holds.
        wants = [Want(kind) for kind in function.arguments]
    else:
        wants = [_as_int(want, kind or want.kind) for kind in function.arguments]
    return _computed(machine, node, function, arguments, wants)


def _computed(
    machine: Machine,
    node: ast.Call,
    function: PureFunction,
    arguments: tuple[ast.Node, ...],
    wants: list[Want],
) -> Value:
    values = [machine.integer(argument, one) for argument, one in zip(arguments, wants, strict=True)]
    try:
        return Int(*function.call(*((value.value, value.kind) for value in values)))
    except ZeroDivisionError:
        raise CannotFollowError(f"{node.name}() divides by zero") from None
    except ArithmeticError as error:
        raise CannotFollowError(f"{node.name}(): {error}") from None


def _typed(machine: Machine, node: ast.Call, want: Want) -> Value:
    """`min_t(type, a, b)` and its like."""
    function = pure_functions()[TYPED[node.name]]
    type_node, *rest = _arguments(node, 1 + len(function.arguments))
    ctype = type_node.ctype if isinstance(type_node, ast.TypeName) else None
    text = str(ctype) if ctype is not None else type_node.name if isinstance(type_node, ast.Name) else ""
    kind = int_type_of(text, machine.shapes.long_size) if text else None
    if kind is None:
        raise CannotFollowError(f"{node.name}() over a type that is not known")
    exact = replace(function, arguments=(kind,) * len(rest), result=kind)
    return _computed(machine, node, exact, tuple(rest), [_as_int(want, kind)] * len(rest))


def _byte_order(machine: Machine, node: ast.Call, want: Want) -> Value:
    order = BYTE_ORDERS[node.name]
    is_big_endian = machine.inputs.layout.is_big_endian
    wanted = _as_int(want, order.kind, is_swapped=order.swaps(is_big_endian=is_big_endian))
    (argument,) = _arguments(node, 1)
    if not order.is_pointer:
        value = machine.integer(argument, wanted).value
    else:
        found = machine.value(argument, Want(role="pointer"))
        if isinstance(found, Outside):
            value = machine.input_int(Outside(_pointed(found.node)), wanted).value
        else:
            raw = as_bytes(machine, found, order.kind.size, want)
            value = int.from_bytes(raw, machine.record.order)
    return Int(order.call(value, is_big_endian=is_big_endian), order.kind)


def _pointed(node: ast.Node) -> ast.Node:
    """Return what a pointer expression points to: `x` for `&x`."""
    return node.operand if isinstance(node, ast.Unary) and node.op == "&" else ast.Unary("*", node)


def _array_size(machine: Machine, node: ast.Call, _want: Want) -> Value:
    found = machine.evaluate(_arguments(node, 1)[0])
    if isinstance(found, Slot) and found.shape.element is not None and found.shape.element.size:
        return Int(found.shape.size // found.shape.element.size, machine.shapes.ulong)
    return Outside(machine.canonical(node))


def _test_bit(machine: Machine, node: ast.Call, _want: Want) -> Value:
    number, where = _arguments(node, 2)
    found = machine.value(where, Want(role="pointer"))
    if isinstance(found, Pointer):
        bit = machine.integer(number).value
        size = machine.shapes.long_size
        word = found.memory.read_int(found.offset + size * (bit // (8 * size)), machine.shapes.ulong)
        return Int(word >> (bit % (8 * size)) & 1, INT)
    return Outside(machine.canonical(node))


def _is_enabled(machine: Machine, node: ast.Call, _want: Want) -> Value:
    argument = _arguments(node, 1)[0]
    name = argument.name if isinstance(argument, ast.Name) else ""
    known = argument.value if isinstance(argument, ast.Number) else machine.inputs.constant(name)
    return Int(int(known != 0), INT) if known is not None else Outside(machine.canonical(node))


def _field_get(machine: Machine, node: ast.Call, want: Want) -> Value:
    mask, value = _arguments(node, 2)
    bits = machine.integer(mask)
    if bits.value <= 0:
        raise CannotFollowError("FIELD_GET() with an empty mask")
    inner = machine.integer(value, _as_int(want, bits.kind))
    return Int((inner.value & bits.value) // (bits.value & -bits.value), bits.kind)


FUNCTIONS: dict[str, Handler] = {
    **dict.fromkeys(pure_functions(), _pure),
    **dict.fromkeys(TYPED, _typed),
    **dict.fromkeys(BYTE_ORDERS, _byte_order),
    "ARRAY_SIZE": _array_size,
    "test_bit": _test_bit,
    "IS_ENABLED": _is_enabled,
    "FIELD_GET": _field_get,
    **COPIES,
}
