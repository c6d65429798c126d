"""What a print format shows about fields: numbers shown in hexadecimal, values that have names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracepoint.errors import SourceError
from tracepoint.printk.conversion import Conversion, parse_format
from tracepoint.source import ast
from tracepoint.source.cexpr import write_expression
from tracepoint.source.cwrite import quote

if TYPE_CHECKING:
    from tracepoint.model.event import EventClass

_SYMBOLIC = frozenset(("__print_symbolic", "__print_symbolic_u64"))
_FLAGS = frozenset(("__print_flags", "__print_flags_u64"))
_HEX = frozenset(("__print_hex", "__print_hex_str", "__print_hex_dump"))


@dataclass(slots=True)
class Shown:
    """How a print format shows the fields.

    `hexadecimal` are fields shown that way; `names` maps a field to its (label as a C literal,
    value) pairs; `flags` are fields whose bits have names; `computed` are fields that are shown
    through other calls, which no trace reader of LTTng makes.
    """

    hexadecimal: set[str] = field(default_factory=set)
    names: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    flags: set[str] = field(default_factory=set)
    computed: set[str] = field(default_factory=set)


def read_shown(event_class: EventClass) -> Shown:
    """Look through the print format of a class; unreadable parts are ignored."""
    shown = Shown()
    try:
        nodes = event_class.printk.arguments()
    except SourceError:
        return shown
    if nodes and isinstance(nodes[0], ast.String) and not nodes[0].pieces:
        _read_conversions(shown, nodes[0].value, list(nodes[1:]))
    for node in nodes[1:]:
        _read_calls(shown, node)
    return shown


def _read_conversions(shown: Shown, text: str, arguments: list[ast.Node]) -> None:
    for piece in parse_format(text):
        if not isinstance(piece, Conversion):
            continue
        taken = arguments[: piece.n_arguments]
        del arguments[: piece.n_arguments]
        name = _field_of(taken[-1]) if taken else ""
        if name and piece.conversion in ("x", "X", "p"):
            shown.hexadecimal.add(name)


def _read_calls(shown: Shown, node: ast.Node) -> None:
    match node:
        case ast.Call(arguments=(value, *rest)) as call if call.name in _SYMBOLIC:
            name, pairs = _field_of(value), _pairs(rest)
            if name and shown.names.setdefault(name, pairs) != pairs:
                shown.names[name] = ()
        case ast.Call(arguments=(value, *_)) as call if call.name in _FLAGS:
            shown.flags.add(_field_of(value))
        case ast.Call(arguments=(value, *_)) as call if call.name in _HEX:
            shown.hexadecimal.add(_field_of(value))
        case ast.Call(arguments=arguments) as call if not call.name.startswith("__"):
            shown.computed |= {_field_of(argument) for argument in arguments}


def _pairs(items: list[ast.Node]) -> tuple[tuple[str, str], ...]:
    pairs = []
    for item in items:
        match item:
            case ast.InitList(items=(value, ast.String(value=text, pieces=()))):
                if any(isinstance(part, ast.Call) for part in (value,)):
                    return ()
                pairs.append((quote(text), write_expression(value)))
            case ast.InitList(items=(ast.Unary(op="-", operand=ast.Number(value=1)), ast.Number(value=0))):
                continue  # the end of a list of the old form
            case _:
                return ()
    return tuple(pairs)


def _field_of(node: ast.Node) -> str:
    """Return the field whose plain value an argument is, or an empty string."""
    while isinstance(node, ast.Cast) or (isinstance(node, ast.Unary) and node.op == "&"):
        node = node.operand
    match node:
        case ast.Member(base=ast.Name(name="__entry"), name=name):
            return name
        case ast.Call(arguments=(ast.Name(name=name), *_)) as call if call.name.startswith("__get_"):
            return name
    return ""
