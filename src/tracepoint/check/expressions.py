"""Types and names of print expressions, in C's sense: what a conversion really gets."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.check.syntax import RECORD_NAMES, entry_field
from tracepoint.errors import TracepointError
from tracepoint.model.field import ArrayField, ScalarField, StructField
from tracepoint.model.vocabulary import FIELD_HELPERS
from tracepoint.source import ast
from tracepoint.source.ctype import parse_ctype
from tracepoint.source.cvalue import binary_type, common_type, int_type_of, number_type, promote
from tracepoint.source.types import INT, UINT, ULLONG, IntType

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tracepoint.model.field import Field
    from tracepoint.source.ctype import CType

_STRINGS = frozenset(
    [
        "__print_flags",
        "__print_flags_u64",
        "__print_symbolic",
        "__print_symbolic_u64",
        "__print_hex",
        "__print_hex_str",
        "__print_hex_dump",
        "__print_array",
        "__print_dynamic_array",
        "__get_str",
        "__get_rel_str",
        "__get_bitmask",
        "__get_rel_bitmask",
        "__get_cpumask",
        "__get_rel_cpumask",
    ]
)
_POINTERS = frozenset(
    ["__get_dynamic_array", "__get_rel_dynamic_array", "__get_sockaddr", "__get_rel_sockaddr", "__get_buf"]
)
_NUMBERS: dict[str, IntType] = {
    "__get_dynamic_array_len": UINT,
    "__get_rel_dynamic_array_len": UINT,
    "__print_ns_to_secs": ULLONG,
    "__print_ns_without_secs": UINT,
}
_CHARS = frozenset({"char", "unsigned char", "u8", "__u8", "s8", "uint8_t", "signed char"})


class Shape(enum.Enum):
    """What kind of value an expression has, as far as a conversion cares."""

    INTEGER = "an integer"
    STRING = "a string"
    POINTER = "a pointer"
    STRUCT = "a struct"


@dataclass(frozen=True, slots=True)
class ExprType:
    """The type of an expression: its shape, and the integer type when it is one."""

    shape: Shape
    integer: IntType | None = None
    name: str = ""


_STRING = ExprType(Shape.STRING)
_POINTER = ExprType(Shape.POINTER)


def expression_type(node: ast.Node, fields: Mapping[str, Field], long_size: int) -> ExprType | None:
    """Return the type of a print expression, None when it cannot be known from the header.

    `long_size` is 4 or 8 bytes.
    """
    return _Typer(fields, long_size).of(node)


class _Typer:
    """Types expressions over one record."""

    def __init__(self, fields: Mapping[str, Field], long_size: int) -> None:
        self.fields = fields
        self.long_size = long_size

    def of(self, node: ast.Node) -> ExprType | None:
        name = entry_field(node)
        if name:
            return self.of_field(self.fields.get(name))
        match node:
            case ast.String():
                return _STRING
            case ast.Call():
                return self.of_call(node)
            case ast.Cast(ctype=ctype):
                return self.of_ctype(ctype)
            case ast.Index(base=base):
                return self.of_element(base)
            case ast.Comma(right=right):
                return self.of(right)
            case ast.Ternary():
                return self.of_ternary(node)
            case ast.Unary(op="&"):
                return _POINTER
            case _:
                return self.of_number(node)

    def of_number(self, node: ast.Node) -> ExprType | None:
        match node:
            case ast.Number(value=value, suffix=suffix, is_decimal=is_decimal):
                return _integer(number_type(value, suffix, is_decimal=is_decimal, long_size=self.long_size))
            case ast.Char() | ast.Unary(op="!"):
                return _integer(INT)
            case ast.SizeOf():
                return _integer(IntType(self.long_size, is_signed=False), "size_t")
            case ast.Unary(op="-" | "~" | "+", operand=operand):
                inner = self.of(operand)
                return _integer(promote(inner.integer)) if inner and inner.integer else None
            case ast.Binary():
                return self.of_binary(node)
        return None

    def of_binary(self, node: ast.Binary) -> ExprType | None:
        left, right = self.of(node.left), self.of(node.right)
        if node.op in {"&&", "||", "==", "!=", "<", ">", "<=", ">="}:
            return _integer(INT)
        if left is None or right is None:
            return None
        if left.integer and right.integer:
            return _integer(binary_type(node.op, left.integer, right.integer))
        pointers = [t for t in (left, right) if t.shape in {Shape.POINTER, Shape.STRING}]
        return pointers[0] if len(pointers) == 1 else None

    def of_ternary(self, node: ast.Ternary) -> ExprType | None:
        then = self.of(node.then if node.then is not None else node.condition)
        otherwise = self.of(node.otherwise)
        if then is None or otherwise is None:
            return None
        if then.integer and otherwise.integer:
            return _integer(common_type(then.integer, otherwise.integer))
        return then if then.shape is otherwise.shape else None

    def of_call(self, node: ast.Call) -> ExprType | None:
        if node.name in _STRINGS:
            return _STRING
        if node.name in _POINTERS:
            return _POINTER
        number = _NUMBERS.get(node.name)
        return _integer(number) if number else None

    def of_element(self, base: ast.Node) -> ExprType | None:
        field = self.fields.get(entry_field(base))
        if isinstance(field, ArrayField):
            return self.of_text(field.ctype)
        return None

    def of_field(self, field: Field | None) -> ExprType | None:
        match field:
            case ArrayField(ctype=ctype):
                return _STRING if ctype.replace("const ", "").strip() in _CHARS else _POINTER
            case StructField(ctype=ctype) | ScalarField(ctype=ctype):
                return self.of_text(ctype)
        return None

    def of_text(self, text: str) -> ExprType | None:
        try:
            return self.of_ctype(parse_ctype(text))
        except TracepointError:
            return None

    def of_ctype(self, ctype: CType) -> ExprType | None:
        if ctype.array:
            return None
        if ctype.pointers:
            return _STRING if ctype.pointers == 1 and ctype.base in _CHARS else _POINTER
        if ctype.base.startswith(("struct ", "union ")):
            return ExprType(Shape.STRUCT, None, ctype.base)
        found = int_type_of(ctype, self.long_size)
        return _integer(found, str(ctype)) if found else None


def _integer(kind: IntType, name: str = "") -> ExprType:
    return ExprType(Shape.INTEGER, kind, name)


def free_names(node: ast.Node) -> Iterator[ast.Name]:
    """Yield the names in an expression that are values of their own.

    This excludes the record, fields, called functions, the field names that helpers take, and
    whatever a statement expression declares.
    """
    for found in ast.walk(node, _free_parts):
        if isinstance(found, ast.Name) and found.name not in RECORD_NAMES:
            yield found


def _free_parts(node: ast.Node) -> tuple[ast.Node, ...]:
    match node:
        case ast.Call(arguments=(_, *rest)) if node.name in FIELD_HELPERS:
            return tuple(rest)
        case ast.Assign(op="=", target=ast.Name(), value=value):
            return (value,)
    return ast.operands(node)
