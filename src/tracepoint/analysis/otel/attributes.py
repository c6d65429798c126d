"""The attributes of a span as the events have them, `http.route='/' n=3`, as values again."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# A text in quotes, with its escapes, or one character.
_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_PART = re.compile(rf"{_QUOTED}|[^'\"]", re.DOTALL)
_OPEN, _CLOSE = "([{", ")]}"
_NUMBERS = {"nan": float("nan"), "inf": float("inf")}
# What OpenTelemetry's protocol has room for.
_INTEGERS = range(-(1 << 63), 1 << 63)


def read_attributes(text: str) -> tuple[dict[str, object], bool]:
    """Return the attributes of a text by their keys, and whether it holds all of them.

    What cannot be read, such as the last one of a text that was cut short (`...`), is left out.

    >>> read_attributes("http.route='/' n=3 'paid by'=('card', 'cash')")
    ({'http.route': '/', 'n': 3, 'paid by': ('card', 'cash')}, True)
    >>> read_attributes("n=3 long='xxx...")
    ({'n': 3}, False)
    """
    found: dict[str, object] = {}
    is_whole = True
    for key, value in _pairs(text):
        try:
            found[str(_value_of(key)) if key[:1] in "'\"" else key] = _value_of(value)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            is_whole = False
    return found, is_whole


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Yield the texts of keys and values; of a pair that was cut short in its key the value is empty."""
    at = 0
    while at < len(text):
        stop = _stop_of(text, at, "=")
        end = _stop_of(text, stop + 1, " ")
        yield text[at:stop], text[stop + 1 : end]
        at = end + 1


def _stop_of(text: str, at: int, mark: str) -> int:
    """Return where the next `mark` is, outside of quotes and a value's brackets; the end without one."""
    depth = 0
    while found := _PART.match(text, at):
        part = found[0]
        if part == mark and (depth <= 0 or mark == "="):
            return at
        depth += (part in _OPEN) - (part in _CLOSE)
        at = found.end()
    return len(text)


def _value_of(text: str) -> object:
    """Return the value of a repr; raises what `ast.parse` raises, and ValueError."""
    return integer_in_range(_evaluated(ast.parse(text, mode="eval").body))


def _evaluated(node: ast.expr | None) -> object:
    """Return the value of an expression of constants; unlike `ast.literal_eval`, of `nan` and `inf` too."""
    match node:
        case ast.Constant(value=bool() | int() | float() | str() | bytes() | None as value):
            return value
        case ast.Name(id=name) if name in _NUMBERS:
            return _NUMBERS[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            number = _evaluated(operand)
            if isinstance(number, (int, float)):
                return -number
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return tuple(_evaluated(item) for item in items)
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            return {str(_evaluated(key)): _evaluated(value) for key, value in pairs}
    raise ValueError("this is not a value that an attribute can have")


def integer_in_range(value: object) -> object:
    """Return a value as an attribute can have it: an integer of more than 63 bits is hexadecimal text.

    >>> integer_in_range(3), integer_in_range((1 << 64) - 1)
    (3, '0xffffffffffffffff')
    """
    return hex(value) if isinstance(value, int) and value not in _INTEGERS else value
