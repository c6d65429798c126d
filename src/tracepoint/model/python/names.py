"""Bare names in print formats and assignments that are given from Python.

In TP_printk text a field's name alone means the field of the record, and in TP_fast_assign a
parameter's name means the parameter; what the kernel's macros need is put in here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.errors import SourceError
from tracepoint.model.code_text import given_argument, given_tokens
from tracepoint.model.field import (
    ArrayField,
    BitmaskField,
    DynamicArrayField,
    Field,
    SockaddrField,
    StringField,
)
from tracepoint.source.lexer import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.source.lexer import Token

_ASSIGN_OPERATORS = frozenset(("=", "+=", "-=", "|=", "&=", "^=", "<<=", ">>=", "*=", "/=", "%=", "++", "--"))
_NOT_TYPES = frozenset(("return", "else", "do", "goto", "case", "sizeof"))


def entry_access(field: Field) -> str:
    """Return how TP_printk reads a field: `__entry->pid`, `__get_str(name)`.

    >>> from tracepoint.model.field import ScalarField
    >>> entry_access(ScalarField("field", "pid", "int"))
    '__entry->pid'
    """
    rel = "rel_" if field.is_relative else ""
    match field:
        case StringField():
            return f"__get_{rel}str({field.name})"
        case DynamicArrayField():
            return f"__get_{rel}dynamic_array({field.name})"
        case BitmaskField():
            return f"__get_{rel}{'cpumask' if field.n_bits is None else 'bitmask'}({field.name})"
        case SockaddrField():
            return f"__get_{rel}sockaddr({field.name})"
        case _:
            return f"__entry->{field.name}"


def resolve_print(text: str, fields: Sequence[Field], what: str = "printk") -> str:
    """Return a print format in which field names standing alone have become accesses.

    >>> from tracepoint.model.field import ScalarField
    >>> resolve_print('"%d", MAJOR(dev)', [ScalarField("field", "dev", "dev_t")])
    '"%d", MAJOR(__entry->dev)'
    """
    by_name = {field.name: field for field in fields}
    tokens = given_tokens(text, what)
    replacements = {
        index: entry_access(by_name[token.text])
        for index, token in enumerate(tokens)
        if token.text in by_name and _stands_alone(tokens, index)
    }
    return _with(text, tokens, replacements)


def _stands_alone(tokens: Sequence[Token], index: int) -> bool:
    """Return whether the name is neither a member, nor called, a tag, or a helper's field argument."""
    token = tokens[index]
    if token.kind is not Kind.NAME:
        return False
    before = tokens[index - 1].text if index else ""
    after = tokens[index + 1].text if index + 1 < len(tokens) else ""
    if before in ("->", ".", "struct", "union", "enum") or after == "(":
        return False
    helper = tokens[index - 2].text if before == "(" and index > 1 else ""
    return not helper.startswith(("__get_", "__assign_", "__print_dynamic_array"))


def _with(text: str, tokens: Sequence[Token], replacements: Mapping[int, str]) -> str:
    pieces: list[str] = []
    at = 0
    for index, replacement in replacements.items():
        pieces += (text[at : tokens[index].start], replacement)
        at = tokens[index].end
    return "".join([*pieces, text[at:]])


def resolve_assign(text: str, fields: Sequence[Field], params: Sequence[str], what: str = "assign") -> str:
    """Return statements in which field names standing alone have become `__entry->name`.

    A name that is a parameter or a local variable too means that, except where a statement
    assigns to it.

    >>> from tracepoint.model.field import ScalarField
    >>> resolve_assign("dev = dev->id;", [ScalarField("field", "dev", "int")], ["dev"])
    '__entry->dev = dev->id;'
    """
    names = {field.name for field in fields}
    known = set(params)
    tokens = given_tokens(text, what)
    replacements: dict[int, str] = {}
    for index, token in enumerate(tokens):
        if token.text not in names or not _stands_alone(tokens, index):
            continue
        before = tokens[index - 1] if index else None
        if before is not None and before.kind is Kind.NAME and before.text not in _NOT_TYPES:
            known.add(token.text)  # `int tries = ...` declares a local variable
            continue
        after = tokens[index + 1].text if index + 1 < len(tokens) else ""
        begins = before is None or before.text in (";", "{", "}", ")", "else")
        is_target = begins and (after in _ASSIGN_OPERATORS or after == "[")
        if token.text not in known or (is_target and token.text in params):
            replacements[index] = f"__entry->{token.text}"
    return _with(text, tokens, replacements)


def assign_statements(values: Mapping[str, str], fields: Sequence[Field], params: Sequence[str]) -> str:
    """Return the statements that give each field its value, in the order of `values`.

    Fields without a value take the parameter of their name; strings, bitmasks and socket addresses
    their declared source.  Raises SourceError for a field that gets nothing, and for a value
    without a field.

    >>> from tracepoint.model.field import ScalarField
    >>> assign_statements({}, [ScalarField("field", "pid", "int")], ["pid"])
    '__entry->pid = pid;'
    """
    by_name = {field.name: field for field in fields}
    for name in values:
        if name not in by_name:
            raise SourceError(f"assign: {name!r} is not a field of this event")
    missing = [name for name in by_name if name not in values]
    statements = []
    for name in [*values, *missing]:
        value = values.get(name)
        if value is not None:
            given_argument(value, f"assign[{name!r}]")
            value = resolve_assign(value, fields, params, f"assign[{name!r}]").strip()
        statements.append(_assignment(by_name[name], value, params))
    return " ".join(statements)


def _assignment(field: Field, value: str | None, params: Sequence[str]) -> str:
    name = field.name
    if value is None and isinstance(field, StringField):
        value = field.source.text
    if value is None and name in params:
        value = name
    if value is None:
        raise SourceError(f"assign: field {name!r} gets no value, and no parameter has its name")
    if field.is_dynamic:
        return _dynamic_assignment(field, value)
    if isinstance(field, ArrayField):
        copy = "strscpy_pad" if field.ctype == "char" else "memcpy"
        return f"{copy}(__entry->{name}, {value}, sizeof(__entry->{name}));"
    return f"__entry->{name} = {value};"


def _dynamic_assignment(field: Field, value: str) -> str:
    rel = "rel_" if field.is_relative else ""
    match field:
        case StringField(va_list=None):
            return f"__assign_{rel}str({field.name}, {value});"
        case StringField():
            return f"__assign_vstr({field.name}, {value}, {field.va_list});"
        case BitmaskField(n_bits=None):
            return f"__assign_{rel}cpumask({field.name}, {value});"
        case BitmaskField():
            return f"__assign_{rel}bitmask({field.name}, {value}, {field.n_bits});"
        case SockaddrField():
            return f"__assign_{rel}sockaddr({field.name}, {value}, {field.length});"
    target = f"__get_{rel}dynamic_array"
    return f"memcpy({target}({field.name}), {value}, {target}_len({field.name}));"
