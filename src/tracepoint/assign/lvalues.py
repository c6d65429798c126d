"""What names an object in memory: names, members, elements, literals, addresses and sizes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tracepoint.assign.stores import target
from tracepoint.assign.values import (
    CannotFollowError,
    Int,
    Items,
    Lost,
    Outside,
    Pointer,
    Shape,
    Slot,
    Value,
    Want,
)
from tracepoint.source import ast
from tracepoint.source.cexpr import write_expression
from tracepoint.source.ctype import CType
from tracepoint.source.cvalue import number_type
from tracepoint.source.types import CHAR, INT

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.assign.machine import Local, Machine

_TRUE_NAMES = {"true": 1, "false": 0, "NULL": 0}


def _string(machine: Machine, node: ast.String, _want: Want) -> Value:
    text = node.value
    if node.pieces:
        if any(not isinstance(piece, ast.String) for piece in node.pieces):
            raise CannotFollowError("a string made of macros that are not known here")
        text = "".join(piece.value for piece in node.pieces if isinstance(piece, ast.String))
    data = text.encode("latin-1", "replace") + b"\0"
    return Pointer(machine.memory(data, "a string literal"), 0, Shape(1, CHAR))


def _name(machine: Machine, node: ast.Name, _want: Want) -> Value:
    name = node.name
    cell = machine.locals.get(name)
    if cell is not None:
        return _local(machine, node, cell)
    if name in machine.inputs.params:
        return Outside(node, machine.inputs.params[name])
    if name in ("__entry", "entry"):
        return Pointer(machine.record, 0, machine.record_shape)
    if name in _TRUE_NAMES:
        return Int(_TRUE_NAMES[name], machine.shapes.ulong if name == "NULL" else INT)
    known = machine.inputs.constant(name)
    if known is not None:
        kind = number_type(abs(known), long_size=machine.shapes.long_size)
        return Int(known, kind)
    return Outside(node)


def _local(machine: Machine, node: ast.Name, cell: Local) -> Value:
    if cell.slot is not None:
        slot = cell.slot
        if slot.shape.kind is not None and not slot.memory.written[slot.offset] and not machine.is_target:
            return Outside(node, cell.ctype)
        return slot
    if cell.value is None:
        return Outside(node, cell.ctype)
    if isinstance(cell.value, Outside) and cell.value.ctype is None:
        return Outside(cell.value.node, cell.ctype)
    return cell.value


def _member(machine: Machine, node: ast.Member, _want: Want) -> Value:
    base = machine.value(node.base) if node.is_arrow else machine.evaluate(node.base)
    match base:
        case Outside(node=inner):
            return Outside(replace(node, base=inner))
        case Pointer() | Slot(shape=Shape(kind=None)):
            return _member_of(machine, base, node)
        case Int(value=0):
            raise CannotFollowError(f"{write_expression(node.base)} is NULL where ->{node.name} is read")
        case Lost(reason=reason):
            raise CannotFollowError(reason)
    return Outside(replace(node, base=machine.canonical(node.base)))


def _member_of(machine: Machine, base: Pointer | Slot, node: ast.Member) -> Value:
    found = (base.shape.members or {}).get(node.name)
    if found is not None:
        return Slot(base.memory, base.offset + found[0], found[1])
    if base.memory is not machine.record:
        return Outside(replace(node, base=machine.canonical(node.base)))
    if base.shape is machine.record_shape:
        raise CannotFollowError(f"the record has no field {node.name}")
    raise CannotFollowError(f"the members of {base.shape.name or 'this struct'} are not known")


def _index(machine: Machine, node: ast.Index, _want: Want) -> Value:
    base = machine.value(node.base)
    if isinstance(base, Outside):
        return Outside(
            replace(node, base=base.node, index=_known_index(machine, node.index)), _element(base.ctype)
        )
    index = machine.integer(node.index, Want(role="index")).value
    match base:
        case Pointer(memory=memory, offset=offset, shape=shape):
            if not shape.size:
                raise CannotFollowError("the size of an array's elements is not known")
            memory.check(offset + index * shape.size, shape.size)
            return Slot(memory, offset + index * shape.size, shape)
        case Items(items=items):
            if not 0 <= index < len(items):
                raise CannotFollowError(f"index {index} of a table of {len(items)}")
            return items[index]
    raise CannotFollowError(f"{write_expression(node.base)} is not an array")


def _known_index(machine: Machine, node: ast.Node) -> ast.Node:
    plain = machine.canonical(node)
    if isinstance(plain, ast.Number):
        return plain
    found = machine.value(node) if not isinstance(plain, ast.Name) else None
    return ast.Number(found.value) if isinstance(found, Int) and found.value >= 0 else plain


def address(machine: Machine, node: ast.Unary) -> Value:
    """Return what `&object` is."""
    found = target(machine, node.operand)
    match found:
        case Slot(memory=memory, offset=offset, shape=shape):
            return Pointer(memory, offset, shape.element or shape)
        case Outside(node=inner):
            return Outside(replace(node, operand=inner), CType("void", 1))
    raise CannotFollowError(f"the address of {write_expression(node.operand)[:40]}")


def dereference(machine: Machine, node: ast.Unary) -> Value:
    """Return what `*pointer` is."""
    found = machine.value(node.operand)
    match found:
        case Pointer(memory=memory, offset=offset, shape=shape):
            return Slot(memory, offset, shape)
        case Outside(node=inner, ctype=ctype):
            return Outside(replace(node, operand=inner), _element(ctype))
        case Int(value=0):
            raise CannotFollowError(f"{write_expression(node.operand)} is NULL where it is read")
    return Outside(machine.canonical(node))


def _sizeof(machine: Machine, node: ast.SizeOf, _want: Want) -> Value:
    unknown = Outside(node, CType("size_t"))
    if node.ctype is not None or node.operand is None:
        is_plain = node.ctype is not None and node.op == "sizeof" and not node.ctype.array
        size = machine.shapes.of_element(node.ctype).size if is_plain and node.ctype is not None else 0
        return Int(size, machine.shapes.ulong) if size else unknown
    before, machine.is_target = machine.is_target, True
    try:
        found = machine.evaluate(node.operand)
    finally:
        machine.is_target = before
    size = _size_of(machine, found, is_literal=isinstance(node.operand, ast.String))
    if not size and isinstance(found, Outside):
        return Outside(replace(node, operand=found.node), CType("size_t"))
    return Int(size, machine.shapes.ulong) if size else unknown


def _size_of(machine: Machine, found: Value, *, is_literal: bool) -> int:
    match found:
        case Slot(shape=Shape(size=size)):
            return size
        case Pointer(memory=memory):
            return len(memory.data) if is_literal else machine.shapes.long_size
        case Int(kind=kind):
            return kind.size
        case Outside(ctype=ctype) if ctype is not None and not ctype.array:
            return machine.shapes.of_element(ctype).size
    return 0


def _element(ctype: CType | None) -> CType | None:
    """Return the type that a pointer points to or of an array's element, None when not known."""
    if ctype is None:
        return None
    if ctype.array:
        return replace(ctype, array=ctype.array[1:])
    if ctype.pointers and not (ctype.pointers == 1 and ctype.base == "void"):
        return replace(ctype, pointers=ctype.pointers - 1)
    return None


FORMS: dict[type[ast.Node], Callable[..., Value]] = {
    ast.String: _string,
    ast.Name: _name,
    ast.Member: _member,
    ast.Index: _index,
    ast.SizeOf: _sizeof,
}
