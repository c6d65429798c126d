"""What a print format shows about good sample values: tables of names, and how a field is shown."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracepoint.errors import SourceError
from tracepoint.source import ast
from tracepoint.source.constants import constant_value

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.model.event import Event

_DIRECTIVE = re.compile(r"%(?:%|[-0 #+]*(\*|\d*)(?:\.(\*|\d*))?(hh|h|ll|l|z|L|t)?([a-zA-Z])([A-Za-z0-9]*))")


@dataclass(frozen=True, slots=True)
class FieldHint:
    """How one field is printed: `values` of a __print_symbolic table, `bits` of a __print_flags one.

    `conversion` is the letter of the directive, with what follows `p`: `d`, `s`, `pS`, `pI4`.
    """

    values: tuple[int, ...] = ()
    bits: tuple[int, ...] = ()
    conversion: str = ""


@dataclass(slots=True)
class _Found:
    values: dict[str, tuple[int, ...]] = field(default_factory=dict)
    bits: dict[str, tuple[int, ...]] = field(default_factory=dict)
    conversions: dict[str, str] = field(default_factory=dict)


def read_hints(event: Event, constant: Callable[[str], int | None]) -> dict[str, FieldHint]:
    """Return what the event's print format says about its fields; nothing when it cannot be read."""
    try:
        arguments = event.printk.arguments()
    except SourceError:
        return {}
    found = _Found()
    for argument in arguments[1:]:
        for node in ast.walk(argument):
            if isinstance(node, ast.Call) and node.arguments:
                _table(node, constant, found)
    if arguments and isinstance(arguments[0], ast.String):
        _conversions(arguments[0].value, arguments[1:], found)
    names = found.values.keys() | found.bits.keys() | found.conversions.keys()
    return {
        name: FieldHint(found.values.get(name, ()), found.bits.get(name, ()), found.conversions.get(name, ""))
        for name in names
    }


def field_of(node: ast.Node) -> str:
    """Return the record's field that an expression reads first, empty when it reads none."""
    for item in ast.walk(node):
        match item:
            case ast.Member(base=ast.Name(name="__entry" | "REC"), name=name):
                return name
            case ast.Call(arguments=(ast.Name(name=name), *_)) if item.name.startswith("__get_"):
                return name
    return ""


def _table(node: ast.Call, constant: Callable[[str], int | None], found: _Found) -> None:
    name = field_of(node.arguments[0])
    if not name:
        return
    if node.name.startswith("__print_symbolic"):
        found.values.setdefault(name, _entries(node.arguments[1:], constant))
    elif node.name.startswith("__print_flags"):
        found.bits.setdefault(name, _entries(node.arguments[2:], constant))


def _entries(items: tuple[ast.Node, ...], constant: Callable[[str], int | None]) -> tuple[int, ...]:
    values = []
    for item in items:
        if isinstance(item, ast.InitList) and item.items:
            value = constant_value(item.items[0], constant)
            if value is not None:
                values.append(value)
    return tuple(values)


def _conversions(template: str, arguments: tuple[ast.Node, ...], found: _Found) -> None:
    rest = list(arguments)
    for match in _DIRECTIVE.finditer(template):
        if match[0] == "%%":
            continue
        stars = (match[1] == "*") + (match[2] == "*")
        if len(rest) <= stars:
            return
        argument = rest[stars]
        del rest[: stars + 1]
        is_helper = isinstance(argument, ast.Call) and argument.name.startswith("__print_")
        name = "" if is_helper else field_of(argument)
        if name:
            letter = match[4] + (match[5] if match[4] == "p" else "")
            found.conversions.setdefault(name, letter)
