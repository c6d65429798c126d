"""Evaluates C expressions of an assignment, asking for leaves only when a value is needed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tracepoint.assign.state import TRANSPARENT, Cell, Conversion, State
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
from tracepoint.source.cvalue import (
    COMPARISONS,
    INT,
    binary_type,
    binary_value,
    common_type,
    number_type,
    promote,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tracepoint.source.lexer import Token

    Handler = Callable[["Evaluator", ast.Call, Want], Value]

NO_WANT = Want()
CONDITION = Want(role="condition")
MAX_STEPS = 200_000
_TRUE_NAMES = {"true": 1, "false": 0, "NULL": 0}


class Evaluator(State):
    """A `State` that evaluates; `handlers` are the functions whose meaning is known."""

    handlers: Mapping[str, Handler] = {}

    def __post_init__(self) -> None:
        super().__post_init__()
        self.steps = 0

    def step(self) -> None:
        """Count one step of work; raises CannotFollowError beyond the cap."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise CannotFollowError(f"the assignment did not end within {MAX_STEPS} steps")

    def run_tokens(self, tokens: tuple[Token, ...]) -> Value:
        """Run a statement expression; `program` knows how."""
        raise CannotFollowError("a statement expression is not followed here")

    def evaluate(self, node: ast.Node, want: Want = NO_WANT) -> Value:
        """Return what an expression stands for: an object, an address, or something outside."""
        self.step()
        match node:
            case ast.Number(value=value, suffix=suffix, is_decimal=is_decimal):
                kind = number_type(value, suffix, is_decimal=is_decimal, long_size=self.shapes.long_size)
                return Int(kind.wrap(value), kind)
            case ast.Char(value=value):
                return Int(value, INT)
            case ast.String():
                return self._string(node)
            case ast.Name(name=name):
                return self._name(node, name)
            case ast.Unary():
                return self._unary(node, want)
            case ast.Binary():
                return self._binary(node, want)
            case ast.Assign():
                return self._assign(node)
            case ast.Ternary():
                return self._ternary(node, want)
            case ast.Cast():
                return self._cast(node, want)
            case ast.Call():
                return self._call(node, want)
            case ast.Member():
                return self._member(node)
            case ast.Index():
                return self._index(node)
            case _:
                return self._rare(node, want)

    def _rare(self, node: ast.Node, want: Want) -> Value:
        match node:
            case ast.SizeOf():
                return self._sizeof(node)
            case ast.Comma(left=left, right=right):
                self.evaluate(left)
                return self.evaluate(right, want)
            case ast.StatementExpression(tokens=tokens):
                return self.run_tokens(tokens)
            case ast.CompoundLiteral(ctype=ctype, items=items):
                return self.initialised(self.shape_of(ctype, items), items, "a compound literal")
        raise CannotFollowError(f"{write_expression(node)[:60]} is not followed")

    def value(self, node: ast.Node, want: Want = NO_WANT) -> Value:
        """Evaluate, and read: integers become `Int`, arrays the address of their first element."""
        return self.read(self.evaluate(node, want))

    def read(self, value: Value) -> Value:
        """Read an object: integers become `Int`, arrays decay, structs stay."""
        if not isinstance(value, Slot):
            if isinstance(value, Lost):
                raise CannotFollowError(value.reason)
            return value
        shape = value.shape
        if shape.element is not None:
            return Pointer(value.memory, value.offset, shape.element)
        if shape.kind is None:
            return value
        value.memory.check(value.offset, shape.kind.size)
        if not value.memory.written[value.offset]:
            field = self.field_at(value.memory, value.offset)
            if field:
                self.note(f"{field} is read before anything is stored in it")
        return Int(value.memory.read_int(value.offset, shape.kind), shape.kind)

    def integer(self, node: ast.Node, want: Want = NO_WANT) -> Int:
        """Return the integer an expression has; raises CannotFollowError when it cannot be known."""
        return self.to_int(self.value(node, want), want)

    def is_true(self, node: ast.Node) -> bool:
        """Return whether a condition holds."""
        found = self.value(node, CONDITION)
        match found:
            case Int(value=value):
                return value != 0
            case Pointer():
                return True
            case Outside():
                answer = self.ask(found, CONDITION)
                return self.to_int(answer, CONDITION).value != 0 if _is_value(answer) else bool(answer)
        raise CannotFollowError("a condition that is no number")

    # Names and objects

    def _string(self, node: ast.String) -> Value:
        text = node.value
        if node.pieces:
            if any(not isinstance(piece, ast.String) for piece in node.pieces):
                raise CannotFollowError("a string made of macros that are not known here")
            text = "".join(piece.value for piece in node.pieces if isinstance(piece, ast.String))
        data = text.encode("latin-1", "replace") + b"\0"
        return Pointer(self.literal(data, "a string literal"), 0, Shape(1, number_type(0)))

    def _name(self, node: ast.Name, name: str) -> Value:
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
            if slot.shape.kind is not None and not slot.memory.written[slot.offset] and not self._is_target:
                return Outside(node, cell.ctype)
            return slot
        if cell.value is None:
            return Outside(node, cell.ctype)
        if isinstance(cell.value, Outside) and cell.value.ctype is None:
            return Outside(cell.value.node, cell.ctype)
        return cell.value

    _is_target = False

    def target(self, node: ast.Node) -> Value:
        """Evaluate the left side of an assignment."""
        before, self._is_target = self._is_target, isinstance(node, ast.Name)
        try:
            return self.evaluate(node)
        finally:
            self._is_target = before

    def _member(self, node: ast.Member) -> Value:
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

    def _index(self, node: ast.Index) -> Value:
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
        raise CannotFollowError(f"{write_expression(node.base)} is no array")

    def _known_index(self, node: ast.Node) -> ast.Node:
        plain = self.canonical(node)
        if isinstance(plain, ast.Number):
            return plain
        found = self.value(node) if not isinstance(plain, ast.Name) else None
        return ast.Number(found.value) if isinstance(found, Int) and found.value >= 0 else plain

    # Operators

    def _unary(self, node: ast.Unary, want: Want) -> Value:
        match node.op:
            case "&":
                return self._address(node)
            case "*":
                return self._dereference(node)
            case "!":
                return Int(int(not self.is_true(node.operand)), INT)
            case "++" | "--" | "p++" | "p--":
                return self._increment(node)
        inner = self.integer(node.operand, want)
        kind = promote(inner.kind)
        match node.op:
            case "-":
                return Int(kind.wrap(-inner.value), kind)
            case "~":
                return Int(kind.wrap(~inner.value), kind)
        return Int(inner.value, kind)

    def _address(self, node: ast.Unary) -> Value:
        found = self.target(node.operand)
        match found:
            case Slot(memory=memory, offset=offset, shape=shape):
                return Pointer(memory, offset, shape.element or shape)
            case Outside(node=inner):
                return Outside(replace(node, operand=inner), CType("void", 1))
        raise CannotFollowError(f"the address of {write_expression(node.operand)[:40]}")

    def _dereference(self, node: ast.Unary) -> Value:
        found = self.value(node.operand)
        match found:
            case Pointer(memory=memory, offset=offset, shape=shape):
                return Slot(memory, offset, shape)
            case Outside(node=inner, ctype=ctype):
                return Outside(replace(node, operand=inner), _element(ctype))
            case Int(value=0):
                raise CannotFollowError(f"{write_expression(node.operand)} is NULL where it is read")
        return Outside(self.canonical(node))

    def _increment(self, node: ast.Unary) -> Value:
        before = self.value(node.operand)
        amount = ast.Number(1)
        self._assign(ast.Assign("+=" if "+" in node.op else "-=", node.operand, amount))
        return before if node.op.startswith("p") else self.value(node.operand)

    def _ternary(self, node: ast.Ternary, want: Want) -> Value:
        if self.is_exploring:
            self.is_true(node.condition)
            then = self._try(node.then if node.then is not None else node.condition, want)
            otherwise = self._try(node.otherwise, want)
            return otherwise if then is None and otherwise is not None else then or Int(0, INT)
        if node.then is None:
            return self.evaluate(node.condition if self.is_true(node.condition) else node.otherwise, want)
        return self.evaluate(node.then if self.is_true(node.condition) else node.otherwise, want)

    def _try(self, node: ast.Node, want: Want) -> Value | None:
        """While looking for leaves: evaluate and ask, so that both arms are seen."""
        try:
            found = self.read(self.evaluate(node, want))
            if isinstance(found, Outside):
                self.ask(found, want)
        except CannotFollowError:
            return None
        return found

    def _binary(self, node: ast.Binary, want: Want) -> Value:
        op = node.op
        if op in ("&&", "||"):
            left = self.is_true(node.left)
            if self.is_exploring:
                self._try(node.right, CONDITION)
            elif left == (op == "||"):
                return Int(int(left), INT)
            return Int(int(self.is_true(node.right)), INT)
        inner = NO_WANT if op in COMPARISONS else want
        left_value = self.value(node.left, inner)
        right_value = self.value(node.right, NO_WANT if op in ("<<", ">>") else inner)
        pointed = self._pointer_binary(node, left_value, right_value, want)
        if pointed is not None:
            return pointed
        left_want, right_want = _wants(op, left_value, right_value, inner)
        left_int = self.to_int(left_value, left_want)
        right_int = self.to_int(right_value, right_want)
        try:
            result = binary_value(op, left_int.value, left_int.kind, right_int.value, right_int.kind)
        except ZeroDivisionError:
            raise CannotFollowError(f"{write_expression(node)[:60]} divides by zero") from None
        except KeyError:
            raise CannotFollowError(f"operator {op} is not followed") from None
        return Int(result, binary_type(op, left_int.kind, right_int.kind))

    def _pointer_binary(self, node: ast.Binary, left: Value, right: Value, want: Want) -> Value | None:
        op = node.op
        if isinstance(left, Pointer) and op in ("+", "-") and not isinstance(right, Pointer):
            amount = self.to_int(right, NO_WANT).value * (left.shape.size or 1)
            return replace(left, offset=left.offset + (amount if op == "+" else -amount))
        if isinstance(left, Pointer) and isinstance(right, Pointer):
            if op == "-" and left.memory is right.memory:
                return Int((left.offset - right.offset) // (left.shape.size or 1), self.shapes.long)
            if op in ("==", "!="):
                same = left.memory is right.memory and left.offset == right.offset
                return Int(int(same == (op == "==")), INT)
        if op in ("+", "-") and isinstance(left, Outside):
            is_pointer = left.ctype is not None and left.ctype.pointers > 0
            if is_pointer or want.role in ("pointer", "bytes", "string"):
                return Outside(replace(node, left=left.node, right=self.canonical(node.right)), left.ctype)
        return None

    def _cast(self, node: ast.Cast, want: Want) -> Value:
        ctype = node.ctype
        if ctype.pointers:
            return self._pointer_cast(ctype, self.value(node.operand, replace(want, kind=self.shapes.ulong)))
        kind = self.shapes.of_element(ctype).kind
        if ctype.base == "void":
            self.evaluate(node.operand)
            return Int(0, INT)
        if kind is None:
            # A type that is not known here: the value passes as it is.
            return self.evaluate(node.operand, want)
        inner = self.integer(node.operand, replace(want, kind=kind, role="int"))
        if ctype.base == "bool":
            return Int(int(inner.value != 0), kind)
        kept = kind.wrap(inner.value)
        return Int(kept, kind, inner.leaf if kept == inner.value else "")

    def _pointer_cast(self, ctype: CType, inner: Value) -> Value:
        match inner:
            case Pointer():
                return replace(inner, shape=self.shapes.pointee(ctype))
            case Outside(node=outside):
                if ctype.base in ("void", "char", "u8", "unsigned char", "long", "unsigned long"):
                    return Outside(outside, ctype)
                return Outside(ast.Cast(ctype, outside), ctype)
            case Slot(memory=memory, offset=offset):
                return Pointer(memory, offset, self.shapes.pointee(ctype))
        return inner

    def _sizeof(self, node: ast.SizeOf) -> Value:
        ulong = self.shapes.ulong
        if node.ctype is not None:
            if node.op == "sizeof" and not node.ctype.array:
                size = self.shapes.of_element(node.ctype).size
                if size:
                    return Int(size, ulong)
            return Outside(node, CType("size_t"))
        assert node.operand is not None
        before, self._is_target = self._is_target, True
        try:
            found = self.evaluate(node.operand)
        finally:
            self._is_target = before
        match found:
            case Slot(shape=Shape(size=size)) if size:
                return Int(size, ulong)
            case Pointer(memory=memory, shape=shape):
                is_string = isinstance(node.operand, ast.String)
                return Int(len(memory.data) if is_string else self.shapes.long_size, ulong)
            case Int(kind=kind):
                return Int(kind.size, ulong)
            case Outside(node=inner, ctype=ctype):
                if ctype is not None and (size := self.shapes.of_element(ctype).size) and not ctype.array:
                    return Int(size, ulong)
                return Outside(replace(node, operand=inner), CType("size_t"))
        return Outside(node, CType("size_t"))

    def _call(self, node: ast.Call, want: Want) -> Value:
        if node.name in TRANSPARENT and node.arguments:
            return self.evaluate(node.arguments[0], want)
        handler = self.handlers.get(node.name)
        if handler is not None:
            return handler(self, node, want)
        if self.is_exploring:
            return Outside(self.canonical(node))
        return Outside(self.canonical(node))

    # Stores

    def _assign(self, node: ast.Assign) -> Value:
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
            cell.value = value
            cell.node = None
        elif isinstance(target, Outside):
            self.overrides[write_expression(target.node)] = value
        else:
            raise CannotFollowError(f"{write_expression(node.target)[:60]} cannot be stored to")
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
        elif stored != found.value and found.leaf:
            self.conversions.append(Conversion(found.leaf, found.value, stored, want.field))
        slot.memory.write_int(slot.offset, shape.kind, stored)

    def as_bytes(self, value: Value, size: int, want: Want) -> bytes:
        """Return `size` bytes of an object or of a leaf."""
        match value:
            case Pointer(memory=memory, offset=offset) | Slot(memory=memory, offset=offset):
                return memory.read(offset, size)
            case Outside():
                answer = self.ask(value, replace(want, role="bytes", length=size))
                if _is_value(answer):
                    return self.as_bytes(answer, size, want)
                return self.pack(answer, size, want.element)
            case Int(value=0):
                raise CannotFollowError("memory is copied from NULL")
        raise CannotFollowError("what is copied here is not known")

    def pack(self, value: object, size: int, element: int) -> bytes:
        """Turn a leaf's value into `size` bytes: text and bytes are padded, numbers placed in order."""
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
                raise CannotFollowError("a leaf without bytes")
        return raw[:size].ljust(size, b"\0")

    def shape_of(self, ctype: CType, items: ast.InitList | None = None) -> Shape:
        """Return the shape of a local's type; an empty `[]` takes the number of items."""
        lengths = []
        for text in ctype.array:
            if text.strip():
                lengths.append(self._length(text))
            else:
                lengths.append(len(items.items) if items is not None else 0)
        return self.shapes.of(ctype, tuple(lengths))

    def _length(self, text: str) -> int:
        from tracepoint.source.cexpr import parse_expression

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


def _is_value(answer: object) -> bool:
    return isinstance(answer, (Int, Slot, Pointer, Outside, Items, Lost))


def _element(ctype: CType | None) -> CType | None:
    """Return the type behind a pointer or of an array's element, None when not known."""
    if ctype is None:
        return None
    if ctype.array:
        return replace(ctype, array=ctype.array[1:])
    if ctype.pointers and not (ctype.pointers == 1 and ctype.base == "void"):
        return replace(ctype, pointers=ctype.pointers - 1)
    return None


def _wants(op: str, left: Value, right: Value, want: Want) -> tuple[Want, Want]:
    """Let each operand want the other one's type when its own is not known."""
    if op in ("<<", ">>"):
        return want, NO_WANT
    if isinstance(left, Int) and isinstance(right, Outside) and want.kind is None:
        return want, Want(left.kind)
    if isinstance(right, Int) and isinstance(left, Outside) and want.kind is None:
        return Want(right.kind), want
    return want, want


__all__ = ["CONDITION", "NO_WANT", "Evaluator", "common_type"]
