"""Functions that store: memcpy and its kin, string copies, and the `__assign_*` macros.

Sources: include/trace/stages/stage5_get_offsets.h and stage6_event_callback.h, lib/string.c.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from tracepoint.assign.stores import as_bytes
from tracepoint.assign.values import (
    CannotFollowError,
    Int,
    Outside,
    Pointer,
    Shape,
    Slot,
    Value,
    Want,
    is_value,
)
from tracepoint.model.vocabulary import ADDRESS_GETTERS, LENGTH_GETTERS, TEXT_GETTERS
from tracepoint.source import ast
from tracepoint.source.cexpr import write_expression
from tracepoint.source.types import INT, IntType

if TYPE_CHECKING:
    from tracepoint.assign.machine import Handler, Machine

NULL_STRING = b"(null)"
MAX_WIDTH = 4096
_VOID = Int(0, INT)


def _count(node: ast.Call, *counts: int) -> tuple[ast.Node, ...]:
    if len(node.arguments) not in counts:
        raise CannotFollowError(f"{node.name}() with {len(node.arguments)} arguments")
    return node.arguments


def string_of(machine: Machine, node: ast.Node, field: str) -> bytes | None:
    """Return the C string an expression points to, without its NUL; None for NULL."""
    want = Want(role="string", field=field)
    return _string_value(machine, machine.value(node, want), want)


def _string_value(machine: Machine, found: Value, want: Want) -> bytes | None:
    match found:
        case Pointer(memory=memory, offset=offset):
            return memory.string_at(offset)
        case Int(value=0):
            return None
        case Int(value=value) if value in machine.strings:
            return machine.strings[value]
        case Outside():
            answer = machine.ask(found, want)
            if is_value(answer):
                return _string_value(machine, machine.read(answer), want)
            return _input_string(machine, answer)
    raise CannotFollowError("what is copied here is not a string")


def _input_string(machine: Machine, answer: object) -> bytes | None:
    match answer:
        case str():
            raw = answer.encode("utf-8", "surrogateescape")
        case bytes():
            raw = answer
        case list():
            raw = bytes(v & 0xFF for v in answer)
        case int():
            return None if answer == 0 else machine.strings.get(answer, b"")
        case _:
            raise CannotFollowError("a string that is not known")
    return raw.split(b"\0", 1)[0]


def _pointer(machine: Machine, node: ast.Node) -> Pointer:
    found = machine.value(node, Want(role="pointer"))
    if isinstance(found, Pointer):
        return found
    if isinstance(found, Slot):
        return Pointer(found.memory, found.offset, found.shape)
    raise CannotFollowError(f"{write_expression(node)[:60]} is not in the record")


def _length(machine: Machine, node: ast.Node) -> int:
    if machine.is_exploring:
        _mark_length(machine, node)
    length = machine.integer(node, Want(machine.shapes.ulong, "length")).value
    if not 0 <= length <= 1 << 20:
        raise CannotFollowError(f"a copy of {length} bytes")
    machine.step(length >> 6)
    return length


def _mark_length(machine: Machine, node: ast.Node) -> None:
    """While looking for inputs: remember that an input, or what went into a field, counts bytes."""
    match machine.canonical(node):
        case ast.Member(base=ast.Name(name="__entry"), name=name):
            machine.length_fields.add(name)
        case (ast.Member() | ast.Call() | ast.Name()) as plain:
            machine.attempt(plain, Want(role="length"))


def _memcpy(machine: Machine, node: ast.Call, _want: Want) -> Value:
    target_node, source, length_node = _count(node, 3)
    target = _pointer(machine, target_node)
    length = _length(machine, length_node)
    if not length:
        return target
    room = len(target.memory.data) - target.offset
    if machine.is_exploring:
        length = min(length, max(room, 0))
    elif length > room:
        raise CannotFollowError(f"{length} bytes are copied into {room}")
    field = machine.field_at(target.memory, target.offset)
    want = Want(None, "bytes", field, length, element=max(target.shape.size, 1) if target.shape.kind else 1)
    data = as_bytes(machine, machine.value(source, want), length, want)
    target.memory.write(target.offset, data)
    return target


def _memset(machine: Machine, node: ast.Call, _want: Want) -> Value:
    target_node, byte, length_node = _count(node, 3)
    target = _pointer(machine, target_node)
    target.memory.write(
        target.offset, bytes([machine.integer(byte).value & 0xFF]) * _length(machine, length_node)
    )
    return target


def _room_of(machine: Machine, node: ast.Node, target: Pointer) -> int:
    found = machine.evaluate(node)
    if isinstance(found, Slot) and found.shape.element is not None:
        return found.shape.size
    return len(target.memory.data) - target.offset


def _copy_string(machine: Machine, node: ast.Call, _want: Want) -> Value:
    """strcpy, strncpy, strlcpy, strscpy and strscpy_pad: they differ in the end and in the rest."""
    arguments = _count(node, 2, 3)
    target = _pointer(machine, arguments[0])
    limit = _length(machine, arguments[2]) if len(arguments) == 3 else _room_of(machine, arguments[0], target)
    field = machine.field_at(target.memory, target.offset)
    text = string_of(machine, arguments[1], field)
    if text is None:
        raise CannotFollowError(f"{node.name}() from NULL")
    if limit <= 0:
        return Int(-7, INT)
    name = node.name.removeprefix("__")
    if name == "strcpy":
        data = text + b"\0"
    elif name == "strncpy":
        data = text[:limit].ljust(limit, b"\0")
    else:
        data = text[: limit - 1] + b"\0"
        if name == "strscpy_pad":
            data = data.ljust(limit, b"\0")
    target.memory.write(target.offset, data)
    if name == "strlcpy":
        return Int(len(text), machine.shapes.ulong)
    return Int(-7 if name.startswith("strscpy") and len(text) >= limit else len(text), machine.shapes.long)


def _strlen(machine: Machine, node: ast.Call, _want: Want) -> Value:
    text = string_of(machine, _count(node, 1)[0], "")
    if text is None:
        raise CannotFollowError("strlen() of NULL")
    return Int(len(text), machine.shapes.ulong)


def _strreplace(machine: Machine, node: ast.Call, _want: Want) -> Value:
    where, old, new = _count(node, 3)
    target = _pointer(machine, where)
    text = target.memory.string_at(target.offset)
    old_byte, new_byte = (machine.integer(n).value & 0xFF for n in (old, new))
    target.memory.write(target.offset, text.replace(bytes([old_byte]), bytes([new_byte])))
    return target


_DIRECTIVE = re.compile(r"%(%|(?P<flags>[-0 #+]*)(?P<width>\d*)(?P<length>hh|h|ll|l|z)?(?P<kind>[duxXcs]))")


def _snprintf(machine: Machine, node: ast.Call, _want: Want) -> Value:
    """Plain directives only (d, u, x, c, s); others are named as not followed."""
    arguments = list(node.arguments)
    is_bounded = "n" in node.name.removeprefix("v").replace("printf", "")
    if len(arguments) < 2 + is_bounded:
        raise CannotFollowError(f"{node.name}() with {len(arguments)} arguments")
    target = _pointer(machine, arguments.pop(0))
    limit = _length(machine, arguments.pop(0)) if is_bounded else len(target.memory.data) - target.offset
    template = arguments.pop(0)
    field = machine.field_at(target.memory, target.offset)
    if isinstance(template, ast.String) and not template.pieces and _is_plain(template.value):
        text = _format(machine, template.value, arguments, field)
    else:
        # What the directive prints is an input of its own.
        want = Want(role="string", field=field)
        text = _string_value(machine, Outside(machine.canonical(node)), want) or b""
    if limit > 0:
        target.memory.write(target.offset, text[: limit - 1] + b"\0")
    return Int(len(text), INT)


def _is_plain(template: str) -> bool:
    """Tell whether a format has only directives that `_format` knows."""
    return "%" not in _DIRECTIVE.sub("", template)


def _format(machine: Machine, template: str, arguments: list[ast.Node], field: str) -> bytes:
    out, at, rest = b"", 0, list(arguments)
    for match in _DIRECTIVE.finditer(template):
        out += template[at : match.start()].encode("latin-1", "replace")
        at = match.end()
        if match[1] == "%":
            out += b"%"
            continue
        if not rest:
            raise CannotFollowError("a format with more directives than arguments")
        out += _directive(machine, match, rest.pop(0), field)
    return out + template[at:].encode("latin-1", "replace")


def _directive(machine: Machine, match: re.Match[str], node: ast.Node, field: str) -> bytes:
    flags, width, kind = match["flags"] or "", min(int(match["width"] or 0), MAX_WIDTH), match["kind"]
    if kind == "s":
        text = (string_of(machine, node, field) or NULL_STRING).decode("latin-1")
    else:
        size = {"hh": 1, "h": 2, "l": machine.shapes.long_size, "z": machine.shapes.long_size, "ll": 8}
        integer = IntType(size.get(match["length"] or "", 4), is_signed=kind == "d")
        value = integer.wrap(machine.integer(node, Want(integer)).value)
        text = chr(value & 0xFF) if kind == "c" else format(value, kind if kind in "xX" else "d")
        if "#" in flags and kind in "xX":
            text = f"0{kind}{text}"
    if "-" in flags:
        text = text.ljust(width)
    elif "0" in flags and kind not in "sc":
        text = text.zfill(width)
    return text.rjust(width).encode("latin-1", "replace")


# The record's dynamic members


def _dynamic_name(node: ast.Call) -> str:
    if not node.arguments or not isinstance(node.arguments[0], ast.Name):
        raise CannotFollowError(f"{node.name}() without a field's name")
    return node.arguments[0].name


def _place(machine: Machine, node: ast.Call) -> tuple[str, int, int]:
    name = _dynamic_name(node)
    if name not in machine.dynamic:
        raise CannotFollowError(f"{name} is not a dynamic field of this record")
    return (name, *machine.dynamic[name])


def _get_array(machine: Machine, node: ast.Call, _want: Want) -> Value:
    name, offset, _size = _place(machine, node)
    shape = machine.shapes.of_dynamic(machine.inputs.layout[name])
    if "sockaddr" in node.name:
        shape = Shape(16, name="struct sockaddr")
    return Pointer(machine.record, offset, shape)


def _get_length(machine: Machine, node: ast.Call, _want: Want) -> Value:
    return Int(_place(machine, node)[2], INT)


def _assign_str(machine: Machine, node: ast.Call, _want: Want) -> Value:
    _count(node, 1, 2)
    name, offset, size = _place(machine, node)
    if len(node.arguments) == 2:
        text = string_of(machine, node.arguments[1], name)
    elif name in machine.sources:
        text = machine.sources[name]
    else:
        raise CannotFollowError(f"{name} was declared without a source")
    data = (NULL_STRING if text is None else text) + b"\0"
    if len(data) > size and not machine.is_exploring:
        machine.note(f"{name}: {len(data)} bytes are copied where there is room for {size}: it would overrun")
        data = data[: size - 1] + b"\0"
    machine.record.write(offset, data[:size].ljust(size, b"\0"))
    return _VOID


def _assign_str_len(machine: Machine, node: ast.Call, _want: Want) -> Value:
    _target, source, length_node = _count(node, 3)
    name, offset, size = _place(machine, node)
    length = min(_length(machine, length_node), max(size - 1, 0))
    text = string_of(machine, source, name) or b""
    machine.record.write(offset, text[:length].ljust(length, b"\0") + b"\0")
    return _VOID


def _assign_vstr(machine: Machine, node: ast.Call, _want: Want) -> Value:
    _target, template, *_rest = _count(node, 3)
    name, offset, size = _place(machine, node)
    text = string_of(machine, template, name) or NULL_STRING
    machine.record.write(offset, text[: size - 1].ljust(size, b"\0"))
    return _VOID


def bitmask_bytes(machine: Machine, n_bits: int) -> int:
    """Return the bytes that a mask of `n_bits` takes: whole longs (stage5: __bitmask_size_in_bytes)."""
    size = machine.shapes.long_size
    return (n_bits + 8 * size - 1) // (8 * size) * size


def _assign_mask(machine: Machine, node: ast.Call, _want: Want) -> Value:
    _count(node, 2, 3)
    name, offset, size = _place(machine, node)
    length = size
    if len(node.arguments) == 3:
        length = min(size, bitmask_bytes(machine, _length(machine, node.arguments[2])))
    want = Want(None, "bytes", name, length, element=machine.shapes.long_size)
    data = as_bytes(machine, machine.value(node.arguments[1], want), length, want)
    machine.record.write(offset, data)
    return _VOID


def _assign_sockaddr(machine: Machine, node: ast.Call, _want: Want) -> Value:
    _target, source, length_node = _count(node, 3)
    name, offset, size = _place(machine, node)
    length = min(_length(machine, length_node), size)
    want = Want(None, "bytes", name, length)
    machine.record.write(offset, as_bytes(machine, machine.value(source, want), length, want))
    return _VOID


def _cpumask_bits(machine: Machine, node: ast.Call, want: Want) -> Value:
    return machine.value(_count(node, 1)[0], replace(want, role="pointer"))


def _put_unaligned(size: int, *, is_big: bool | None) -> Handler:
    def handler(machine: Machine, node: ast.Call, _want: Want) -> Value:
        value_node, where = _count(node, 2)
        target = _pointer(machine, where)
        width = size or target.shape.size
        if width not in (1, 2, 4, 8):
            raise CannotFollowError("put_unaligned() of an unknown width")
        kind = IntType(width, is_signed=False)
        field = machine.field_at(target.memory, target.offset)
        value = kind.wrap(machine.integer(value_node, Want(kind, field=field)).value)
        order_big = machine.inputs.layout.is_big_endian if is_big is None else is_big
        target.memory.write(target.offset, value.to_bytes(width, "big" if order_big else "little"))
        return _VOID

    return handler


def _get_unaligned(machine: Machine, node: ast.Call, want: Want) -> Value:
    argument = _count(node, 1)[0]
    return machine.read(machine.evaluate(ast.Unary("*", argument), want))


def _mapped(machine: Machine, node: ast.Call, _want: Want) -> Value:
    """ipv6_addr_set_v4mapped(address, v6): ::ffff:a.b.c.d (include/net/ipv6.h)."""
    address, where = _count(node, 2)
    target = _pointer(machine, where)
    kind = IntType(4, is_signed=False)
    field = machine.field_at(target.memory, target.offset)
    value = machine.integer(address, Want(kind, field=field, is_swapped=True)).value
    raw = (value & 0xFFFFFFFF).to_bytes(4, machine.record.order)
    target.memory.write(target.offset, bytes(10) + b"\xff\xff" + raw)
    return _VOID


COPIES: dict[str, Handler] = {
    "strlen": _strlen,
    **dict.fromkeys(TEXT_GETTERS | ADDRESS_GETTERS, _get_array),
    **dict.fromkeys(LENGTH_GETTERS, _get_length),
    **dict.fromkeys(("memcpy", "memmove", "__builtin_memcpy", "__memcpy", "unsafe_memcpy"), _memcpy),
    **dict.fromkeys(("memset", "__builtin_memset"), _memset),
    **dict.fromkeys(
        ("strcpy", "strncpy", "strlcpy", "strscpy", "strscpy_pad", "__builtin_strncpy", "sized_strscpy"),
        _copy_string,
    ),
    "strreplace": _strreplace,
    **dict.fromkeys(("snprintf", "scnprintf", "sprintf"), _snprintf),
    **dict.fromkeys(("__assign_str", "__assign_rel_str"), _assign_str),
    **dict.fromkeys(("__assign_str_len", "__assign_rel_str_len"), _assign_str_len),
    "__assign_vstr": _assign_vstr,
    **dict.fromkeys(
        ("__assign_bitmask", "__assign_rel_bitmask", "__assign_cpumask", "__assign_rel_cpumask"), _assign_mask
    ),
    **dict.fromkeys(("__assign_sockaddr", "__assign_rel_sockaddr"), _assign_sockaddr),
    "cpumask_bits": _cpumask_bits,
    "put_unaligned": _put_unaligned(0, is_big=None),
    "get_unaligned": _get_unaligned,
    "ipv6_addr_set_v4mapped": _mapped,
}
for _bits in (16, 32, 64):
    COPIES[f"put_unaligned_le{_bits}"] = _put_unaligned(_bits // 8, is_big=False)
    COPIES[f"put_unaligned_be{_bits}"] = _put_unaligned(_bits // 8, is_big=True)
