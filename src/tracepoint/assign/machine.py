"""What runs an assignment: the record, the locals, the inputs, and how expressions get their values.

What each kind of expression and each function means is in the tables that a machine is given.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from tracepoint.assign.shapes import Shapes
from tracepoint.assign.values import (
    CannotFollowError,
    Input,
    Int,
    Items,
    Lost,
    Memory,
    Outside,
    Pointer,
    Shape,
    Slot,
    Value,
    Want,
    is_value,
)
from tracepoint.source import ast
from tracepoint.source.cexpr import write_expression
from tracepoint.source.cvalue import int_type_of
from tracepoint.source.functions import TRANSPARENT
from tracepoint.source.types import LLONG, ULLONG, IntType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tracepoint.diagnostics import Span
    from tracepoint.layout.format import EventFormat
    from tracepoint.model.field import Field
    from tracepoint.source.ctype import CType

    Form = Callable[["Machine", ast.Node, Want], Value]
    Handler = Callable[["Machine", ast.Call, Want], Value]

InputValue: TypeAlias = "int | bytes | str | list[int] | None"
Resolver: TypeAlias = "Callable[[Input], InputValue]"

NO_WANT = Want()
CONDITION = Want(role="condition")
MAX_STEPS = 200_000
MAX_DEPTH = 70
#: The longest of Linux 6.1 has 134 characters; a list that is followed has no other end.
MAX_INPUT = 1000


@dataclass(frozen=True, slots=True)
class Inputs:
    """Everything around an assignment that is not its statements.

    `layout` is the record; `fields` the declared members; `params` the types of TP_PROTO;
    `resolve` gives input values; `constant` the value of a name or None; `sizeof` the size of a
    type beyond integers.
    """

    layout: EventFormat
    fields: tuple[Field, ...]
    params: Mapping[str, CType]
    resolve: Resolver
    constant: Callable[[str], int | None] = lambda _name: None
    sizeof: Callable[[CType], int | None] | None = None


@dataclass(slots=True)
class Local:
    """A local variable: integers and arrays live in `slot`, anything else is a value."""

    ctype: CType
    slot: Slot | None = None
    value: Value | None = None
    node: ast.Node | None = None


@dataclass(slots=True)
class CutInput:
    """An input value that a store cut or reinterpreted: `value` became `stored` in `field`."""

    input_: str
    value: int
    stored: int
    field: str


@dataclass(frozen=True, slots=True)
class Unfollowed:
    """A piece of an assignment that could not be followed: where, its text, and why.

    `fields` are the members of the record that it may have stored to.
    """

    span: Span | None
    text: str
    reason: str
    fields: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.text}: {self.reason}"


@dataclass(slots=True)
class Machine:
    """One run of an assignment; `record` is replaced once the dynamic lengths are known.

    `forms` says what each kind of expression means, `functions` each function; `is_exploring`
    walks all branches to find the inputs; `is_target` says that the left side of an assignment is
    evaluated; `overrides` holds what was stored to things outside of the record; `strings` the text
    at made-up addresses.
    """

    inputs: Inputs
    forms: Mapping[type[ast.Node], Form] = field(default_factory=dict)
    functions: Mapping[str, Handler] = field(default_factory=dict)
    is_exploring: bool = False
    is_target: bool = False
    steps: int = 0
    depth: int = 0
    record: Memory = field(init=False)
    record_shape: Shape = field(init=False)
    shapes: Shapes = field(init=False)
    locals: dict[str, Local] = field(default_factory=dict)
    overrides: dict[str, Value] = field(default_factory=dict)
    strings: dict[int, bytes] = field(default_factory=dict)
    sources: dict[str, bytes | None] = field(default_factory=dict)
    ranges: list[tuple[int, int, str]] = field(default_factory=list)
    dynamic: dict[str, tuple[int, int]] = field(default_factory=dict)
    conversions: list[CutInput] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)
    unfollowed: dict[Unfollowed, None] = field(default_factory=dict)
    length_fields: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        layout = self.inputs.layout
        self.shapes = Shapes(layout.long_size, self.inputs.constant, self.inputs.sizeof)
        self.record_shape = Shape(0, members=self.shapes.of_record(layout), name="the record")
        size = max((f.offset + f.size for f in layout.fields), default=0)
        self.record = self.memory(bytes(size), "the record")
        self.ranges = [(f.offset, f.offset + f.size, f.name) for f in layout.fields]

    # Memory

    def memory(self, data: bytes, label: str, *, is_written: bool = False) -> Memory:
        """Return new memory with these bytes."""
        is_big = self.inputs.layout.is_big_endian
        return Memory(data, is_big_endian=is_big, label=label, is_written=is_written)

    def allocate(self, size: int) -> None:
        """Make the record `size` bytes long, keeping what is there."""
        self.record = self.memory(bytes(self.record.data).ljust(size, b"\0"), "the record")

    def field_at(self, memory: Memory, offset: int) -> str:
        """Return the field that holds the byte at `offset`, empty when there is none."""
        if memory is not self.record:
            return ""
        # Dynamic data come last and lie beyond the fixed members.
        for start, end, name in reversed(self.ranges):
            if start <= offset < end:
                return name
        return ""

    def address_of(self, data: bytes) -> int:
        """Return a made-up kernel address at which `data` is a string."""
        for address, text in self.strings.items():
            if text == data:
                return address
        base = 0xFFFF_FFFF_8220_0000 if self.shapes.long_size == 8 else 0xC120_0000
        address = base + 0x40 * len(self.strings)
        self.strings[address] = data
        return address

    def note(self, text: str) -> None:
        """Keep a remark for the reader, once."""
        self.notes.setdefault(text)

    # Expressions

    def step(self, amount: int = 1) -> None:
        """Count steps of work; raises CannotFollowError beyond the cap."""
        self.steps += amount
        if self.steps > MAX_STEPS:
            raise CannotFollowError(f"the assignment did not end within {MAX_STEPS} steps")

    def evaluate(self, node: ast.Node, want: Want = NO_WANT) -> Value:
        """Return what an expression denotes: an object, an address, or something outside."""
        self.step()
        form = self.forms.get(type(node))
        if form is None:
            raise CannotFollowError(f"{write_expression(node)[:60]} is not followed")
        self.depth += 1
        try:
            if self.depth > MAX_DEPTH:
                raise CannotFollowError(f"an expression nested more than {MAX_DEPTH} deep")
            return form(self, node, want)
        except RecursionError:
            raise CannotFollowError("an expression nested too deeply") from None
        finally:
            self.depth -= 1

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
            name = self.field_at(value.memory, value.offset)
            if name:
                self.note(f"{name} is read before anything is stored in it")
        return Int(value.memory.read_int(value.offset, shape.kind), shape.kind)

    def integer(self, node: ast.Node, want: Want = NO_WANT) -> Int:
        """Return the integer an expression has; raises CannotFollowError when it cannot be known."""
        return self.to_int(self.value(node, want), want)

    def to_int(self, value: Value, want: Want) -> Int:
        """Return a value as an integer; raises CannotFollowError."""
        match value:
            case Int():
                return value
            case Outside():
                return self.input_int(value, want)
            case Slot(shape=Shape(kind=kind)) if kind is not None:
                return Int(value.memory.read_int(value.offset, kind), kind)
            case Pointer(memory=memory, offset=offset):
                text = memory.string_at(offset) if memory is not self.record else b"the record"
                return Int(self.address_of(text), self.shapes.ulong)
            case Lost(reason=reason):
                raise CannotFollowError(reason)
            case Items():
                raise CannotFollowError("a table is used as a number")
        raise CannotFollowError("a struct is used as a number")

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
                declared = int_type_of(found.ctype, self.shapes.long_size) if found.ctype else None
                if isinstance(answer, int) and declared is not None:
                    # An int that was given as 1 << 32 is 0.
                    return declared.wrap(answer) != 0
                return self.to_int(answer, CONDITION).value != 0 if is_value(answer) else bool(answer)
        raise CannotFollowError("a condition that is not a number")

    def attempt(self, node: ast.Node, want: Want) -> Value | None:
        """While looking for inputs: evaluate and ask, so that both arms are seen."""
        try:
            found = self.value(node, want)
            if isinstance(found, Outside):
                self.ask(found, want)
        except CannotFollowError:
            return None
        return found

    # Inputs

    def canonical(self, node: ast.Node) -> ast.Node:
        """Return an expression with locals replaced by what they stand for."""
        match node:
            case ast.Name(name=name) if name in self.locals:
                return self._canonical_local(node, self.locals[name])
            case ast.Call(arguments=(first, *_)) if node.name in TRANSPARENT:
                return self.canonical(first)
        return ast.map_operands(node, self.canonical)

    def _canonical_local(self, node: ast.Node, cell: Local) -> ast.Node:
        if cell.node is not None:
            return cell.node
        if isinstance(cell.value, Outside):
            return cell.value.node
        slot = cell.slot
        if slot is not None and slot.shape.kind is not None and slot.memory.written[slot.offset]:
            value = slot.memory.read_int(slot.offset, slot.shape.kind)
            number = ast.Number(abs(value))
            return ast.Unary("-", number) if value < 0 else number
        return node

    def ask(self, outside: Outside, want: Want) -> InputValue | Value:
        """Ask for an input; raises CannotFollowError when it is not known."""
        node, ctype, role = outside.node, outside.ctype, want.role
        if role in ("bytes", "string"):
            while isinstance(node, ast.Cast) and node.ctype.pointers:
                node = node.operand
            if role == "bytes" and isinstance(node, ast.Unary) and node.op == "&":
                node = node.operand
        elif role in ("int", "condition") and ctype is not None and ctype.pointers:
            role = "pointer"
        text = write_expression(node)
        if len(text) > MAX_INPUT:
            raise CannotFollowError(f"{text[:40]}...: an input of more than {MAX_INPUT} characters")
        if text in self.overrides:
            return self.overrides[text]
        kind = want.kind or (int_type_of(ctype, self.shapes.long_size) if ctype else None)
        input_ = Input(
            text,
            node,
            str(ctype) if ctype is not None else "",
            role,
            kind.size if kind else 0,
            kind.is_signed if kind else True,
            want.field,
            want.length,
            want.element,
            want.is_swapped,
            outside.filler,
        )
        value = self.inputs.resolve(input_)
        if value is None:
            raise CannotFollowError(f"{text} has no value")
        return value

    def input_int(self, outside: Outside, want: Want) -> Int:
        """Return the integer value of an input."""
        value = self.ask(outside, want)
        if value is None or is_value(value):
            return self.to_int(value, want) if value is not None else Int(0, LLONG)
        text = write_expression(outside.node)
        match value:
            case str():
                data = value.encode("utf-8", "surrogateescape").rstrip(b"\0")
            case bytes():
                data = value.rstrip(b"\0")
            case list():
                data = repr(value).encode()
            case int():
                return self._input_number(outside, value, text, want)
        return Int(self.address_of(data), self.shapes.ulong, text)

    def _input_number(self, outside: Outside, value: int, text: str, want: Want) -> Int:
        declared = int_type_of(outside.ctype, self.shapes.long_size) if outside.ctype else None
        if declared is None:
            return Int(*_natural(value, want.kind), text)
        kept = declared.wrap(value)
        if kept != value:
            self.conversions.append(CutInput(text, value, kept, want.field))
        return Int(kept, declared, text)


def _natural(value: int, wanted: IntType | None) -> tuple[int, IntType]:
    """Give a value of unknown type the wanted one when it fits, else the least 64-bit one."""
    if wanted is not None and wanted.wrap(value) == value:
        return value, wanted
    kind = LLONG if value < 1 << 63 else ULLONG
    return kind.wrap(value), kind
