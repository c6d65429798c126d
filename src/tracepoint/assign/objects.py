"""Objects of the evaluator: names, members, elements, addresses and sizes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tracepoint.assign.stores import Stores
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
from tracepoint.source.cvalue import CHAR, INT, number_type

if TYPE_CHECKING:
    from tracepoint.assign.state import Cell

_TRUE_NAMES = {"true": 1, "false": 0, "NULL": 0}


class Objects(Stores):
    """The layer that finds objects."""

    def string_form(self, node: ast.String, _want: Want) -> Value:
        """Return the address of a literal."""
        text = node.value
        if node.pieces:
            if any(not isinstance(piece, ast.String) for piece in node.pieces):
                raise CannotFollowError("a string made of macros that are not known here")
            text = "".join(piece.value for piece in node.pieces if isinstance(piece, ast.String))
        data = text.encode("latin-1", "replace") + b"\0"
        return Pointer(self.literal(data, "a string literal"), 0, Shape(1, CHAR))

    def name_form(self, node: ast.Name, _want: Want) -> Value:
        """Return what a name stands for: local, parameter, constant, or something outside."""
        name = node.name
        cell = self.locals.get(name)
        if cell is not None:
            return self._local(node, cell)
        if name in self.inputs.params:
            return Outside(node, self.inputs.params[name])
        if name in ("__entry", "entry"):
            return Pointer(self.record, 0, self.record_shape)
        if name in _TRUE_NAMES:
            return Int(_TRUE_NAMES[name], self.shapes.ulong if name == "NULL" else INT)
        known = self.inputs.constant(name)
        if known is not None:
            kind = number_type(abs(known), long_size=self.shapes.long_size)
            return Int(known, kind)
        return Outside(node)

    def _local(self, node: ast.Name, cell: Cell) -> Value:
        if cell.slot is not None:
            slot = cell.slot
            if slot.shape.kind is not None and not slot.memory.written[slot.offset] and not self.is_target:
                return Outside(node, cell.ctype)
            return slot
        if cell.value is None:
            return Outside(node, cell.ctype)
        if isinstance(cell.value, Outside) and cell.value.ctype is None:
            return Outside(cell.value.node, cell.ctype)
        return cell.value

    is_target = False

    def member_form(self, node: ast.Member, _want: Want) -> Value:
        """Return a member of a record, a local or something outside."""
        base = self.value(node.base) if node.is_arrow else self.evaluate(node.base)
        outside = Outside(replace(node, base=self.canonical(node.base)))
        match base:
            case Outside(node=inner):
                return Outside(replace(node, base=inner))
            case Pointer(memory=memory, offset=offset, shape=shape):
                return self._member_at(memory, offset, shape, node)
            case Slot(memory=memory, offset=offset, shape=shape) if shape.kind is None:
                if not shape.members and memory is not self.record:
                    return outside
                return self._member_at(memory, offset, shape, node)
            case Int(value=0):
                raise CannotFollowError(f"{write_expression(node.base)} is NULL where ->{node.name} is read")
            case Lost(reason=reason):
                raise CannotFollowError(reason)
        return outside

    def _member_at(self, memory: object, offset: int, shape: Shape, node: ast.Member) -> Value:
        members = shape.members or {}
        if node.name not in members:
            if memory is not self.record:
                return Outside(replace(node, base=self.canonical(node.base)))
            if shape is self.record_shape:
                raise CannotFollowError(f"the record has no field {node.name}")
            raise CannotFollowError(f"the members of {shape.name or 'this struct'} are not known")
        inner, member = members[node.name]
        return Slot(memory, offset + inner, member)  # type: ignore[arg-type]

    def index_form(self, node: ast.Index, _want: Want) -> Value:
        """Return an element of an array, a table or something outside."""
        base = self.value(node.base)
        if isinstance(base, Outside):
            return Outside(
                replace(node, base=base.node, index=self._known_index(node.index)), _element(base.ctype)
            )
        index = self.integer(node.index, Want(role="index")).value
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

    def _known_index(self, node: ast.Node) -> ast.Node:
        plain = self.canonical(node)
        if isinstance(plain, ast.Number):
            return plain
        found = self.value(node) if not isinstance(plain, ast.Name) else None
        return ast.Number(found.value) if isinstance(found, Int) and found.value >= 0 else plain

    def address(self, node: ast.Unary) -> Value:
        """Return what `&object` is."""
        found = self.target(node.operand)
        match found:
            case Slot(memory=memory, offset=offset, shape=shape):
                return Pointer(memory, offset, shape.element or shape)
            case Outside(node=inner):
                return Outside(replace(node, operand=inner), CType("void", 1))
        raise CannotFollowError(f"the address of {write_expression(node.operand)[:40]}")

    def dereference(self, node: ast.Unary) -> Value:
        """Return what `*pointer` is."""
        found = self.value(node.operand)
        match found:
            case Pointer(memory=memory, offset=offset, shape=shape):
                return Slot(memory, offset, shape)
            case Outside(node=inner, ctype=ctype):
                return Outside(replace(node, operand=inner), _element(ctype))
            case Int(value=0):
                raise CannotFollowError(f"{write_expression(node.operand)} is NULL where it is read")
        return Outside(self.canonical(node))

    def sizeof_form(self, node: ast.SizeOf, _want: Want) -> Value:
        """Return a size; one that is not known here is an input."""
        unknown = Outside(node, CType("size_t"))
        if node.ctype is not None or node.operand is None:
            is_plain = node.ctype is not None and node.op == "sizeof" and not node.ctype.array
            size = self.shapes.of_element(node.ctype).size if is_plain and node.ctype is not None else 0
            return Int(size, self.shapes.ulong) if size else unknown
        before, self.is_target = self.is_target, True
        try:
            found = self.evaluate(node.operand)
        finally:
            self.is_target = before
        size = self._size_of(found, is_literal=isinstance(node.operand, ast.String))
        if not size and isinstance(found, Outside):
            return Outside(replace(node, operand=found.node), CType("size_t"))
        return Int(size, self.shapes.ulong) if size else unknown

    def _size_of(self, found: Value, *, is_literal: bool) -> int:
        match found:
            case Slot(shape=Shape(size=size)):
                return size
            case Pointer(memory=memory):
                return len(memory.data) if is_literal else self.shapes.long_size
            case Int(kind=kind):
                return kind.size
            case Outside(ctype=ctype) if ctype is not None and not ctype.array:
                return self.shapes.of_element(ctype).size
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
