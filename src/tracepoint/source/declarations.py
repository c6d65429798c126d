"""Enums and typedefs in preprocessed text: just what a record's layout and flags need."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracepoint.source.brackets import outside
from tracepoint.source.lexer import Kind
from tracepoint.source.macros import spell

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tracepoint.source.lexer import Token


_OF_VALUES = frozenset("=,}")


@dataclass(slots=True)
class Declarations:
    """The enums and typedefs of one file.

    `enumerators` maps a name to the tokens of its value (None: one more than the one before) and
    the name before it; `enums` maps a tag to its enumerators; `typedefs` a name to type text.
    """

    enumerators: dict[str, tuple[list[Token] | None, str | None]] = field(default_factory=dict)
    enums: dict[str, tuple[str, ...]] = field(default_factory=dict)
    typedefs: dict[str, str] = field(default_factory=dict)
    packed_enums: set[str] = field(default_factory=set)
    """Tags of enums with an attribute that makes them as small as their values allow."""

    def enumerator(self, name: str, evaluate: Callable[[Sequence[Token]], int | None]) -> int | None:
        """Return the value of an enumerator, or None when an expression before it is unknown."""
        steps = 0
        at: str | None = name
        while at is not None:
            tokens, before = self.enumerators[at]
            if tokens is not None:
                base = evaluate(tokens)
                return None if base is None else base + steps
            steps += 1
            at = before
        return steps - 1


def read_declarations(tokens: Sequence[Token]) -> Declarations:
    """Collect the enums and simple typedefs of expanded tokens.

    >>> from tracepoint.source.lexer import lex
    >>> from tracepoint.source.text import SourceFile
    >>> found = read_declarations(lex(SourceFile("a.h", "enum e { A, B = 5 }; typedef unsigned int nid_t;")))
    >>> found.enums, found.typedefs
    ({'e': ('A', 'B')}, {'nid_t': 'unsigned int'})
    """
    found = Declarations()
    at = 0
    n_tokens = len(tokens)
    while at < n_tokens:
        text = tokens[at].text
        if text == "enum" and tokens[at].kind is Kind.NAME:
            at = _read_enum(tokens, at + 1, found)
        elif text == "typedef" and tokens[at].kind is Kind.NAME:
            at = _read_typedef(tokens, at + 1, found)
        else:
            at += 1
    return found


def _read_enum(tokens: Sequence[Token], at: int, found: Declarations) -> int:
    """Read from after `enum`; returns where to go on."""
    tag = ""
    if at < len(tokens) and tokens[at].kind is Kind.NAME:
        tag = tokens[at].text
        at += 1
    if at >= len(tokens) or tokens[at].text != "{":
        return at
    at += 1
    names: list[str] = []
    before: str | None = None
    while at < len(tokens) and tokens[at].text != "}" and tokens[at].kind is not Kind.END:
        if tokens[at].kind is not Kind.NAME:
            at += 1
            continue
        name = tokens[at].text
        value, at = _read_value(tokens, at + 1)
        found.enumerators.setdefault(name, (value, before))
        names.append(name)
        before = name
    if tag and tag not in found.enums:
        found.enums[tag] = tuple(names)
        if _is_packed(tokens, at + 1):
            found.packed_enums.add(tag)
    return at


def _is_packed(tokens: Sequence[Token], at: int) -> bool:
    """Return whether `__packed`, `__mode(byte)` or their attributes stand between `}` and `;`."""
    depth = 0
    while at < len(tokens) and tokens[at].text not in {";", "{", "}"} and tokens[at].kind is not Kind.END:
        text = tokens[at].text
        depth += {"(": 1, ")": -1}.get(text, 0)
        # Within __attribute__(( )) the words are the attributes; outside they would be variables.
        if text in {"__packed", "__mode"} or (
            depth > 1 and text in {"packed", "__packed__", "mode", "__mode__"}
        ):
            return True
        at += 1
    return False


def _read_value(tokens: Sequence[Token], at: int) -> tuple[list[Token] | None, int]:
    """Read `= expression` up to the comma or brace that ends it; attributes are passed over."""
    begin = 0
    for index in outside(tokens, _OF_VALUES, at):
        if tokens[index].text == "=":
            begin = begin or index + 1
        else:
            return (list(tokens[begin:index]) if begin else None), index
    return None, len(tokens)


def _read_typedef(tokens: Sequence[Token], at: int, found: Declarations) -> int:
    """Read `typedef TYPE NAME;` and that of a pointer to a function; others are passed over."""
    end = at
    while end < len(tokens) and tokens[end].text not in {";", "{", "(", "["}:
        if tokens[end].kind is Kind.END:
            return end
        end += 1
    if end >= len(tokens):
        return at
    if tokens[end].text == ";" and end - at >= 2:
        found.typedefs.setdefault(tokens[end - 1].text, spell(tokens[at : end - 1]))
    elif tokens[end].text == "(" and end > at and _is_pointer_name(tokens, end + 1):
        found.typedefs.setdefault(tokens[end + 2].text, "void *")
    return at


def _is_pointer_name(tokens: Sequence[Token], at: int) -> bool:
    """Return whether `*name)` is at an index, as in `typedef void (*name)(int);`."""
    return at + 2 < len(tokens) and tokens[at].text == "*" and tokens[at + 2].text == ")"
