"""The helpers of TP_printk: `__print_flags`, `__print_symbolic`, `__get_str` and their like.

Each entry of `HELPERS` compiles one call.  Meanings are those of
include/trace/stages/stage3_trace_output.h and kernel/trace/trace_output.c.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from tracepoint.printk import addresses
from tracepoint.printk.facts import NO_FACTS, UnknownPartError
from tracepoint.printk.hexdump import hex_dump
from tracepoint.printk.operators import converted
from tracepoint.printk.values import (
    CHAR_TYPE,
    VOID_TYPE,
    IntValue,
    MemoryValue,
    Record,
    TextValue,
    Value,
    memory_of,
    take,
    text_of,
)
from tracepoint.record.field import LOCATION_SIZE, location_origin, unpack_location
from tracepoint.source import ast
from tracepoint.source.ctype import CType
from tracepoint.source.cvalue import INT, UINT, ULLONG, IntType

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.layout.format import FieldFormat
    from tracepoint.printk.evaluate import Evaluator
    from tracepoint.printk.values import Location

    Table = list[tuple[int, str]]
    MakeTable = Callable[["Record"], Table]
    Helper = Callable[[Evaluator, ast.Call], Value]

_NS_PER_S = 1_000_000_000
_MAX_ELEMENTS = 1 << 16


def _field(evaluator: Evaluator, call: ast.Call) -> FieldFormat | None:
    argument = call.arguments[0] if call.arguments else None
    if isinstance(argument, ast.Name) and argument.name in evaluator.form:
        return evaluator.form[argument.name]
    return None


def _dynamic(evaluator: Evaluator, call: ast.Call, ctype: CType) -> Value:
    """Compile the address of a dynamic field's data."""
    field = _field(evaluator, call)
    if field is None:
        return evaluator.unknown(f"{call.name}() of a field that the record lacks")
    word = evaluator.word(field).read
    origin = location_origin(field) or (field.offset + LOCATION_SIZE if "rel_" in call.name else 0)

    def read(record: Record) -> Location:
        return record.data, unpack_location(word(record), origin)[0]

    return MemoryValue(ctype, read)


def get_str(evaluator: Evaluator, call: ast.Call) -> Value:
    """`__get_str(name)`: the string of a dynamic field."""
    return _dynamic(evaluator, call, CHAR_TYPE)


def get_dynamic_array(evaluator: Evaluator, call: ast.Call) -> Value:
    """`__get_dynamic_array(name)`: its first element, as `void *`."""
    return _dynamic(evaluator, call, VOID_TYPE)


def get_sockaddr(evaluator: Evaluator, call: ast.Call) -> Value:
    """`__get_sockaddr(name)`: a `struct sockaddr *`."""
    return _dynamic(evaluator, call, CType("struct sockaddr"))


def get_length(evaluator: Evaluator, call: ast.Call) -> Value:
    """`__get_dynamic_array_len(name)`: bytes of a dynamic field."""
    field = _field(evaluator, call)
    if field is None:
        return evaluator.unknown(f"{call.name}() of a field that the record lacks")
    word = evaluator.word(field).read
    return IntValue(INT, lambda record: unpack_location(word(record))[1])


def get_bitmask(evaluator: Evaluator, call: ast.Call) -> Value:
    """`__get_bitmask(name)`: the bits as hex words of 32."""
    where, length = _dynamic(evaluator, call, VOID_TYPE), get_length(evaluator, call)
    if not isinstance(where, MemoryValue) or not isinstance(length, IntValue):
        return where
    place, size = where.read, length.read
    long_size, is_big_endian = evaluator.long_size, evaluator.is_big_endian

    def read(record: Record) -> str:
        data = take(place(record), size(record))
        n_bits = 8 * len(data)
        number = addresses.bitmap_number(data, n_bits, long_size, is_big_endian=is_big_endian)
        return addresses.bitmap_text(number, n_bits)

    return TextValue(read)


def get_buffer(evaluator: Evaluator, call: ast.Call) -> Value:
    """`__get_buf(size)`: scratch space that a print function fills; its content is not known."""
    return evaluator.unknown(f"{call.name}(), which a kernel function fills")


# -- tables ---------------------------------------------------------------------------------


def _table(evaluator: Evaluator, items: tuple[ast.Node, ...], kind: IntType) -> MakeTable | None:
    """Compile `{ value, "name" }, ...`; a NULL name ends the table as it ends the kernel's loop."""
    pairs: list[tuple[IntValue, Callable[[Record], str | None]]] = []
    for item in items:
        if not isinstance(item, ast.InitList) or len(item.items) > 2:
            return None
        values = [n.value if isinstance(n, ast.Assign) and n.op == "=" else n for n in item.items]
        if len(values) < 2 or _is_null(values[1]):
            break
        pairs.append((evaluator.integer(values[0]), text_of(evaluator.value(values[1]))))
    if any(mask.constant is None for mask, _ in pairs):
        return lambda record: [(kind.wrap(m.read(record)), n(record) or "") for m, n in pairs]
    record = Record(b"", NO_FACTS)
    try:
        fixed = [(kind.wrap(mask.constant or 0), name(record) or "") for mask, name in pairs]
    except UnknownPartError:
        return lambda record: [(kind.wrap(m.read(record)), n(record) or "") for m, n in pairs]
    return lambda _: fixed


def _is_null(node: ast.Node) -> bool:
    while isinstance(node, ast.Cast):
        node = node.operand
    return node in (ast.Name("NULL"), ast.Number(0))


def _mask_kind(evaluator: Evaluator, call: ast.Call) -> IntType:
    return ULLONG if call.name.endswith("_u64") else evaluator.ulong


def print_flags(evaluator: Evaluator, call: ast.Call) -> Value:
    """`__print_flags(flags, delimiter, {mask, name}...)`."""
    if len(call.arguments) < 2:
        return evaluator.unknown(f"{call.name}() with too few arguments")
    kind = _mask_kind(evaluator, call)
    flags = _as(evaluator, call.arguments[0], kind)
    is_null = _is_null(call.arguments[1])
    delimiter = text_of(evaluator.value(call.arguments[1]))
    table = _table(evaluator, call.arguments[2:], kind)
    if table is None:
        return evaluator.unknown(f"the table of {call.name}()")

    def read(record: Record) -> str:
        left = flags(record)
        names = []
        for mask, name in table(record):
            if not left:
                break
            if left & mask == mask:
                names.append(name)
                left &= ~mask
        if left:
            names.append(f"0x{left:x}")
        return ("" if is_null else delimiter(record) or "").join(names)

    return TextValue(read)


def _as(evaluator: Evaluator, node: ast.Node, kind: IntType) -> Callable[[Record], int]:
    return converted(evaluator.integer(node), kind).read


def print_symbolic(evaluator: Evaluator, call: ast.Call) -> Value:
    """`__print_symbolic(value, {value, name}...)`: the first that is equal, else hex."""
    if not call.arguments:
        return evaluator.unknown(f"{call.name}() with too few arguments")
    kind = _mask_kind(evaluator, call)
    value = _as(evaluator, call.arguments[0], kind)
    table = _table(evaluator, call.arguments[1:], kind)
    if table is None:
        return evaluator.unknown(f"the table of {call.name}()")
    known: dict[int, str] | None = None
    try:
        known = dict(reversed(table(Record(b"", NO_FACTS))))
    except (UnknownPartError, struct.error):
        # The table needs the record or the facts: it is read each time.
        known = None

    def read(record: Record) -> str:
        number = value(record)
        names = known if known is not None else dict(reversed(table(record)))
        # An empty name prints the number: the kernel looks whether anything was printed.
        return names.get(number) or f"0x{number:x}"

    return TextValue(read)


# -- bytes ----------------------------------------------------------------------------------


def _bytes(evaluator: Evaluator, where: ast.Node, length: ast.Node) -> Callable[[Record], bytes]:
    place = memory_of(evaluator.value(where))
    size = _as(evaluator, length, INT)

    def read(record: Record) -> bytes:
        count = size(record)
        return take(place(record), count) if count > 0 else b""

    return read


def print_hex(evaluator: Evaluator, call: ast.Call) -> Value:
    """`__print_hex(buffer, length)`, `__print_hex_str`: groups of sixteen follow without a space."""
    if len(call.arguments) != 2:
        return evaluator.unknown(f"{call.name}() with other than 2 arguments")
    data = _bytes(evaluator, *call.arguments)
    if call.name == "__print_hex_str":
        return TextValue(lambda record: data(record).hex())

    def read(record: Record) -> str:
        content = data(record)
        return "".join(content[at : at + 16].hex(" ") for at in range(0, len(content), 16))

    return TextValue(read)


def print_array(evaluator: Evaluator, call: ast.Call) -> Value:
    """`__print_array(array, count, element_size)`."""
    if len(call.arguments) != 3:
        return evaluator.unknown(f"{call.name}() with other than 3 arguments")
    place = memory_of(evaluator.value(call.arguments[0]))
    count = _as(evaluator, call.arguments[1], INT)
    size = evaluator.integer(call.arguments[2])
    return _array(evaluator, place, count, size)


def print_dynamic_array(evaluator: Evaluator, call: ast.Call) -> Value:
    """`__print_dynamic_array(name, element_size)`."""
    if len(call.arguments) != 2:
        return evaluator.unknown(f"{call.name}() with other than 2 arguments")
    where, length = _dynamic(evaluator, call, VOID_TYPE), get_length(evaluator, call)
    size = evaluator.integer(call.arguments[1])
    if not isinstance(length, IntValue) or not size.constant:
        return evaluator.unknown(f"the element size of {call.name}()")
    step, total = size.constant, length.read
    return _array(evaluator, memory_of(where), lambda record: total(record) // step, size)


def _array(
    evaluator: Evaluator,
    place: Callable[[Record], Location | None],
    count: Callable[[Record], int],
    size: IntValue,
) -> Value:
    step = size.constant
    if step not in (1, 2, 4, 8):
        return evaluator.unknown("an array with elements of another size than 1, 2, 4, 8")
    order = "big" if evaluator.is_big_endian else "little"

    def read(record: Record) -> str:
        number = count(record)
        if number <= 0:
            return "{}"
        data = take(place(record), min(number, _MAX_ELEMENTS) * step)
        values = (int.from_bytes(data[at : at + step], "big" if order == "big" else "little")
                  for at in range(0, len(data), step))  # fmt: skip
        return "{" + ",".join(f"0x{value:x}" for value in values) + "}"

    return TextValue(read)


def print_hex_dump(evaluator: Evaluator, call: ast.Call) -> Value:
    """`__print_hex_dump(prefix, type, rowsize, groupsize, buffer, length, ascii)`."""
    if len(call.arguments) != 7:
        return evaluator.unknown(f"{call.name}() with other than 7 arguments")
    prefix_node, kind_node, row_node, group_node, where, length, ascii_node = call.arguments
    prefix = text_of(evaluator.value(prefix_node))
    prefix_type = _prefix_type(evaluator, kind_node)
    row, group, wants_ascii = (_as(evaluator, node, INT) for node in (row_node, group_node, ascii_node))
    data = _bytes(evaluator, where, length)
    is_big_endian = evaluator.is_big_endian

    def read(record: Record) -> str:
        if prefix_type(record) == 1:
            raise UnknownPartError("the address of a dumped buffer")
        return "\n" + hex_dump(
            data(record),
            prefix=prefix(record) or "",
            has_offset=prefix_type(record) == 2,
            row_size=row(record),
            group_size=group(record),
            has_ascii=bool(wants_ascii(record)),
            is_big_endian=is_big_endian,
        )

    return TextValue(read)


_PREFIX_TYPES = {"DUMP_PREFIX_NONE": 0, "DUMP_PREFIX_ADDRESS": 1, "DUMP_PREFIX_OFFSET": 2}


def _prefix_type(evaluator: Evaluator, node: ast.Node) -> Callable[[Record], int]:
    if isinstance(node, ast.Name) and node.name in _PREFIX_TYPES:
        number = _PREFIX_TYPES[node.name]
        return lambda _: number
    return _as(evaluator, node, INT)


# -- numbers --------------------------------------------------------------------------------


def print_ns_to_secs(evaluator: Evaluator, call: ast.Call) -> Value:
    """`__print_ns_to_secs(ns)`: whole seconds, as u64."""
    value = _as(evaluator, call.arguments[0], ULLONG)
    return IntValue(ULLONG, lambda record: value(record) // _NS_PER_S)


def print_ns_without_secs(evaluator: Evaluator, call: ast.Call) -> Value:
    """`__print_ns_without_secs(ns)`: the nanoseconds that remain, as u32."""
    value = _as(evaluator, call.arguments[0], ULLONG)
    return IntValue(UINT, lambda record: value(record) % _NS_PER_S)


_HARDIRQ, _SOFTIRQ, _NMI = 0x08, 0x10, 0x40
_CONTEXTS = {
    "__event_in_hardirq": _HARDIRQ,
    "__event_in_softirq": _SOFTIRQ,
    "__event_in_irq": _HARDIRQ | _SOFTIRQ,
    "__event_in_nmi": _NMI,
}


def event_context(evaluator: Evaluator, call: ast.Call) -> Value:
    """`__event_in_irq()` and its like: bits of `common_flags` (Linux 7.2)."""
    if "common_flags" not in evaluator.form:
        return evaluator.unknown("common_flags, which the record lacks")
    mask = _CONTEXTS[call.name]
    flags = evaluator.as_integer(evaluator.field(evaluator.form["common_flags"])).read
    return IntValue(INT, lambda record: int(bool(flags(record) & mask)))


HELPERS: dict[str, Helper] = {
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
