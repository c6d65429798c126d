"""Stores of the evaluator: assignments, conversions on store, tables with initial values."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tracepoint.assign.core import NO_WANT, Core
from tracepoint.assign.state import Cell, Conversion
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
from tracepoint.source import ast
from tracepoint.source.cexpr import parse_expression, write_expression

if TYPE_CHECKING:
    from tracepoint.source.ctype import CType

MAX_LOCAL = 1 << 16


class Stores(Core):
    """The layer that stores."""

    is_target = False

    def target(self, node: ast.Node) -> Value:
        """Evaluate the left side of an assignment."""
        before, self.is_target = self.is_target, isinstance(node, ast.Name)
        try:
            return self.evaluate(node)
        finally:
            self.is_target = before

    def assign(self, node: ast.Assign, _want: Want = NO_WANT) -> Value:
        """Store the right side into the left one and return the value."""
        target = self.target(node.target)
        if isinstance(target, Slot):
            return self._assign_slot(node, target)
        cell = self.locals.get(node.target.name) if isinstance(node.target, ast.Name) else None
        if node.op == "=":
            ctype = cell.ctype if cell is not None else None
            value = self.value(node.value, Want(role="pointer" if ctype and ctype.pointers else "int"))
        else:
            value = self.value(ast.Binary(node.op[:-1], node.target, node.value))
        if cell is not None:
            value = cell.value = self.as_declared(cell, value)
            cell.node = None
        elif isinstance(target, Outside):
            self.overrides[write_expression(target.node)] = value
        else:
            raise CannotFollowError(f"{write_expression(node.target)[:60]} cannot be stored to")
        return value

    def as_declared(self, cell: Cell, value: Value) -> Value:
        """Let a pointer kept in a local point to what the local's type says."""
        if cell.ctype.pointers and isinstance(value, Pointer):
            return replace(value, shape=self.shapes.pointee(cell.ctype))
        return value

    def want_of(self, slot: Slot) -> Want:
        """Return what a store into `slot` wants."""
        shape = slot.shape
        field = self.field_at(slot.memory, slot.offset)
        if shape.kind is None:
            return Want(role="bytes", field=field, length=shape.size)
        if shape.is_pointer:
            base = shape.name.replace("const", "").replace(" ", "")
            return Want(shape.kind, "string" if base == "char*" else "pointer", field)
        return Want(shape.kind, "int", field)

    def _assign_slot(self, node: ast.Assign, slot: Slot) -> Value:
        want = self.want_of(slot)
        if node.op == "=":
            value = self.value(node.value, want)
        else:
            value = self.value(ast.Binary(node.op[:-1], node.target, node.value), replace(want, role="int"))
        self.store(slot, value, want)
        self._forget_node(slot)
        return value

    def _forget_node(self, slot: Slot) -> None:
        for cell in self.locals.values():
            if cell.slot is not None and cell.slot.memory is slot.memory:
                cell.node = None

    def store(self, slot: Slot, value: Value, want: Want) -> None:
        """Store a value into an object, converting as C does."""
        shape = slot.shape
        if shape.element is not None:
            raise CannotFollowError("an array cannot be assigned as a whole")
        if shape.kind is None:
            if not shape.size:
                raise CannotFollowError(f"the size of {shape.name or 'this type'} is not known")
            slot.memory.write(slot.offset, self.as_bytes(value, shape.size, want))
            return
        found = self.to_int(value, want)
        stored = shape.kind.wrap(found.value)
        if shape.name in ("bool", "_Bool"):
            stored = int(found.value != 0)
        elif stored != found.value and found.input_:
            self.conversions.append(Conversion(found.input_, found.value, stored, want.field))
        slot.memory.write_int(slot.offset, shape.kind, stored)

    def as_bytes(self, value: Value, size: int, want: Want) -> bytes:
        """Return `size` bytes of an object or of an input."""
        match value:
            case Pointer(memory=memory, offset=offset) | Slot(memory=memory, offset=offset):
                return memory.read(offset, size)
            case Outside():
                answer = self.ask(value, replace(want, role="bytes", length=size))
                if is_value(answer):
                    return self.as_bytes(answer, size, want)
                return self.pack(answer, size, want.element)
            case Int(value=0):
                raise CannotFollowError("memory is copied from NULL")
        raise CannotFollowError("what is copied here is not known")

    def pack(self, value: object, size: int, element: int) -> bytes:
        """Turn an input's value into `size` bytes: text and bytes are padded, numbers placed in order."""
        order = "big" if self.inputs.layout.is_big_endian else "little"
        match value:
            case str():
                raw = value.encode("utf-8", "surrogateescape")
            case bytes():
                raw = value
            case list():
                mask = (1 << (8 * element)) - 1
                big = order == "big"
                raw = b"".join((v & mask).to_bytes(element, "big" if big else "little") for v in value)
            case int():
                mask = (1 << (8 * size)) - 1
                return (value & mask).to_bytes(size, "big" if order == "big" else "little")
            case _:
                raise CannotFollowError("an input without bytes")
        return raw[:size].ljust(size, b"\0")

    def shape_of(self, ctype: CType, items: ast.InitList | None = None) -> Shape:
        """Return the shape of a local's type; an empty `[]` takes the number of items."""
        lengths = []
        for text in ctype.array:
            if text.strip():
                lengths.append(self._length(text))
            else:
                lengths.append(self._count(items) if items is not None else 0)
        shape = self.shapes.of(ctype, tuple(lengths))
        if shape.size > MAX_LOCAL:
            raise CannotFollowError(f"a local of {shape.size} bytes")
        return shape

    def _count(self, items: ast.InitList) -> int:
        """Return how many elements a braced list reaches to, designators counted."""
        at = most = 0
        for item in items.items:
            if isinstance(item, ast.Assign) and isinstance(item.target, ast.Index):
                at = self.integer(item.target.index).value
            at += 1
            most = max(most, at)
        if not 0 <= most <= MAX_LOCAL:
            raise CannotFollowError(f"a table of {most} elements")
        return most

    def _length(self, text: str) -> int:
        length = self.integer(parse_expression(text), Want(role="length")).value
        if not 0 <= length <= 65536:
            raise CannotFollowError(f"an array of {length} elements")
        return length

    def initialised(self, shape: Shape, items: ast.InitList, label: str) -> Slot:
        """Return a new object that holds the items of a braced list."""
        if not shape.size:
            raise CannotFollowError("the size of a table's elements is not known")
        slot = Slot(self.literal(bytes(shape.size), label), 0, shape)
        at = 0
        for item in items.items:
            where: Value = slot
            if isinstance(item, ast.Assign) and item.op == "=":
                where, at = self._designated(slot, item.target, at)
                item_value = item.value
            else:
                where, item_value = self._nth(slot, at), item
            if not isinstance(where, Slot):
                raise CannotFollowError("a table's item has no place")
            self.store(where, self.value(item_value, self.want_of(where)), self.want_of(where))
            at += 1
        return slot

    def _nth(self, slot: Slot, at: int) -> Slot:
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

    def _designated(self, slot: Slot, target: ast.Node, at: int) -> tuple[Slot, int]:
        match target:
            case ast.Name(name=name) if slot.shape.members and name in slot.shape.members:
                inner, member = slot.shape.members[name]
                return Slot(slot.memory, slot.offset + inner, member), at
            case ast.Index(base=ast.Name(name=""), index=index):
                at = self.integer(index).value
                return self._nth(slot, at), at
        raise CannotFollowError("a designator that is not followed")
