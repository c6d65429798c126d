"""Types and names of print expressions, in C's sense: what a conversion really gets."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tracepoint.check.syntax import RECORD_NAMES, entry_field
from tracepoint.errors import TracepointError
from tracepoint.model.field import ArrayField, ScalarField, StructField
from tracepoint.model.vocabulary import (
    ADDRESS_GETTERS,
    FIELD_HELPERS,
    LENGTH_GETTERS,
    TEXT_GETTERS,
    TEXT_HELPERS,
)
from tracepoint.source import ast
from tracepoint.source.ctype import parse_ctype
from tracepoint.source.typed import ADDRESS, TEXT, Typed, Typer
from tracepoint.source.types import UINT, ULLONG, IntType

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tracepoint.model.field import Field

_STRINGS = TEXT_GETTERS | TEXT_HELPERS
_POINTERS = ADDRESS_GETTERS | {"__get_buf"}
_NUMBERS: dict[str, IntType] = {
    **dict.fromkeys(LENGTH_GETTERS, UINT),
    "__print_ns_to_secs": ULLONG,
    "__print_ns_without_secs": UINT,
}
_CHARS = frozenset({"char", "unsigned char", "u8", "__u8", "s8", "uint8_t", "signed char"})


class ValueClass(enum.Enum):
    """What kind of value an expression has, as far as a conversion cares."""

    INTEGER = "an integer"
    STRING = "a string"
    POINTER = "a pointer"
    STRUCT = "a struct"


@dataclass(frozen=True, slots=True)
class ExprType:
    """The type of an expression: its shape, and the integer type when it is one."""

    shape: ValueClass
    integer: IntType | None = None
    name: str = ""


def expression_type(node: ast.Node, fields: Mapping[str, Field], long_size: int) -> ExprType | None:
    """Return the type of a print expression, None when it cannot be known from the header.

    `long_size` is 4 or 8 bytes.
    """
    found = Typer(partial(_known, fields), long_size).of(node)
    if found is None:
        return None
    if found.kind is not None:
        return ExprType(ValueClass.INTEGER, found.kind, str(found.ctype or ""))
    ctype = found.ctype
    if ctype is None or ctype.array:
        return None
    if ctype.pointers:
        is_text = ctype.pointers == 1 and ctype.base in _CHARS
        return ExprType(ValueClass.STRING if is_text else ValueClass.POINTER)
    is_struct = ctype.base.startswith(("struct ", "union "))
    return ExprType(ValueClass.STRUCT, None, ctype.base) if is_struct else None


def _known(fields: Mapping[str, Field], typer: Typer, node: ast.Node) -> Typed | None:
    """Return the types of fields, their elements, and what helpers make of them."""
    name = entry_field(node)
    if name:
        return _of_field(typer, fields.get(name))
    match node:
        case ast.Call() if node.name in _STRINGS:
            return TEXT
        case ast.Call() if node.name in _POINTERS:
            return ADDRESS
        case ast.Call() if node.name in _NUMBERS:
            return Typed(_NUMBERS[node.name])
        case ast.Index(base=base) if isinstance(field := fields.get(entry_field(base)), ArrayField):
            return _of_text(typer, field.ctype)
        case ast.Unary(op="&"):
            return ADDRESS
    return None


def _of_field(typer: Typer, field: Field | None) -> Typed | None:
    match field:
        case ArrayField(ctype=ctype):
            return TEXT if ctype.replace("const ", "").strip() in _CHARS else ADDRESS
        case StructField(ctype=ctype) | ScalarField(ctype=ctype):
            return _of_text(typer, ctype)
    return None


def _of_text(typer: Typer, text: str) -> Typed | None:
    try:
        return typer.of_ctype(parse_ctype(text))
    except TracepointError:
        return None


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
