"""What an assignment runs against: the record, the locals, and whoever knows the inputs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

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
)
from tracepoint.source import ast
from tracepoint.source.cexpr import write_expression
from tracepoint.source.cvalue import LLONG, ULLONG, IntType, int_type_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tracepoint.layout.format import EventFormat
    from tracepoint.model.field import Field
    from tracepoint.source.ctype import CType

InputValue: TypeAlias = "int | bytes | str | list[int] | None"
Resolver: TypeAlias = "Callable[[Input], InputValue]"

# Functions and macros that give back what they were given, as far as a value is concerned.
TRANSPARENT = frozenset(
    {
        "READ_ONCE",
        "ACCESS_ONCE",
        "rcu_dereference",
        "rcu_dereference_raw",
        "rcu_dereference_check",
        "rcu_dereference_protected",
        "rcu_dereference_bh",
        "rcu_dereference_sched",
        "rcu_access_pointer",
        "likely",
        "unlikely",
        "data_race",
        "__perf_count",
        "__perf_task",
        "__builtin_expect",
        "no_printk",
    }
)


# The parts of an expression in which a local may stand.
_PARTS: dict[type[ast.Node], tuple[str, ...]] = {
    ast.Unary: ("operand",),
    ast.Binary: ("left", "right"),
    ast.Cast: ("operand",),
    ast.Call: ("function", "arguments"),
    ast.Member: ("base",),
    ast.Index: ("base", "index"),
    ast.Ternary: ("condition", "then", "otherwise"),
}


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
class Cell:
    """A local variable: integers and arrays live in `slot`, anything else is a value."""

    ctype: CType
    slot: Slot | None = None
    value: Value | None = None
    node: ast.Node | None = None


@dataclass(slots=True)
class Conversion:
    """An input value that a store cut or reinterpreted: `value` became `stored` in `field`."""

    input_: str
    value: int
    stored: int
    field: str


@dataclass(slots=True)
class State:
    """The variables of one run; `record` is replaced once the dynamic lengths are known."""

    inputs: Inputs
    is_exploring: bool = False
    record: Memory = field(init=False)
    shapes: Shapes = field(init=False)
    locals: dict[str, Cell] = field(default_factory=dict)
    overrides: dict[str, Value] = field(default_factory=dict)
    conversions: list[Conversion] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    strings: dict[int, bytes] = field(default_factory=dict)
    sources: dict[str, bytes | None] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)
    length_fields: set[str] = field(default_factory=set)
    ranges: list[tuple[int, int, str]] = field(default_factory=list)
    dynamic: dict[str, tuple[int, int]] = field(default_factory=dict)
    record_shape: Shape = field(init=False)

    def __post_init__(self) -> None:
        layout = self.inputs.layout
        self.shapes = Shapes(layout.long_size, self.inputs.constant, self.inputs.sizeof)
        members = self.shapes.of_record(layout)
        self.record_shape = Shape(0, members=members, name="the record")
        self.allocate(max((f.offset + f.size for f in layout.fields), default=0))
        self.ranges = [(f.offset, f.offset + f.size, f.name) for f in layout.fields]

    def allocate(self, size: int) -> None:
        """Make the record `size` bytes long, keeping what is there."""
        before = bytes(self.record.data) if hasattr(self, "record") else b""
        self.record = Memory(
            before.ljust(size, b"\0"), is_big_endian=self.inputs.layout.is_big_endian, label="the record"
        )

    def note(self, text: str) -> None:
        """Keep a remark for the reader, once."""
        if text not in self.notes:
            self.notes.append(text)

    def field_at(self, memory: Memory, offset: int) -> str:
        """Return the field that holds the byte at `offset`, empty when there is none."""
        if memory is not self.record:
            return ""
        # Dynamic data come last and lie beyond the fixed members.
        for start, end, name in reversed(self.ranges):
            if start <= offset < end:
                return name
        return ""

    def literal(self, data: bytes, label: str = "a literal") -> Memory:
        """Return new memory with these bytes."""
        return Memory(data, is_big_endian=self.inputs.layout.is_big_endian, label=label, is_written=True)

    def address_of(self, data: bytes) -> int:
        """Return a made-up kernel address at which `data` is a string."""
        for address, text in self.strings.items():
            if text == data:
                return address
        base = 0xFFFF_FFFF_8220_0000 if self.shapes.long_size == 8 else 0xC120_0000
        address = base + 0x40 * len(self.strings)
        self.strings[address] = data
        return address

    # Leaves

    def canonical(self, node: ast.Node) -> ast.Node:
        """Return an expression with locals replaced by what they stand for."""
        if isinstance(node, ast.Name) and node.name in self.locals:
            return self._canonical_local(node, self.locals[node.name])
        if isinstance(node, ast.Call) and node.name in TRANSPARENT and node.arguments:
            return self.canonical(node.arguments[0])
        changed: dict[str, Any] = {
            name: self._canonical_part(getattr(node, name)) for name in _PARTS.get(type(node), ())
        }
        return replace(node, **changed) if changed else node

    def _canonical_part(self, part: ast.Node | tuple[ast.Node, ...] | None) -> object:
        if isinstance(part, tuple):
            return tuple(self.canonical(item) for item in part)
        return self.canonical(part) if part is not None else None

    def _canonical_local(self, node: ast.Node, cell: Cell) -> ast.Node:
        if cell.node is not None:
            return cell.node
        match cell.value:
            case Outside(node=inner):
                return inner
        slot = cell.slot
        if slot is not None and slot.shape.kind is not None and slot.memory.written[slot.offset]:
            value = slot.memory.read_int(slot.offset, slot.shape.kind)
            number = ast.Number(abs(value))
            return ast.Unary("-", number) if value < 0 else number
        return node

    def ask(self, outside: Outside, want: Want) -> InputValue | Value:
        """Ask for an input; raises CannotFollowError when nobody knows it."""
        node = outside.node
        if want.role in ("bytes", "string"):
            while isinstance(node, ast.Cast) and node.ctype.pointers:
                node = node.operand
            if want.role == "bytes" and isinstance(node, ast.Unary) and node.op == "&":
                node = node.operand
        text = write_expression(node)
        if text in self.overrides:
            return self.overrides[text]
        kind = want.kind or (int_type_of(outside.ctype, self.shapes.long_size) if outside.ctype else None)
        input_ = Input(
            text,
            node,
            str(outside.ctype) if outside.ctype is not None else "",
            self._role(outside, want),
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

    @staticmethod
    def _role(outside: Outside, want: Want) -> str:
        ctype = outside.ctype
        if want.role in ("int", "condition") and ctype is not None and ctype.pointers:
            return "pointer"
        return want.role

    def input_int(self, outside: Outside, want: Want) -> Int:
        """Return the integer that an input stands for."""
        value = self.ask(outside, want)
        if not isinstance(value, (int, str, bytes, list)):
            return self.to_int(value, want) if value is not None else Int(0, LLONG)
        text = write_expression(outside.node)
        if isinstance(value, (str, bytes)):
            raw = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
            return Int(self.address_of(raw.rstrip(b"\0")), self.shapes.ulong, text)
        if isinstance(value, list):
            return Int(self.address_of(repr(value).encode()), self.shapes.ulong, text)
        declared = int_type_of(outside.ctype, self.shapes.long_size) if outside.ctype else None
        if declared is not None:
            kept = declared.wrap(value)
            if kept != value:
                self.conversions.append(Conversion(text, value, kept, want.field))
            return Int(kept, declared, text)
        return Int(*_natural(value, want.kind), text)

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


def _natural(value: int, wanted: IntType | None) -> tuple[int, IntType]:
    """Give a value of unknown type the wanted one when it fits, else the least 64-bit one."""
    if wanted is not None and wanted.wrap(value) == value:
        return value, wanted
    kind = LLONG if value < 1 << 63 else ULLONG
    return kind.wrap(value), kind
