"""Print formats the other way round: the values of fields out of the text that a print format made.

Only what the text shows exactly is taken: a number with all its bits, a string, a name of `__print_symbolic`
or `__print_flags`.  Addresses are hashed or shown as symbols, and results of expressions are not fields: both
are passed over.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.errors import SourceError
from tracepoint.printk.conversion import STAR, Conversion, parse_format
from tracepoint.printk.printformat import split_print_format
from tracepoint.source import ast
from tracepoint.source.types import int_type_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tracepoint.layout.format import EventFormat, FieldFormat

    Value = int | str
    Take = Callable[[str], Value | None]

_NUMBERS = {
    "d": r"-?\d++",
    "i": r"-?\d++",
    "u": r"\d++",
    "x": r"(?:0x)?+[0-9a-f]++",
    "X": r"(?:0X)?+[0-9A-F]++",
}
_BASES = {"d": 10, "i": 10, "u": 10, "x": 16, "X": 16}
_LONG_LENGTHS = frozenset({"l", "ll", "L", "LL", "z", "Z", "t", "j", "q"})
_MAX_FIELDS = 64
_MAX_DIGITS = 24


@dataclass(frozen=True, slots=True)
class Scanner:
    """Finds the values of `fields`, those that a print format shows, in its text."""

    fields: tuple[FieldFormat, ...]
    _pattern: re.Pattern[str]
    _takes: tuple[Take, ...]

    def scan(self, text: str) -> tuple[Value, ...] | None:
        """Return a value for each field; None when the text is not of this print format."""
        match = self._pattern.fullmatch(text)
        if match is None:
            return None
        values = tuple(take(found) for take, found in zip(self._takes, match.groups(), strict=True))
        return None if None in values else values  # type: ignore[return-value]


def compile_scanner(form: EventFormat) -> Scanner | None:
    """Return the scanner of an event's text; None when its print format cannot be understood."""
    try:
        text, arguments = split_print_format(form.print_fmt)
    except SourceError:
        return None
    pieces = parse_format(text.rstrip("\n"))
    if len(pieces) > 4 * _MAX_FIELDS:
        return None
    fields: list[FieldFormat] = []
    takes: list[Take] = []
    pattern = ""
    for piece, argument, literal in _steps(pieces, arguments):
        after = _escaped(literal)
        if piece is None:
            pattern += after
            continue
        found = None if argument is None else _of_argument(form, piece, argument)
        if found is not None and found[0] not in fields and len(fields) < _MAX_FIELDS:
            fields.append(found[0])
            takes.append(found[2])
            # Atomic: there is no backtracking, so the cost of a line is linear in its length.
            pattern += rf" *+(?>({found[1]}) *{after})" if after else f" *+({_greedy(found[1])})"
        elif after:
            pattern += f"(?>.*?{after})"
        else:
            pattern += ".*"
    return Scanner(tuple(fields), re.compile(pattern, re.DOTALL), tuple(takes))


def _greedy(pattern: str) -> str:
    return ".*" if pattern == ".*?" else pattern


def _escaped(literal: str) -> str:
    return re.escape(literal.encode("latin-1", "replace").decode("utf-8", "surrogateescape"))


def _steps(
    pieces: Sequence[str | Conversion], arguments: Sequence[ast.Node]
) -> Iterator[tuple[Conversion | None, ast.Node | None, str]]:
    """Yield conversions with their arguments and the literal text after them.

    The argument is None for conversions that follow each other without a text between them: nothing says
    where one ends.
    """
    at = n_used = 0
    while at < len(pieces):
        piece = pieces[at]
        at += 1
        if isinstance(piece, str):
            yield None, None, piece
            continue
        n_used += piece.n_arguments
        argument = arguments[n_used - 1] if 0 < n_used <= len(arguments) and piece.width != STAR else None
        while at < len(pieces) and isinstance(following := pieces[at], Conversion):
            n_used += following.n_arguments
            argument = None
            at += 1
        literal = ""
        if at < len(pieces) and isinstance(text := pieces[at], str):
            literal = text
            at += 1
        yield piece, argument, literal


def _of_argument(
    form: EventFormat, piece: Conversion, node: ast.Node
) -> tuple[FieldFormat, str, Take] | None:
    """Return the field that a conversion shows, the pattern of its text, and what makes its value."""
    match node:
        case ast.Call(function=ast.Name(name="__get_str"), arguments=(ast.Name(name=name),)):
            field = _field(form, name)
            return None if field is None or piece.conversion != "s" else (field, ".*?", str)
        case ast.Call(function=ast.Name(name="__print_symbolic"), arguments=(value, *pairs)):
            return _of_names(form, value, pairs, None)
        case ast.Call(function=ast.Name(name="__print_flags"), arguments=(value, ast.String() as by, *pairs)):
            return _of_names(form, value, pairs, by.value)
    field = _shown_field(form, node)
    if field is None:
        return None
    if piece.conversion == "s":
        return (field, ".*?", str) if field.ctype.startswith("char[") else None
    pattern = _NUMBERS.get(piece.conversion)
    is_whole = field.size <= (
        form.long_size if piece.length == "l" else 8 if piece.length in _LONG_LENGTHS else 4
    )
    if pattern is None or not is_whole or field.size not in (1, 2, 4, 8) or "[" in field.ctype:
        return None
    return field, pattern, _number_taker(field, _BASES[piece.conversion])


def _field(form: EventFormat, name: str) -> FieldFormat | None:
    return next((field for field in form.fields[form.n_common :] if field.name == name), None)


def _shown_field(form: EventFormat, node: ast.Node) -> FieldFormat | None:
    """Return the field that an argument is, under casts that keep all bits of a long."""
    while isinstance(node, ast.Cast):
        kind = None if node.ctype.pointers else int_type_named(node.ctype.base, form.long_size)
        if kind is None or kind.size < form.long_size:
            return None
        node = node.operand
    match node:
        case ast.Member(base=ast.Name(name="REC"), name=name, is_arrow=True):
            return _field(form, name)
    return None


def _number_taker(field: FieldFormat, base: int) -> Take:
    mask = (1 << 8 * field.size) - 1

    def take(text: str) -> int | None:
        return int(text, base) & mask if len(text) <= _MAX_DIGITS else None

    return take


def _of_names(
    form: EventFormat, value: ast.Node, pairs: Sequence[ast.Node], delimiter: str | None
) -> tuple[FieldFormat, str, Take] | None:
    field = _shown_field(form, value)
    if field is None or field.size not in (1, 2, 4, 8):
        return None
    names: dict[str, int] = {}
    for pair in pairs:
        match pair:
            case ast.InitList(items=(ast.Number(value=number), ast.String(value=name))):
                names.setdefault(name, number)
            case _:
                return None
    mask = (1 << 8 * field.size) - 1

    def take(text: str) -> int | None:
        found = 0
        for word in text.split(delimiter) if delimiter and text else [text]:
            number = names.get(word)
            if number is None:
                # What has no name is shown as a number; `__print_flags` of 0 shows nothing.
                if not re.fullmatch(r"0x[0-9a-f]{1,16}", word) and word:
                    return None
                number = int(word, 16) if word else 0
            found |= number
        return found & mask

    return field, ".*?", take
