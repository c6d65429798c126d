"""The macros of TP_printk: `__print_flags`, `__print_symbolic`, `__get_str` and their like.

Each entry of `MACROS` lowers one call.  Meanings are those of
include/trace/stages/stage3_trace_output.h and kernel/trace/trace_output.c.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.printk import ops
from tracepoint.printk.operators import converted
from tracepoint.printk.values import (
    CHAR_TYPE,
    VOID_TYPE,
    IntValue,
    MemoryValue,
    TextValue,
    Value,
    place_of,
    text_of,
)
from tracepoint.record.field import LOCATION_SIZE, location_origin
from tracepoint.source import ast
from tracepoint.source.ctype import CType
from tracepoint.source.types import INT, UINT, ULLONG, IntType

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.layout.format import FieldFormat
    from tracepoint.printk.expressions import Lowering

    Macro = Callable[[Lowering, ast.Call], Value]

_NS_PER_S = 1_000_000_000


def _field(lowering: Lowering, call: ast.Call) -> FieldFormat | None:
    argument = call.arguments[0] if call.arguments else None
    if isinstance(argument, ast.Name) and argument.name in lowering.form:
        return lowering.form[argument.name]
    return None


def _lacking(lowering: Lowering, call: ast.Call) -> IntValue:
    return lowering.unknown(f"{call.name}() of a field that the record lacks")


def _dynamic(lowering: Lowering, call: ast.Call, ctype: CType) -> MemoryValue | None:
    """Lower the address of a dynamic field's data; None when the record has no such field."""
    field = _field(lowering, call)
    if field is None:
        return None
    origin = location_origin(field) or (field.offset + LOCATION_SIZE if "rel_" in call.name else 0)
    return MemoryValue(ctype, ops.WordPlace(lowering.word(field).op, origin))


def _length(lowering: Lowering, call: ast.Call) -> ops.NumberOp | None:
    """Lower the bytes of a dynamic field; None when the record has no such field."""
    field = _field(lowering, call)
    if field is None:
        return None
    return ops.Binary(">>", lowering.word(field).op, ops.Const(16), UINT)


def get_str(lowering: Lowering, call: ast.Call) -> Value:
    """`__get_str(name)`: the string of a dynamic field."""
    return _dynamic(lowering, call, CHAR_TYPE) or _lacking(lowering, call)


def get_dynamic_array(lowering: Lowering, call: ast.Call) -> Value:
    """`__get_dynamic_array(name)`: its first element, as `void *`."""
    return _dynamic(lowering, call, VOID_TYPE) or _lacking(lowering, call)


def get_sockaddr(lowering: Lowering, call: ast.Call) -> Value:
    """`__get_sockaddr(name)`: a `struct sockaddr *`."""
    return _dynamic(lowering, call, CType("struct sockaddr")) or _lacking(lowering, call)


def get_length(lowering: Lowering, call: ast.Call) -> Value:
    """`__get_dynamic_array_len(name)`: bytes of a dynamic field."""
    length = _length(lowering, call)
    return _lacking(lowering, call) if length is None else IntValue(INT, length)


def get_bitmask(lowering: Lowering, call: ast.Call) -> Value:
    """`__get_bitmask(name)`: the bits as hex words of 32."""
    where, length = _dynamic(lowering, call, VOID_TYPE), _length(lowering, call)
    if where is None or length is None:
        return _lacking(lowering, call)
    return TextValue(ops.Bitmap(where.op, length, ops.Binary("*", length, ops.Const(8), UINT)))


def get_buffer(lowering: Lowering, call: ast.Call) -> Value:
    """`__get_buf(size)`: scratch space that a print function fills; its content is not known."""
    return lowering.unknown(f"{call.name}(), which a kernel function fills")


# -- tables ---------------------------------------------------------------------------------


def _table(lowering: Lowering, items: tuple[ast.Node, ...], kind: IntType) -> ops.Table | None:
    """Lower `{ value, "name" }, ...`; a NULL name ends the table as it ends the kernel's loop."""
    pairs: list[tuple[ops.NumberOp, ops.TextOp]] = []
    for item in items:
        if not isinstance(item, ast.InitList) or len(item.items) > 2:
            return None
        values = [n.value if isinstance(n, ast.Assign) and n.op == "=" else n for n in item.items]
        if len(values) < 2 or _is_null(values[1]):
            break
        pairs.append((_as(lowering, values[0], kind), text_of(lowering.value(values[1]))))
    return tuple(pairs)


def _is_null(node: ast.Node) -> bool:
    while isinstance(node, ast.Cast):
        node = node.operand
    return node in (ast.Name("NULL"), ast.Number(0))


def _mask_kind(lowering: Lowering, call: ast.Call) -> IntType:
    return ULLONG if call.name.endswith("_u64") else lowering.ulong


def print_flags(lowering: Lowering, call: ast.Call) -> Value:
    """`__print_flags(flags, delimiter, {mask, name}...)`."""
    if len(call.arguments) < 2:
        return lowering.unknown(f"{call.name}() with too few arguments")
    kind = _mask_kind(lowering, call)
    flags = _as(lowering, call.arguments[0], kind)
    delimiter = None if _is_null(call.arguments[1]) else text_of(lowering.value(call.arguments[1]))
    table = _table(lowering, call.arguments[2:], kind)
    if table is None:
        return lowering.unknown(f"the table of {call.name}()")

    return TextValue(ops.Flags(flags, delimiter, table))


def _as(lowering: Lowering, node: ast.Node, kind: IntType) -> ops.NumberOp:
    return converted(lowering.integer(node), kind).op


def print_symbolic(lowering: Lowering, call: ast.Call) -> Value:
    """`__print_symbolic(value, {value, name}...)`: the first that is equal, else hex."""
    if not call.arguments:
        return lowering.unknown(f"{call.name}() with too few arguments")
    kind = _mask_kind(lowering, call)
    value = _as(lowering, call.arguments[0], kind)
    table = _table(lowering, call.arguments[1:], kind)
    if table is None:
        return lowering.unknown(f"the table of {call.name}()")
    return TextValue(ops.Symbolic(value, table))


# -- bytes ----------------------------------------------------------------------------------


def print_hex(lowering: Lowering, call: ast.Call) -> Value:
    """`__print_hex(buffer, length)`, `__print_hex_str`: groups of sixteen follow without a space."""
    if len(call.arguments) != 2:
        return lowering.unknown(f"{call.name}() with other than 2 arguments")
    place = place_of(lowering.value(call.arguments[0]))
    length = _as(lowering, call.arguments[1], INT)
    is_packed = call.name == "__print_hex_str"
    return TextValue(ops.Hex(place, length, "") if is_packed else ops.Hex(place, length, " ", 16))


def print_array(lowering: Lowering, call: ast.Call) -> Value:
    """`__print_array(array, count, element_size)`."""
    if len(call.arguments) != 3:
        return lowering.unknown(f"{call.name}() with other than 3 arguments")
    place = place_of(lowering.value(call.arguments[0]))
    count = _as(lowering, call.arguments[1], INT)
    size = lowering.integer(call.arguments[2])
    return _array(lowering, place, count, size)


def print_dynamic_array(lowering: Lowering, call: ast.Call) -> Value:
    """`__print_dynamic_array(name, element_size)`."""
    if len(call.arguments) != 2:
        return lowering.unknown(f"{call.name}() with other than 2 arguments")
    where, length = _dynamic(lowering, call, VOID_TYPE), _length(lowering, call)
    size = lowering.integer(call.arguments[1])
    if where is None or length is None:
        return _lacking(lowering, call)
    if not size.constant:
        return lowering.unknown(f"the element size of {call.name}()")
    count = ops.Binary("/", length, ops.Const(size.constant), INT)
    return _array(lowering, where.op, count, size)


def _array(lowering: Lowering, place: ops.PlaceOp, count: ops.NumberOp, size: IntValue) -> Value:
    if size.constant not in (1, 2, 4, 8):
        return lowering.unknown("an array with elements of another size than 1, 2, 4, 8")
    return TextValue(ops.Numbers(place, count, size.constant))


def print_hex_dump(lowering: Lowering, call: ast.Call) -> Value:
    """`__print_hex_dump(prefix, type, rowsize, groupsize, buffer, length, ascii)`."""
    if len(call.arguments) != 7:
        return lowering.unknown(f"{call.name}() with other than 7 arguments")
    prefix_node, kind, row, group, where, length, has_ascii = call.arguments
    prefix = text_of(lowering.value(prefix_node))
    prefix_type = _prefix_type(lowering, kind)
    row_size, group_size, wants_ascii = (_as(lowering, node, INT) for node in (row, group, has_ascii))
    place, size = place_of(lowering.value(where)), _as(lowering, length, INT)
    is_big = ops.Const(int(lowering.machine.is_big_endian))
    arguments = (prefix, prefix_type, row_size, group_size, place, size, wants_ascii, is_big)
    return TextValue(ops.Call("hex_dump", arguments))


_PREFIX_TYPES = {"DUMP_PREFIX_NONE": 0, "DUMP_PREFIX_ADDRESS": 1, "DUMP_PREFIX_OFFSET": 2}


def _prefix_type(lowering: Lowering, node: ast.Node) -> ops.NumberOp:
    if isinstance(node, ast.Name) and node.name in _PREFIX_TYPES:
        return ops.Const(_PREFIX_TYPES[node.name])
    return _as(lowering, node, INT)


# -- numbers --------------------------------------------------------------------------------


def print_ns_to_secs(lowering: Lowering, call: ast.Call) -> Value:
    """`__print_ns_to_secs(ns)`: whole seconds, as u64."""
    value = _as(lowering, call.arguments[0], ULLONG)
    return IntValue(ULLONG, ops.Binary("/", value, ops.Const(_NS_PER_S), ULLONG))


def print_ns_without_secs(lowering: Lowering, call: ast.Call) -> Value:
    """`__print_ns_without_secs(ns)`: the nanoseconds that remain, as u32."""
    value = _as(lowering, call.arguments[0], ULLONG)
    return IntValue(UINT, ops.Binary("%", value, ops.Const(_NS_PER_S), ULLONG))


_HARDIRQ, _SOFTIRQ, _NMI = 0x08, 0x10, 0x40
_CONTEXTS = {
    "__event_in_hardirq": _HARDIRQ,
    "__event_in_softirq": _SOFTIRQ,
    "__event_in_irq": _HARDIRQ | _SOFTIRQ,
    "__event_in_nmi": _NMI,
}


def event_context(lowering: Lowering, call: ast.Call) -> Value:
    """`__event_in_irq()` and its like: bits of `common_flags` (Linux 7.2)."""
    if "common_flags" not in lowering.form:
        return lowering.unknown("common_flags, which the record lacks")
    flags = converted(lowering.as_integer(lowering.field(lowering.form["common_flags"])), INT).op
    mask = ops.Const(_CONTEXTS[call.name])
    return IntValue(INT, ops.Not(ops.Not(ops.Binary("&", flags, mask, INT))))


MACROS: dict[str, Macro] = {
    "__print_flags": print_flags,
    "__print_flags_u64": print_flags,
    "__print_symbolic": print_symbolic,
    "__print_symbolic_u64": print_symbolic,
    "__print_hex": print_hex,
    "__print_hex_str": print_hex,
    "__print_hex_dump": print_hex_dump,
    "__print_array": print_array,
    "__print_dynamic_array": print_dynamic_array,
    "__print_ns_to_secs": print_ns_to_secs,
    "__print_ns_without_secs": print_ns_without_secs,
    "__get_buf": get_buffer,
    "__get_sockaddr": get_sockaddr,
    "__get_rel_sockaddr": get_sockaddr,
    "__get_str": get_str,
    "__get_rel_str": get_str,
    "__get_dynamic_array": get_dynamic_array,
    "__get_rel_dynamic_array": get_dynamic_array,
    "__get_dynamic_array_len": get_length,
    "__get_rel_dynamic_array_len": get_length,
    "__get_bitmask": get_bitmask,
    "__get_cpumask": get_bitmask,
    "__get_rel_bitmask": get_bitmask,
    "__get_rel_cpumask": get_bitmask,
    **dict.fromkeys(_CONTEXTS, event_context),
}
