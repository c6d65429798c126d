"""C expressions of a print format to values that hold ops.

Types are known when an expression is lowered, so that ops convert only where C does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.errors import SourceError
from tracepoint.layout.corefile import LASTING_VARIABLES
from tracepoint.layout.kernel_structs import kernel_layout
from tracepoint.printk import operators, ops
from tracepoint.printk.scope import Scope
from tracepoint.printk.values import (
    IntValue,
    MemoryValue,
    PlaceValue,
    TextValue,
    Value,
    constant,
    literal,
    moved,
    text_of,
    with_ctype,
)
from tracepoint.record.field import parse_field_type
from tracepoint.source import ast
from tracepoint.source.cexpr import write_expression
from tracepoint.source.ctype import CType
from tracepoint.source.cvalue import number_type
from tracepoint.source.statements import Declare, Run, Statement, Unreadable, statements_of
from tracepoint.source.types import INT, UCHAR, IntType

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.layout.format import EventFormat, FieldFormat
    from tracepoint.printk.scope import Layouts

RECORD_NAMES = frozenset({"REC", "__entry", "field"})
# They have no place in a record: the kernel reads them when it prints the line.
KERNEL_VARIABLES = frozenset({"jiffies", *LASTING_VARIABLES, "nr_cpu_ids"})
_TRUTHS = {"true": 1, "false": 0}
_WORD = IntType(4, is_signed=False)


class Lowering(Scope):
    """Lowers expressions over one event's record; `calls` lowers function calls."""

    def __init__(
        self,
        form: EventFormat,
        constants: Callable[[str], int | None],
        layouts: Layouts,
        calls: Callable[[Lowering, ast.Call], Value],
    ) -> None:
        super().__init__(form, constants, layouts)
        self.calls = calls

    def pointed_to(self, pointer: Value, node: ast.Node) -> Value:
        """Return what a kernel pointer points to: never known."""
        if isinstance(pointer, IntValue) and pointer.is_unknown:
            return pointer
        return self.unknown(f"`{_short(node)}`: memory that a kernel pointer points to")

    def value(self, node: ast.Node) -> Value:  # noqa: C901, PLR0912  one case a kind of node
        """Lower an expression."""
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
                return self.calls(self, node)
            case ast.CompoundLiteral():
                return self.unknown("a compound literal outside an index")
            case ast.StatementExpression():
                return self.statement_expression(node)
        return self.unknown(f"`{_short(node)}`")

    def integer(self, node: ast.Node) -> IntValue:
        """Lower an expression that must be an integer."""
        return self.as_integer(self.value(node), f"`{_short(node)}`")

    def name(self, name: str) -> Value:
        """Lower a name: the record, a constant, or a variable of the kernel."""
        if name in self.locals:
            return self.locals[name]
        if name in RECORD_NAMES:
            return MemoryValue(CType("struct <record>"), ops.At(0))
        if name == "NULL":
            return constant(0, self.ulong, CType("void", 1))
        if name in _TRUTHS:
            return constant(_TRUTHS[name], INT)
        found = self.constants(name)
        if found is not None:
            return constant(found, number_type(found, is_decimal=False) if found >= 0 else INT)
        return self.runtime_name(name)

    def runtime_name(self, name: str) -> Value:
        """Lower a name that only the facts can tell."""
        if name not in self.reasons:
            self.reasons.append(f"the name {name}")
        if name in KERNEL_VARIABLES:
            reason = f"{name}, a variable of the kernel that was read when the line was printed"
            return IntValue(self.ulong, ops.Fact("variable", name, self.ulong, ops.Unknown(reason)))
        found = ops.Fact("constant", name, INT, ops.Unknown(f"the value of {name}"))
        return IntValue(INT, ops.Fact("variable", name, INT, found))

    # -- members and elements -------------------------------------------------------------

    def is_record(self, node: ast.Node) -> bool:
        """Return whether an expression is the record's address."""
        return isinstance(node, ast.Name) and node.name in RECORD_NAMES

    def member(self, node: ast.Member) -> Value:
        """Lower `base->name` or `base.name`."""
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
            return self.pointed_to(base, node)
        if isinstance(base, TextValue):
            return self.unknown(f"`{_short(node)}`")
        if base.ctype.base == "struct <record>":
            return self.member(ast.Member(ast.Name("REC"), node.name, is_arrow=True))
        found = self.member_of(base.ctype.base, node.name)
        if found is None:
            return self.unknown(f"the layout of {base.ctype.base}")
        return self.at(moved(base.op, ops.Const(found.offset), 1), found.ctype)

    def word(self, field: FieldFormat) -> IntValue:
        """Lower the `__data_loc` or `__rel_loc` word itself."""
        return IntValue(_WORD, ops.LoadAt(ops.At(field.offset), _WORD))

    def field(self, field: FieldFormat) -> Value:
        """Lower `REC->name`."""
        offset, size = field.offset, field.size
        if field.is_data_loc:
            return self.word(field)
        ctype = parse_field_type(field)
        if ctype.array:
            return MemoryValue(self.element_type(field, ctype), ops.At(offset), size, is_array=True)
        if (
            size not in (1, 2, 4, 8)
            or (not ctype.pointers and kernel_layout(ctype.base, self.long_size) is not None)
            or (not ctype.pointers and ctype.base.startswith(("struct ", "union ")))
        ):
            return PlaceValue(ctype, ops.At(offset), size)
        kind = IntType(size, is_signed=field.is_signed)
        return IntValue(kind, ops.Load(offset, kind), ctype if ctype.pointers else None)

    def element_type(self, field: FieldFormat, ctype: CType) -> CType:
        """Return the type of a field's elements; a typedef that is not known counts by its size."""
        inner = CType(ctype.base, ctype.pointers, ctype.array[1:], ctype.qualifiers)
        if inner.array or self.size_of(inner) is not None or not ctype.array[0].isdigit():
            return inner
        size = field.size // max(int(ctype.array[0]), 1)
        if ctype.base.startswith(("struct ", "union ")) or size not in (1, 2, 4, 8):
            return inner
        return CType(f"{'s' if field.is_signed else 'u'}{8 * size}")

    def at(self, place: ops.PlaceOp, ctype: CType) -> Value:
        """Return what is at a place, by its type."""
        if ctype.array:
            inner = CType(ctype.base, ctype.pointers, ctype.array[1:], ctype.qualifiers)
            return MemoryValue(inner, place, self.size_of(ctype), is_array=True)
        kind = self.kind_of(ctype)
        if kind is None or kind.size > 8:
            return PlaceValue(ctype, place, self.size_of(ctype))
        return IntValue(kind, ops.LoadAt(place, kind), ctype if ctype.pointers else None)

    def index(self, node: ast.Index) -> Value:
        """Lower `base[index]`, tables of compound literals included."""
        index = self.integer(node.index)
        if isinstance(node.base, ast.CompoundLiteral):
            return self.table(node.base, index)
        base = self.value(node.base)
        if isinstance(base, IntValue):
            return self.pointed_to(base, node)
        if not isinstance(base, MemoryValue):
            return self.unknown(f"`{_short(node)}`")
        size = self.size_of(base.ctype)
        if size is None:
            return self.unknown(f"the size of {base.ctype}")
        return self.at(moved(base.op, index.op, size), base.ctype)

    def table(self, node: ast.CompoundLiteral, index: IntValue) -> Value:
        """Lower `(const char *[]){ "a", "b" }[i]`."""
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
        numbers = [(key, value.op) for key, value in entries.items() if isinstance(value, IntValue)]
        if len(numbers) == len(entries):
            kind = self.kind_of(CType(node.ctype.base, node.ctype.pointers)) or INT
            return IntValue(kind, ops.Convert(ops.PickNumber(index.op, tuple(numbers)), kind))
        texts = tuple((key, text_of(value)) for key, value in entries.items())
        return TextValue(ops.PickText(index.op, texts, ops.Unknown("an index outside a table")))

    # -- operators ------------------------------------------------------------------------

    def unary(self, op: str, operand: ast.Node) -> Value:
        """Lower a prefix operator."""
        if op == "&":
            return self.address(operand)
        value = self.value(operand)
        if op == "*":
            if isinstance(value, MemoryValue):
                return self.at(value.op, value.ctype)
            return self.pointed_to(value, operand)
        if op == "!":
            return operators.negated(operators.truth(value))
        if op not in ("+", "-", "~"):
            return self.unknown(f"the operator {op}")
        return operators.unary(op, self.as_integer(value, f"`{_short(operand)}`"))

    def address(self, operand: ast.Node) -> Value:
        """Lower `&operand`."""
        if isinstance(operand, ast.Unary) and operand.op == "*":
            return self.value(operand.operand)
        if isinstance(operand, ast.Member) and self.is_record(operand.base) and operand.name in self.form:
            field = self.form[operand.name]
            ctype = parse_field_type(field)
            return MemoryValue(ctype, ops.At(field.offset), field.size)
        if isinstance(operand, ast.Index) and not isinstance(operand.base, ast.CompoundLiteral):
            return operators.binary(self, "+", self.value(operand.base), self.integer(operand.index))
        value = self.value(operand)
        if isinstance(value, PlaceValue | MemoryValue):
            return MemoryValue(value.ctype, value.op, value.extent)
        if isinstance(operand, ast.Member) and isinstance(value, IntValue) and not value.is_unknown:
            return self.member_address(operand)
        return self.pointed_to(value, operand)

    def member_address(self, node: ast.Member) -> Value:
        """Lower `&base->name` for a scalar member of a known struct."""
        base = self.value(node.base)
        if isinstance(base, MemoryValue | PlaceValue):
            found = self.member_of(base.ctype.base, node.name)
            if found is not None:
                return MemoryValue(found.ctype, moved(base.op, ops.Const(found.offset), 1))
        return self.unknown(f"`&{_short(node)}`")

    def ternary(self, node: ast.Ternary) -> Value:
        """Lower `?:`."""
        condition = self.value(node.condition)
        then = self.value(node.then) if node.then is not None else condition
        return operators.choice(self, operators.truth(condition), then, self.value(node.otherwise))

    def cast(self, ctype: CType, value: Value) -> Value:
        """Lower a cast."""
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
            return IntValue(UCHAR, ops.Not(ops.Not(value.op)))
        return operators.converted(value, kind)

    def guess_kind(self, ctype: CType, value: Value) -> IntType | None:
        """Return the type of a typedef that is not known, when the value cannot depend on it."""
        if isinstance(value, IntValue) and value.constant is not None and 0 <= value.constant < 128:
            return value.kind
        del ctype
        return None

    def sizeof(self, node: ast.SizeOf) -> Value:
        """Lower `sizeof`."""
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

        self.reasons.append(f"sizeof({what})")
        return IntValue(self.ulong, ops.Fact("sizeof", what, self.ulong, ops.Unknown(f"sizeof({what})")))

    # -- statement expressions ---------------------------------------------------------------

    def statement_expression(self, node: ast.StatementExpression) -> Value:
        """Lower `({ type name = value; ...; result; })`, where it is only that."""
        try:
            body = statements_of(node)
        except SourceError as error:
            return self.unknown(f"a statement expression: {error.message}")
        if not body:
            return self.unknown("an empty statement expression")
        saved = dict(self.locals)
        try:
            for statement in body[:-1]:
                if not isinstance(statement, Declare) or statement.initial is None or statement.ctype.array:
                    return self.unread(node, statement)
                value = self.value(statement.initial)
                self.locals[statement.name] = self.stored(statement.ctype, value)
            last = body[-1]
            return self.value(last.expression) if isinstance(last, Run) else self.unread(node, last)
        finally:
            self.locals = saved

    def unread(self, node: ast.StatementExpression, statement: Statement) -> Value:
        """Return the value of a statement expression with a statement that is not understood."""
        if isinstance(statement, Unreadable):
            return self.unknown(f"a statement expression: {statement.reason}")
        return self.unknown(f"a statement in `({{ {node.text[:40]} ... }})`")

    def stored(self, ctype: CType, value: Value) -> Value:
        """Lower what a variable of a type keeps of a value."""
        if ctype.base.startswith("typeof"):
            return value
        return self.cast(ctype, value) if isinstance(value, IntValue) or ctype.pointers else value


def _short(node: ast.Node | None) -> str:
    text = write_expression(node) if node is not None else ""
    return text if len(text) <= 60 else text[:57] + "..."
