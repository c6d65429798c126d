"""C expressions of a print format to closures over a record.

Types are known when an expression is compiled, so that a closure converts only where C does.
What cannot be known becomes a value that raises `UnknownPartError` when it is read: a line whose
ternary never reaches it still renders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.printk import operators
from tracepoint.printk.facts import LASTING_VARIABLES, UnknownPartError
from tracepoint.printk.structs import MEMBERS, SIZES
from tracepoint.printk.values import (
    IntValue,
    MemoryValue,
    PlaceValue,
    Record,
    TextValue,
    Value,
    constant,
    literal,
    memory_of,
    text_of,
    unknown,
    unpacker,
    with_ctype,
)
from tracepoint.record.field import parse_field_type
from tracepoint.source import ast
from tracepoint.source.cexpr import write_expression
from tracepoint.source.ctype import CType
from tracepoint.source.cvalue import (
    CHAR,
    INT,
    LLONG,
    UCHAR,
    IntType,
    int_type_of,
    is_build_check,
    number_type,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.layout.format import EventFormat, FieldFormat
    from tracepoint.layout.structs import Placed
    from tracepoint.printk.structs import Layouts
    from tracepoint.printk.values import Location

    Where = Callable[[Record], Location | None]

RECORD_NAMES = frozenset({"REC", "__entry", "field"})
# They have no place in a record: the kernel reads them when it prints the line.
KERNEL_VARIABLES = frozenset({"jiffies", *LASTING_VARIABLES, "nr_cpu_ids"})
_TRUTHS = {"true": 1, "false": 0}


class Evaluator:
    """Compiles expressions over one event's record.

    `reasons` collects what could not be understood, in the order it was met; `calls` compiles
    function calls and is set by the program that owns the evaluator.
    """

    def __init__(self, form: EventFormat, constants: Callable[[str], int | None], layouts: Layouts) -> None:
        self.form = form
        self.layouts = layouts
        self.constants = constants
        self.long_size = form.long_size
        self.is_big_endian = form.is_big_endian
        # Plain char is unsigned since Linux 6.2 (-funsigned-char): the fields tell.
        chars = (f.is_signed for f in form.fields if f.element_ctype in ("char", "const char"))
        self.char = CHAR if next(chars, True) else UCHAR
        self.ulong = IntType(form.long_size, is_signed=False)
        self.reasons: list[str] = []
        self.locals: dict[str, Value] = {}
        self.calls: Callable[[Evaluator, ast.Call], Value] | None = None

    # -- what is not known ----------------------------------------------------------------

    def unknown(self, reason: str) -> IntValue:
        """Return a value that cannot be read, and remember why."""
        if reason not in self.reasons:
            self.reasons.append(reason)
        return unknown(reason, LLONG)

    def behind(self, pointer: Value, node: ast.Node) -> Value:
        """Return what a kernel pointer points to: never known."""
        if isinstance(pointer, IntValue) and pointer.is_unknown:
            return pointer
        return self.unknown(f"`{_short(node)}`: memory that a kernel pointer points to")

    def kind_of(self, ctype: CType) -> IntType | None:
        """Return the integer type of a C type on this ABI."""
        if ctype.base in MEMBERS and not ctype.pointers:
            return None
        if ctype.base == "char" and not ctype.pointers and not ctype.array:
            return self.char
        return int_type_of(ctype, self.long_size)

    def size_of(self, ctype: CType) -> int | None:
        """Return the size in bytes of a type, None when it is not known."""
        if ctype.array:
            inner = self.size_of(CType(ctype.base, ctype.pointers, ctype.array[1:]))
            return inner * int(ctype.array[0]) if inner is not None and ctype.array[0].isdigit() else None
        if ctype.pointers:
            return self.long_size
        if ctype.base == "void":
            return 1
        if ctype.base in SIZES:
            return SIZES[ctype.base]
        if is_build_check(ctype):
            return 0
        layout = self.layouts(ctype.base)
        if layout is not None:
            return layout.size
        kind = int_type_of(ctype, self.long_size)
        return kind.size if kind else None

    # -- expressions ----------------------------------------------------------------------

    def value(self, node: ast.Node) -> Value:  # noqa: C901, PLR0912  one case a kind of node
        """Compile an expression."""
        match node:
            case ast.Number(value=number, suffix=suffix, is_decimal=is_decimal):
                kind = number_type(number, suffix, is_decimal=is_decimal, long_size=self.long_size)
                return constant(kind.wrap(number), kind)
            case ast.Char(value=number):
                return constant(number, INT)
            case ast.String(pieces=(), value=text):
                return literal(text)
            case ast.Name(name=name):
                return self.name(name)
            case ast.Member():
                return self.member(node)
            case ast.Index():
                return self.index(node)
            case ast.Unary(op=op, operand=operand):
                return self.unary(op, operand)
            case ast.Binary(op=op, left=left, right=right):
                return operators.binary(self, op, self.value(left), self.value(right))
            case ast.Ternary():
                return self.ternary(node)
            case ast.Cast(ctype=ctype, operand=operand):
                return self.cast(ctype, self.value(operand))
            case ast.SizeOf():
                return self.sizeof(node)
            case ast.Comma(right=right):
                return self.value(right)
            case ast.Call():
                return self.calls(self, node) if self.calls else self.unknown(f"the function {node.name}()")
            case ast.CompoundLiteral():
                return self.unknown("a compound literal outside an index")
            case ast.StatementExpression():
                return self.statement_expression(node)
        return self.unknown(f"`{_short(node)}`")

    def integer(self, node: ast.Node) -> IntValue:
        """Compile an expression that must be an integer."""
        return self.as_integer(self.value(node), node)

    def as_integer(self, value: Value, node: ast.Node | None = None) -> IntValue:
        """Return a value as an integer; an address of the record itself is not known."""
        if isinstance(value, IntValue):
            return value
        what = f"`{_short(node)}`" if node is not None else "a pointer"
        return self.unknown(f"{what} used as a number")

    def name(self, name: str) -> Value:
        """Compile a name: the record, a constant, or a variable of the kernel."""
        if name in self.locals:
            return self.locals[name]
        if name in RECORD_NAMES:
            return MemoryValue(CType("struct <record>"), lambda record: (record.data, 0))
        if name == "NULL":
            return constant(0, self.ulong, CType("void", 1))
        if name in _TRUTHS:
            return constant(_TRUTHS[name], INT)
        found = self.constants(name)
        if found is not None:
            return constant(found, number_type(found, is_decimal=False) if found >= 0 else INT)
        return self.runtime_name(name)

    def runtime_name(self, name: str) -> Value:
        """Compile a name that only the facts can tell."""
        if name not in self.reasons:
            self.reasons.append(f"the name {name}")
        is_variable = name in KERNEL_VARIABLES
        kind = self.ulong if is_variable else INT
        what = f"the value of {name}"
        if is_variable:
            what = f"{name}, a variable of the kernel that was read when the line was printed"

        def read(record: Record) -> int:
            number = record.facts.variables.get(name)
            if number is None and not is_variable:
                number = record.facts.constants(name)
            if number is None:
                raise UnknownPartError(what)
            return number

        return IntValue(kind, read)

    def place_of(self, struct: str, member: str) -> Placed | None:
        """Return where a struct's member is, if its layout is known and it is not a bit-field."""
        if struct in MEMBERS:
            return MEMBERS[struct].get(member)
        layout = self.layouts(struct)
        placed = layout.members.get(member) if layout is not None else None
        return placed if placed is not None and not placed.bits else None

    # -- members and elements -------------------------------------------------------------

    def is_record(self, node: ast.Node) -> bool:
        """Whether an expression is the record's address."""
        return isinstance(node, ast.Name) and node.name in RECORD_NAMES

    def member(self, node: ast.Member) -> Value:
        """Compile `base->name` or `base.name`."""
        if node.is_arrow and self.is_record(node.base):
            if node.name in self.form:
                return self.field(self.form[node.name])
            for prefix in ("__data_loc_", "__rel_loc_"):
                name = node.name.removeprefix(prefix)
                if name != node.name and name in self.form:
                    return self.word(self.form[name])
            return self.unknown(f"the field {node.name}, which the record lacks")
        base = self.value(node.base)
        if isinstance(base, IntValue):
            return self.behind(base, node)
        if isinstance(base, TextValue):
            return self.unknown(f"`{_short(node)}`")
        if base.ctype.base == "struct <record>":
            return self.member(ast.Member(ast.Name("REC"), node.name, is_arrow=True))
        found = self.place_of(base.ctype.base, node.name)
        if found is None:
            return self.unknown(f"the layout of {base.ctype.base}")
        return self.at(shifted(base.read, found.offset), found.ctype)

    def word(self, field: FieldFormat) -> IntValue:
        """Compile the `__data_loc` or `__rel_loc` word itself."""
        return self.scalar(IntType(4, is_signed=False), lambda record: (record.data, field.offset))

    def field(self, field: FieldFormat) -> Value:
        """Compile `REC->name`."""
        offset, size = field.offset, field.size
        if field.is_data_loc:
            return self.word(field)
        ctype = parse_field_type(field)
        if ctype.array:
            return MemoryValue(self.element_type(field, ctype), shared_place(offset), size, is_array=True)
        if (
            size not in (1, 2, 4, 8)
            or (ctype.base in MEMBERS and not ctype.pointers)
            or (ctype.base.startswith(("struct ", "union ")) and not ctype.pointers)
        ):
            return PlaceValue(ctype, shared_place(offset), size)
        kind = IntType(size, is_signed=field.is_signed)
        unpack = unpacker(kind, is_big_endian=self.is_big_endian)
        return IntValue(
            kind, lambda record: unpack(record.data, offset)[0], None, ctype if ctype.pointers else None
        )

    def element_type(self, field: FieldFormat, ctype: CType) -> CType:
        """Return the type of a field's elements; a typedef that is not known counts by its size."""
        inner = CType(ctype.base, ctype.pointers, ctype.array[1:], ctype.qualifiers)
        if inner.array or self.size_of(inner) is not None or not ctype.array[0].isdigit():
            return inner
        size = field.size // max(int(ctype.array[0]), 1)
        if ctype.base.startswith(("struct ", "union ")) or size not in (1, 2, 4, 8):
            return inner
        return CType(f"{'s' if field.is_signed else 'u'}{8 * size}")

    def scalar(self, kind: IntType, where: Where, ctype: CType | None = None) -> IntValue:
        """Return the integer that stands at a place."""
        unpack = unpacker(kind, is_big_endian=self.is_big_endian)
        size = kind.size

        def read(record: Record) -> int:
            place = where(record)
            if place is None:
                raise UnknownPartError("a NULL pointer is dereferenced")
            data, at = place
            if at < 0 or at + size > len(data):
                raise UnknownPartError("a value outside the record")
            return unpack(data, at)[0]

        return IntValue(kind, read, None, ctype)

    def at(self, where: Where, ctype: CType) -> Value:
        """Return what stands at a place, by its type."""
        if ctype.array:
            inner = CType(ctype.base, ctype.pointers, ctype.array[1:], ctype.qualifiers)
            return MemoryValue(inner, where, self.size_of(ctype), is_array=True)
        kind = self.kind_of(ctype)
        if kind is None or kind.size > 8:
            return PlaceValue(ctype, where, self.size_of(ctype))
        return self.scalar(kind, where, ctype if ctype.pointers else None)

    def index(self, node: ast.Index) -> Value:
        """Compile `base[index]`, tables of compound literals included."""
        index = self.integer(node.index)
        if isinstance(node.base, ast.CompoundLiteral):
            return self.table(node.base, index)
        base = self.value(node.base)
        if isinstance(base, IntValue):
            return self.behind(base, node)
        if not isinstance(base, MemoryValue):
            return self.unknown(f"`{_short(node)}`")
        size = self.size_of(base.ctype)
        if size is None:
            return self.unknown(f"the size of {base.ctype}")
        return self.at(operators.moved(base.read, index.read, size), base.ctype)

    def table(self, node: ast.CompoundLiteral, index: IntValue) -> Value:
        """Compile `(const char *[]){ "a", "b" }[i]`."""
        entries: dict[int, Value] = {}
        at = 0
        for item in node.items.items:
            inner = item
            if isinstance(item, ast.Assign) and isinstance(item.target, ast.Index):
                key = self.integer(item.target.index)
                if key.constant is None:
                    return self.unknown("a table with an index that is not a constant")
                at, inner = key.constant, item.value
            entries[at] = self.value(inner)
            at += 1
        values = list(entries.values())
        which = index.read

        def pick(record: Record) -> int:
            number = which(record)
            if number not in entries:
                raise UnknownPartError("an index outside a table")
            return number

        if all(isinstance(value, IntValue) for value in values):
            readers = {key: value.read for key, value in entries.items() if isinstance(value, IntValue)}
            ctype = CType(node.ctype.base, node.ctype.pointers)
            kind = self.kind_of(ctype) or INT
            return IntValue(kind, lambda record: kind.wrap(readers[pick(record)](record)))
        texts = {key: text_of(value) for key, value in entries.items()}
        return TextValue(lambda record: texts[pick(record)](record))

    # -- operators ------------------------------------------------------------------------

    def unary(self, op: str, operand: ast.Node) -> Value:
        """Compile a prefix operator."""
        if op == "&":
            return self.address(operand)
        value = self.value(operand)
        if op == "*":
            if isinstance(value, MemoryValue):
                return self.at(value.read, value.ctype)
            return self.behind(value, operand)
        if op == "!":
            return operators.negated(self.truth(value))
        if op not in ("+", "-", "~"):
            return self.unknown(f"the operator {op}")
        return operators.unary(op, self.as_integer(value, operand))

    def address(self, operand: ast.Node) -> Value:
        """Compile `&operand`."""
        if isinstance(operand, ast.Unary) and operand.op == "*":
            return self.value(operand.operand)
        if isinstance(operand, ast.Member) and self.is_record(operand.base) and operand.name in self.form:
            field = self.form[operand.name]
            ctype = parse_field_type(field)
            return MemoryValue(ctype, shared_place(field.offset), field.size)
        if isinstance(operand, ast.Index) and not isinstance(operand.base, ast.CompoundLiteral):
            return operators.binary(self, "+", self.value(operand.base), self.integer(operand.index))
        value = self.value(operand)
        if isinstance(value, PlaceValue | MemoryValue):
            return MemoryValue(value.ctype, value.read, value.extent)
        if isinstance(operand, ast.Member) and isinstance(value, IntValue) and not value.is_unknown:
            return self.member_address(operand)
        return self.behind(value, operand)

    def member_address(self, node: ast.Member) -> Value:
        """Compile `&base->name` for a scalar member of a known struct."""
        base = self.value(node.base)
        if isinstance(base, MemoryValue | PlaceValue):
            found = self.place_of(base.ctype.base, node.name)
            if found is not None:
                return MemoryValue(found.ctype, shifted(base.read, found.offset))
        return self.unknown(f"`&{_short(node)}`")

    def truth(self, value: Value) -> IntValue:
        """Return whether a value counts as true, as an int."""
        if isinstance(value, IntValue):
            return value
        if isinstance(value, TextValue):
            text = value.read
            return IntValue(INT, lambda record: int(text(record) is not None))
        where = memory_of(value)
        return IntValue(INT, lambda record: int(where(record) is not None))

    def ternary(self, node: ast.Ternary) -> Value:
        """Compile `?:`."""
        condition = self.value(node.condition)
        then = self.value(node.then) if node.then is not None else condition
        return operators.choice(self, self.truth(condition), then, self.value(node.otherwise))

    def cast(self, ctype: CType, value: Value) -> Value:
        """Compile a cast."""
        if ctype.pointers:
            target = CType(ctype.base, ctype.pointers - 1, ctype.array, ctype.qualifiers)
            if isinstance(value, IntValue):
                return operators.converted(value, self.ulong, ctype)
            return with_ctype(value, target) if isinstance(value, MemoryValue) else value
        if ctype.base == "void":
            return value
        kind = self.kind_of(ctype)
        if kind is None:
            kind = self.guess_kind(ctype, value)
        if kind is None or not isinstance(value, IntValue):
            return value if isinstance(value, PlaceValue) else self.unknown(f"a cast to {ctype}")
        if ctype.base == "bool":
            read = value.read
            return IntValue(UCHAR, lambda record: int(bool(read(record))))
        return operators.converted(value, kind)

    def guess_kind(self, ctype: CType, value: Value) -> IntType | None:
        """Return the type of a typedef that is not known, when the value cannot depend on it."""
        if isinstance(value, IntValue) and value.constant is not None and 0 <= value.constant < 128:
            return value.kind
        del ctype
        return None

    def sizeof(self, node: ast.SizeOf) -> Value:
        """Compile `sizeof`."""
        size: int | None = None
        what = str(node.ctype)
        if node.ctype is not None:
            size = self.size_of(node.ctype)
        elif node.operand is not None:
            what = _short(node.operand)
            value = self.value(node.operand)
            if isinstance(value, IntValue) and not value.is_unknown:
                size = value.kind.size
            elif isinstance(value, MemoryValue):
                size = value.extent if value.is_array else self.long_size
            elif isinstance(value, PlaceValue):
                size = value.extent
        if size is not None:
            return constant(size, self.ulong)

        def read(record: Record) -> int:
            found = record.facts.sizeof(what)
            if found is None:
                raise UnknownPartError(f"sizeof({what})")
            return found

        self.reasons.append(f"sizeof({what})")
        return IntValue(self.ulong, read)

    def statement_expression(self, node: ast.StatementExpression) -> Value:
        """Compile `({ ... })` when it is a single expression, as macros often make."""
        from tracepoint.printk.statements import compile_statements  # noqa: PLC0415  it needs this module

        return compile_statements(self, node)


def _short(node: ast.Node | None) -> str:
    text = write_expression(node) if node is not None else ""
    return text if len(text) <= 60 else text[:57] + "..."


def shared_place(offset: int) -> Where:
    """Return the function that gives a fixed place in the record."""
    return lambda record: (record.data, offset)


def shifted(where: Where, offset: int) -> Where:
    """Return the function that gives a place some bytes further on."""

    def read(record: Record) -> Location | None:
        place = where(record)
        return None if place is None else (place[0], place[1] + offset)

    return read
