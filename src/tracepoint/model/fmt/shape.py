"""Find the declarations of a trace header and their parts, for the formatter."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracepoint.model.fmt.code import FieldCall, StatementLines, closing_item, field_calls, set_statements
from tracepoint.model.fmt.items import TAB, CannotFormatError, TextItem, make_items, split_ranges
from tracepoint.source.lexer import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracepoint.source.lexer import Token

# Names rather than the vocabulary's list: a tree's own `TRACE_EVENT_KVM_EXIT` has the same shape.
_DECLARES = re.compile(r"(TRACE|DEFINE|DECLARE)_[A-Z_]*(EVENT|TRACE|CLASS)[A-Z_]*\Z|DECLARE_TRACE\w*\Z")
_OPENERS = {"(": ")", "[": "]", "{": "}"}


@dataclass(slots=True, eq=False)
class Part:
    """One argument of a declaration: its items from `lead` on, which may be comments.

    For a call such as `TP_PROTO(...)`, `name` is the called macro, `first` its item, `inside`
    the items between its brackets `opening` and `close`; else `name` is empty.
    """

    name: str
    lead: TextItem
    first: TextItem
    inside: list[TextItem]
    close: TextItem | None
    opening: TextItem | None = None
    _fields: list[FieldCall] | None = None
    _statements: list[StatementLines] | None = None

    @property
    def fields(self) -> list[FieldCall]:
        """The fields of TP_STRUCT__entry."""
        if self._fields is None:
            self._fields = field_calls(self.inside)
        return self._fields

    @property
    def statements(self) -> list[StatementLines]:
        """The statements of TP_fast_assign as they are when indented from column 16."""
        if self._statements is None:
            self._statements = set_statements(self.inside, 2 * TAB)
        return self._statements

    @property
    def is_struct(self) -> bool:
        """Whether it holds fields."""
        return self.name.startswith("TP_STRUCT__entry")

    @property
    def is_print(self) -> bool:
        """Whether it holds a print format."""
        return self.name.startswith("TP_printk")

    @property
    def is_tight(self) -> bool:
        """Whether blanks in it mean nothing: False where tracefs or the model keeps its text."""
        return self.name in ("TP_PROTO", "TP_ARGS")

    @property
    def is_statements(self) -> bool:
        """Whether it holds statements."""
        return self.name.startswith(("TP_fast_assign", "TP_perf_assign"))


@dataclass(slots=True, eq=False)
class DeclarationShape:
    """One declaration: all its items, the plain arguments at its head, its parts, its end."""

    start: int
    end: int
    items: list[TextItem]
    head: list[Part]
    parts: list[Part] = field(default_factory=list)
    close: TextItem | None = None

    @property
    def macro(self) -> str:
        """The declaring macro."""
        return self.items[0].text

    @property
    def kind(self) -> str:
        """What it is set like: `frame` for a class with its record, else `instance` or `tracepoint`."""
        if self.macro.startswith("TRACE_") or self.macro.endswith("CLASS"):
            return "frame"
        return "instance" if self.macro.startswith("DEFINE_") else "tracepoint"


class Unbalanced(Exception):  # noqa: N818 - caught here and there, never shown
    """Brackets that do not match; `token` is the one that has no partner."""

    def __init__(self, token: Token, message: str) -> None:
        super().__init__(message)
        self.token = token
        self.message = message


def declarations(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Yield the token ranges of declarations, closing semicolon included.

    Directives, macro bodies with them, and what is in `{ }` are skipped.  Raises
    `Unbalanced` when a bracket of a declaration has no partner.
    """
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.first and token.text == "#":
            at = skip_directive(tokens, at)
        elif (
            token.kind is Kind.NAME
            and token.first
            and at + 1 < len(tokens)
            and tokens[at + 1].text == "("
            and _DECLARES.match(token.text)
        ):
            end = closing(tokens, at + 1) + 1
            if tokens[end].text == ";":
                end += 1
            yield at, end
            at = end
        else:
            at += 1


def skip_directive(tokens: Sequence[Token], at: int) -> int:
    """Return the index of the first token after the directive that begins at `at`."""
    at += 1
    while at < len(tokens) and not tokens[at].first:
        at += 1
    return at


def closing(tokens: Sequence[Token], at: int) -> int:
    """Return the index of the bracket that closes the one at `at`; raises `Unbalanced`."""
    stack: list[Token] = []
    start = at
    while at < len(tokens):
        token = tokens[at]
        if token.first and token.text == "#":
            at = skip_directive(tokens, at)
            continue
        if token.kind is Kind.BAD and not token.text.isspace():
            raise Unbalanced(token, f"{token.text[:1]!r} is not valid here, or is never closed")
        if token.kind is Kind.PUNCT:
            if token.text in _OPENERS:
                stack.append(token)
            elif token.text in (")", "]", "}"):
                if _OPENERS[stack[-1].text] != token.text:
                    raise Unbalanced(token, f"{token.text!r} does not close {stack[-1].text!r}")
                stack.pop()
                if not stack:
                    return at
        at += 1
    opener = stack[-1] if stack else tokens[start]
    raise Unbalanced(opener, f"{opener.text!r} is never closed")


def make_shape(tokens: Sequence[Token]) -> DeclarationShape | None:
    """Return the shape of one declaration, or None when it has no `TP_` part.

    Raises `CannotFormatError` for text that must stay as it is.
    """
    items = make_items(tokens)
    items[0].new_nl, items[0].new_ws = 0, ""
    last = len(items) - 1
    while items[last].text != ")" or not items[last].is_code:
        last -= 1
    shape = DeclarationShape(tokens[0].start, tokens[-1].end, items, [], close=items[last])
    for start, end in split_ranges(items, 2, last):
        part = _part(items, start, end)
        if part is None:
            raise CannotFormatError
        if part.name or shape.parts:
            shape.parts.append(part)
        else:
            shape.head.append(part)
    return shape if shape.parts else None


def _part(items: list[TextItem], start: int, end: int) -> Part | None:
    at = start
    while at < end and not items[at].is_code:
        at += 1
    if at >= end:
        return None
    code = [i for i in range(at, end) if items[i].is_code]
    if len(code) >= 3 and items[at].text.startswith("TP_") and items[code[1]].text == "(":
        if closing_item(items, code[1]) != code[-1]:
            raise CannotFormatError
        inside = items[code[1] + 1 : code[-1]]
        return Part(items[at].text, items[start], items[at], inside, items[code[-1]], items[code[1]])
    return Part("", items[start], items[at], items[at + 1 : end], None)
