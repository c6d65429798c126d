"""The parts of a declaration: prototype, arguments, and the members of TP_STRUCT__entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.diagnostics import Diagnostic, Severity
from tracepoint.model.event import Param, Proto
from tracepoint.model.field import (
    ArrayField,
    BitmaskField,
    DynamicArrayField,
    Field,
    ScalarField,
    SockaddrField,
    StringField,
    StructField,
    UnknownField,
)
from tracepoint.model.origins import code_of, origin_of
from tracepoint.model.vocabulary import FIELD_MACROS, PART_MACROS
from tracepoint.source.brackets import find_parenthesis, split_macro_arguments
from tracepoint.source.lexer import Kind
from tracepoint.source.macros import spell
from tracepoint.source.syntax import MacroCall, read_call

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.model.origin import Code, Origin
    from tracepoint.source.lexer import Token


_WRAPPERS = frozenset(name for names in PART_MACROS.values() for name in names)


def read_part(tokens: Sequence[Token], role: str) -> tuple[tuple[Token, ...], str]:
    """Return what is inside `TP_PROTO(...)` and the like, and what is invalid about it.

    The wrapper macros all mean their argument, so a part in another's wrapper, or in none, still
    builds in the kernel: it is read, and the second value says what is wrong (empty if nothing).
    """
    if len(tokens) < 3 or tokens[0].text not in _WRAPPERS or tokens[1].text != "(":
        return tuple(tokens), f"is not wrapped in {PART_MACROS[role][0]}()"
    if find_parenthesis(tokens, 1) != len(tokens) - 1:
        return tuple(tokens), f"is more than one {PART_MACROS[role][0]}()"
    inner = tuple(tokens[2:-1])
    if tokens[0].text == "PARAMS" and inner and inner[0].text in _WRAPPERS:
        return read_part(inner, role)
    if tokens[0].text not in PART_MACROS[role]:
        return inner, f"is wrapped in {tokens[0].text}() instead of {PART_MACROS[role][0]}()"
    return inner, ""


def read_proto(tokens: Sequence[Token]) -> Proto:
    """Read the parameters of a prototype; `void` alone means none."""
    origin = origin_of(tokens[0], tokens[-1]) if tokens else None
    parts = [part for part in split_macro_arguments(tokens) if part]
    if len(parts) == 1 and spell(parts[0]) == "void":
        return Proto((), origin=origin)
    return Proto(tuple(_read_param(part) for part in parts), origin=origin)


def _read_param(tokens: Sequence[Token]) -> Param:
    """Split `struct page *page` into type and name; arrays and function pointers keep their form."""
    origin = origin_of(tokens[0], tokens[-1])
    at = _declarator(tokens)
    if at is None:
        return Param(spell(tokens), "", origin=origin)
    name = tokens[at].text
    rest = [*tokens[:at], *tokens[at + 1 :]]
    return Param(spell(rest), name, origin=origin)


def _declarator(tokens: Sequence[Token]) -> int | None:
    """Return the index of the declared name: in `void (*fn)(int)` that after `(*`, else the last name."""
    for index in range(len(tokens) - 2):
        if tokens[index].text == "(" and tokens[index + 1].text == "*":
            inner = index + 2
            while inner < len(tokens) and tokens[inner].text in {"*", "const"}:
                inner += 1
            if inner < len(tokens) and tokens[inner].kind is Kind.NAME:
                return inner
    end = len(tokens)
    for index, token in enumerate(tokens):
        if token.text == "[":
            end = index
            break
    names = [i for i in range(end) if tokens[i].kind is Kind.NAME]
    if len(names) < 2 and not any(t.text == "*" for t in tokens[:end]):
        return None
    return names[-1] if names and names[-1] == end - 1 else None


def read_args(tokens: Sequence[Token]) -> tuple[str, ...]:
    """Read the names of TP_ARGS."""
    names = [spell(part) for part in split_macro_arguments(tokens)]
    return tuple(name for name in names if name and name != "void")


def read_fields(tokens: Sequence[Token]) -> tuple[tuple[Field, ...], list[Diagnostic]]:
    """Read the members of TP_STRUCT__entry, and say which macros could not be understood."""
    fields: list[Field] = []
    found: list[Diagnostic] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.kind is not Kind.NAME:
            if token.text not in {";", ","}:
                found.append(_problem("TP008", "stray-text-in-struct", f"stray `{token.text}`", token))
            at += 1
            continue
        call = read_call(tokens, at)
        if call is None:
            found.append(_unknown(token))
            fields.append(UnknownField(token.text, token.text, "", origin=origin_of(token)))
            at += 1
            continue
        field = _read_field(call[0])
        if field is None:
            found.append(_unknown(token))
            field = UnknownField(token.text, token.text, "", origin=origin_of(token))
        fields.append(field)
        at = call[1]
    return tuple(fields), found


def _problem(code: str, name: str, message: str, token: Token) -> Diagnostic:
    return Diagnostic(code, name, message, origin_of(token).span, Severity.ERROR)


def _unknown(token: Token) -> Diagnostic:
    return _problem(
        "TP009",
        "unknown-field-macro",
        f"{token.text} is not a field macro, and no file that was read defines it; see --include",
        token,
    )


def _read_field(call: MacroCall) -> Field | None:
    kind = call.name.text.removeprefix("__")
    roles = FIELD_MACROS.get(kind)
    if roles is None or not call.name.text.startswith("__"):
        return None
    arguments = call.split(len(roles))
    if len(arguments) < len(roles) or not all(arguments):
        return None
    parts = {role: code_of(part) for role, part in zip(roles, arguments, strict=True)}
    return make_field(kind, parts, origin_of(call.name, call.close))


def make_field(kind: str, parts: dict[str, Code], origin: Origin | None = None) -> Field:
    """Make a field of the macro `__<kind>` from its arguments by role (see `FIELD_MACROS`)."""
    name = parts["name"].text
    ctype = parts["type"].text if "type" in parts else ""
    filter_type = parts["filter_type"].text if "filter_type" in parts else ""
    length = parts.get("length")
    family = kind.removeprefix("rel_")
    if family in {"field", "field_ext"}:
        return ScalarField(kind, name, ctype, filter_type, origin=origin)
    if family in {"field_struct", "field_struct_ext"}:
        return StructField(kind, name, ctype, filter_type, origin=origin)
    if "source" in parts:
        return StringField(kind, name, "char", parts["source"], length, parts.get("va_list"), origin=origin)
    if length is None:
        return BitmaskField(kind, name, "unsigned long", parts.get("n_bits"), origin=origin)
    if family == "sockaddr":
        return SockaddrField(kind, name, "u8", length, origin=origin)
    make = ArrayField if family == "array" else DynamicArrayField
    return make(kind, name, ctype, length, origin=origin)
