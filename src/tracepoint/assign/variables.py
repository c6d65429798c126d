"""Local variables: their types, their memory, and the values they start with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.assign.machine import Local, Machine
from tracepoint.assign.stores import as_declared, store, want_of
from tracepoint.assign.values import (
    CannotFollowError,
    Int,
    Items,
    Outside,
    Pointer,
    Shape,
    Slot,
    Value,
    Want,
)
from tracepoint.errors import SourceError
from tracepoint.source import ast
from tracepoint.source.cexpr import parse_expression
from tracepoint.source.ctype import CType, parse_ctype

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.source.statements import Declare

MAX_LOCAL = 1 << 16


def declare(machine: Machine, statement: Declare) -> None:
    """Make the local of a declaration; raises CannotFollowError when its value cannot be known."""
    ctype = statement.ctype
    if ctype.base.startswith("typeof("):
        ctype = _type_of(machine, ctype)
    initial = statement.initial
    items = initial if isinstance(initial, ast.InitList) else None
    cell = Local(ctype)
    cell.slot = _slot_for(machine, statement.name, ctype, items)
    previous = machine.locals.get(statement.name)
    machine.locals[statement.name] = cell
    if items is not None:
        _initialise_list(machine, cell, items)
    elif initial is not None:
        if previous is not None:
            machine.locals[statement.name] = previous
        _initialise(machine, cell, initial)
        machine.locals[statement.name] = cell


def _type_of(machine: Machine, ctype: CType) -> CType:
    text = ctype.base.removeprefix("typeof(").removesuffix(")")
    try:
        return parse_ctype(text) if text.startswith(("struct ", "unsigned ")) else _value_type(machine, text)
    except SourceError:
        return CType("long")


def _value_type(machine: Machine, text: str) -> CType:
    found = machine.evaluate(parse_expression(text))
    match found:
        case Slot(shape=shape) if shape.kind is not None:
            kind = shape.kind
        case Int(kind=kind):
            pass
        case Outside(ctype=ctype) if ctype is not None:
            return ctype
        case _:
            return CType("long")
    return CType(f"{'s' if kind.is_signed else 'u'}{8 * kind.size}")


def _slot_for(machine: Machine, name: str, ctype: CType, items: ast.InitList | None) -> Slot | None:
    """Return memory for integers, arrays of them and known structs; pointers are kept as values."""
    if ctype.pointers:
        return None
    shape = shape_of(machine, ctype, items)
    is_plain = shape.kind is not None or shape.element is not None or shape.members
    if not is_plain or not shape.size or (shape.element is not None and not shape.element.size):
        return None
    return Slot(machine.memory(bytes(shape.size), f"the local {name}"), 0, shape)


def _initialise_list(machine: Machine, cell: Local, items: ast.InitList) -> None:
    if cell.slot is not None:
        made = initialised(machine, cell.slot.shape, items, cell.slot.memory.label)
        cell.slot = made
        return
    if cell.ctype.array and cell.ctype.pointers:
        cell.value = Items(tuple(machine.value(item) for item in items.items))
        return
    for item in items.items:
        # `struct foo x = { .a = b }`: its members are remembered by name.
        if isinstance(item, ast.Assign) and isinstance(item.target, ast.Name):
            name = next(n for n, c in machine.locals.items() if c is cell)
            text = f"{name}.{item.target.name}"
            machine.overrides[text] = machine.value(item.value)


def _initialise(machine: Machine, cell: Local, initial: ast.Node) -> None:
    slot = cell.slot
    if slot is None:
        role = "pointer" if cell.ctype.pointers else "int"
        kind = machine.shapes.ulong if cell.ctype.pointers else None
        cell.value = as_declared(machine, cell, machine.value(initial, Want(kind, role)))
        return
    if slot.shape.element is not None:
        found = machine.value(initial)
        if not isinstance(found, Pointer):
            raise CannotFollowError("an array set from something else than a list or a string")
        data = found.memory.string_at(found.offset) + b"\0"
        slot.memory.write(0, data[: slot.shape.size].ljust(slot.shape.size, b"\0"))
        return
    want = want_of(machine, slot)
    found = machine.value(initial, want)
    cell.node = found.node if isinstance(found, Outside) else None
    store(machine, slot, found, want)


def shape_of(machine: Machine, ctype: CType, items: ast.InitList | None = None) -> Shape:
    """Return the shape of a local's type; an empty `[]` takes the number of items."""
    lengths = []
    for text in ctype.array:
        if text.strip():
            lengths.append(_length(machine, text))
        else:
            lengths.append(_count(machine, items) if items is not None else 0)
    shape = machine.shapes.of(ctype, tuple(lengths))
    if shape.size > MAX_LOCAL:
        raise CannotFollowError(f"a local of {shape.size} bytes")
    return shape


def _count(machine: Machine, items: ast.InitList) -> int:
    """Return how many elements a braced list reaches to, designators counted."""
    at = most = 0
    for item in items.items:
        if isinstance(item, ast.Assign) and isinstance(item.target, ast.Index):
            at = machine.integer(item.target.index).value
        at += 1
        most = max(most, at)
    if not 0 <= most <= MAX_LOCAL:
        raise CannotFollowError(f"a table of {most} elements")
    return most


def _length(machine: Machine, text: str) -> int:
    length = machine.integer(parse_expression(text), Want(role="length")).value
    if not 0 <= length <= 65536:
        raise CannotFollowError(f"an array of {length} elements")
    return length


def initialised(machine: Machine, shape: Shape, items: ast.InitList, label: str) -> Slot:
    """Return a new object that holds the items of a braced list."""
    if not shape.size:
        raise CannotFollowError("the size of a table's elements is not known")
    slot = Slot(machine.memory(bytes(shape.size), label), 0, shape)
    at = 0
    for item in items.items:
        where: Value = slot
        if isinstance(item, ast.Assign) and item.op == "=":
            where, at = _designated(machine, slot, item.target, at)
            item_value = item.value
        else:
            where, item_value = _nth(slot, at), item
        if not isinstance(where, Slot):
            raise CannotFollowError("a table's item has no place")
        store(machine, where, machine.value(item_value, want_of(machine, where)), want_of(machine, where))
        at += 1
    return slot


def _nth(slot: Slot, at: int) -> Slot:
    shape = slot.shape
    if shape.element is not None:
        slot.memory.check(slot.offset + at * shape.element.size, shape.element.size)
        return Slot(slot.memory, slot.offset + at * shape.element.size, shape.element)
    members = list((shape.members or {}).values())
    if at >= len(members):
        if at == 0 and shape.kind is not None:
            return slot
        raise CannotFollowError("a braced list with more items than members")
    return Slot(slot.memory, slot.offset + members[at][0], members[at][1])


def _designated(machine: Machine, slot: Slot, target: ast.Node, at: int) -> tuple[Slot, int]:
    match target:
        case ast.Name(name=name) if slot.shape.members and name in slot.shape.members:
            inner, member = slot.shape.members[name]
            return Slot(slot.memory, slot.offset + inner, member), at
        case ast.Index(base=ast.Name(name=""), index=index):
            at = machine.integer(index).value
            return _nth(slot, at), at
    raise CannotFollowError("a designator that is not followed")


def _compound(machine: Machine, node: ast.CompoundLiteral, _want: Want) -> Value:
    return initialised(machine, shape_of(machine, node.ctype, node.items), node.items, "a compound literal")


FORMS: dict[type[ast.Node], Callable[..., Value]] = {ast.CompoundLiteral: _compound}
