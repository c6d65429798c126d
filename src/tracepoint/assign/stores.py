"""Assignments and stores: what is converted on the way, and what an input is as bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tracepoint.assign.machine import NO_WANT, CutInput, Local, Machine
from tracepoint.assign.values import (
    CannotFollowError,
    Int,
    Outside,
    Pointer,
    Slot,
    Value,
    Want,
    is_value,
)
from tracepoint.source import ast
from tracepoint.source.cexpr import write_expression

if TYPE_CHECKING:
    from collections.abc import Callable


def target(machine: Machine, node: ast.Node) -> Value:
    """Evaluate the left side of an assignment."""
    before, machine.is_target = machine.is_target, isinstance(node, ast.Name)
    try:
        return machine.evaluate(node)
    finally:
        machine.is_target = before


def assign(machine: Machine, node: ast.Assign, _want: Want = NO_WANT) -> Value:
    """Store the right side into the left one and return the value."""
    place = target(machine, node.target)
    if isinstance(place, Slot):
        return _assign_slot(machine, node, place)
    cell = machine.locals.get(node.target.name) if isinstance(node.target, ast.Name) else None
    if node.op == "=":
        ctype = cell.ctype if cell is not None else None
        value = machine.value(node.value, Want(role="pointer" if ctype and ctype.pointers else "int"))
    else:
        value = machine.value(ast.Binary(node.op[:-1], node.target, node.value))
    if cell is not None:
        value = cell.value = as_declared(machine, cell, value)
        cell.node = None
    elif isinstance(place, Outside):
        machine.overrides[write_expression(place.node)] = value
    else:
        raise CannotFollowError(f"{write_expression(node.target)[:60]} cannot be stored to")
    return value


def as_declared(machine: Machine, cell: Local, value: Value) -> Value:
    """Let a pointer kept in a local point to what the local's type says."""
    if cell.ctype.pointers and isinstance(value, Pointer):
        return replace(value, shape=machine.shapes.pointee(cell.ctype))
    return value


def want_of(machine: Machine, slot: Slot) -> Want:
    """Return what a store into `slot` wants."""
    shape = slot.shape
    field = machine.field_at(slot.memory, slot.offset)
    if shape.kind is None:
        return Want(role="bytes", field=field, length=shape.size)
    if shape.is_pointer:
        base = shape.name.replace("const", "").replace(" ", "")
        return Want(shape.kind, "string" if base == "char*" else "pointer", field)
    return Want(shape.kind, "int", field)


def _assign_slot(machine: Machine, node: ast.Assign, slot: Slot) -> Value:
    want = want_of(machine, slot)
    if node.op == "=":
        value = machine.value(node.value, want)
    else:
        value = machine.value(ast.Binary(node.op[:-1], node.target, node.value), replace(want, role="int"))
    store(machine, slot, value, want)
    for cell in machine.locals.values():
        if cell.slot is not None and cell.slot.memory is slot.memory:
            cell.node = None
    return value


def store(machine: Machine, slot: Slot, value: Value, want: Want) -> None:
    """Store a value into an object, converting as C does."""
    shape = slot.shape
    if shape.element is not None:
        raise CannotFollowError("an array cannot be assigned as a whole")
    if shape.kind is None:
        if not shape.size:
            raise CannotFollowError(f"the size of {shape.name or 'this type'} is not known")
        slot.memory.write(slot.offset, as_bytes(machine, value, shape.size, want))
        return
    found = machine.to_int(value, want)
    stored = shape.kind.wrap(found.value)
    if shape.name in ("bool", "_Bool"):
        stored = int(found.value != 0)
    elif stored != found.value and found.input_:
        machine.conversions.append(CutInput(found.input_, found.value, stored, want.field))
    slot.memory.write_int(slot.offset, shape.kind, stored)


def as_bytes(machine: Machine, value: Value, size: int, want: Want) -> bytes:
    """Return `size` bytes of an object or of an input."""
    match value:
        case Pointer(memory=memory, offset=offset) | Slot(memory=memory, offset=offset):
            return memory.read(offset, size)
        case Outside():
            answer = machine.ask(value, replace(want, role="bytes", length=size))
            if is_value(answer):
                return as_bytes(machine, answer, size, want)
            return pack(machine, answer, size, want.element)
        case Int(value=0):
            raise CannotFollowError("memory is copied from NULL")
    raise CannotFollowError("what is copied here is not known")


def pack(machine: Machine, value: object, size: int, element: int) -> bytes:
    """Turn an input's value into `size` bytes: text and bytes are padded, numbers placed in order."""
    match value:
        case str():
            raw = value.encode("utf-8", "surrogateescape")
        case bytes():
            raw = value
        case list():
            mask = (1 << (8 * element)) - 1
            raw = b"".join((v & mask).to_bytes(element, machine.record.order) for v in value)
        case int():
            return (value & ((1 << (8 * size)) - 1)).to_bytes(size, machine.record.order)
        case _:
            raise CannotFollowError("an input without bytes")
    return raw[:size].ljust(size, b"\0")


FORMS: dict[type[ast.Node], Callable[..., Value]] = {ast.Assign: assign}
