"""The pieces the formatter moves about: tokens, comments and directives of one declaration.

A declaration is a list of `TextItem`.  The formatter only ever sets `new_nl` and `new_ws`, the white
space in front of an item, so it cannot change, lose or reorder a token.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.source.brackets import outside
from tracepoint.source.lexer import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.source.lexer import Token

TAB = 8

_PIECE = re.compile(
    r"(?P<space>[ \t\r\f\v]+)|(?P<newline>\n)|(?P<line>//(?:[^\n\\]|\\[^\n])*)"
    r"|(?P<block>/\*(?:[^*]|\*(?!/))*\*/)|(?P<odd>[\s\S])"
)


class What(enum.Enum):
    """What an item is."""

    CODE = 1
    BLOCK_COMMENT = 2
    LINE_COMMENT = 3
    DIRECTIVE = 4


@dataclass(slots=True, eq=False)
class TextItem:
    """One token, comment or whole directive, and the white space in front of it.

    `nl` is the number of line ends before it and `ws` the blanks after the last of them (its
    indentation when `nl` is not 0); `new_nl` and `new_ws` are what the formatter writes.
    """

    text: str
    what: What
    nl: int
    ws: str
    is_string: bool = False
    is_name: bool = False
    new_nl: int = 0
    new_ws: str = ""

    def __post_init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget what was set: the white space is as it was written."""
        self.new_nl, self.new_ws = min(self.nl, 2), self.ws

    @property
    def is_code(self) -> bool:
        """Whether it is a token."""
        return self.what is What.CODE

    @property
    def indent(self) -> int:
        """The column of the first character of a line as it was written."""
        return advance(0, self.ws)

    def break_line(self, column: int, *, blank: bool = False) -> None:
        """Start a line with this item at `column`, after an empty line if `blank`."""
        self.new_nl = 2 if blank else 1
        self.new_ws = indentation(column)

    def join(self, space: str = "") -> None:
        """Put it on the line of the item before."""
        self.new_nl, self.new_ws = 0, space


def advance(column: int, text: str) -> int:
    """Return the column after `text` that starts at `column`; tabs go to multiples of 8."""
    if "\t" not in text:
        return column + len(text)
    for char in text:
        column = column + TAB - column % TAB if char == "\t" else column + 1
    return column


def indentation(column: int) -> str:
    """Return tabs and spaces that lead to `column`."""
    return "\t" * (column // TAB) + " " * (column % TAB)


def next_stop(column: int) -> int:
    """Return the tab stop after `column`."""
    return (column // TAB + 1) * TAB


def tabs_between(column: int, target: int) -> str:
    """Return the tabs that lead from `column` to the tab stop `target`, at least one."""
    return "\t" * max(1, (target - column + TAB - 1) // TAB)


class CannotFormatError(Exception):
    """A declaration that is left as it is: a spliced line, a stray byte."""


def make_items(tokens: Sequence[Token]) -> list[TextItem]:
    """Turn the tokens of one declaration into items; raises `CannotFormatError` for odd text."""
    items: list[TextItem] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        nl, ws = 0, ""
        if at:
            nl, ws = _comments(token.file.text[token.lead : token.start], items)
        if token.first and token.text == "#":
            at, text = _directive(tokens, at)
            items.append(TextItem(text, What.DIRECTIVE, nl, ws))
            continue
        if token.kind is Kind.BAD or "\n" in token.text:
            raise CannotFormatError
        items.append(
            TextItem(token.text, What.CODE, nl, ws, token.kind is Kind.STRING, token.kind is Kind.NAME)
        )
        at += 1
    return items


def _comments(trivia: str, items: list[TextItem]) -> tuple[int, str]:
    """Append the comments in `trivia`; return line ends and blanks after the last of them."""
    nl, ws = 0, ""
    for match in _PIECE.finditer(trivia):
        match match.lastgroup:
            case "space":
                ws += match[0].replace("\r", "")
            case "newline":
                nl, ws = nl + 1, ""
            case "odd":
                raise CannotFormatError
            case group:
                what = What.LINE_COMMENT if group == "line" else What.BLOCK_COMMENT
                items.append(TextItem(match[0].replace("\r\n", "\n").rstrip(), what, nl, ws))
                nl, ws = 0, ""
    return nl, ws


def _directive(tokens: Sequence[Token], at: int) -> tuple[int, str]:
    """Return the index after a directive and its text, comments and splices included."""
    start = tokens[at]
    end = at + 1
    while end < len(tokens) and not tokens[end].first:
        end += 1
    text = start.file.text[start.start : tokens[end - 1].end]
    return end, text.replace("\r\n", "\n")


def render(items: Sequence[TextItem]) -> str:
    """Join items; keeps directives and what follows `//` on lines of their own."""
    out: list[str] = []
    before: TextItem | None = None
    for item in items:
        nl, ws = item.new_nl, item.new_ws
        if before is not None and not nl:
            alone = item.what is What.DIRECTIVE or before.what in (What.LINE_COMMENT, What.DIRECTIVE)
            comment_after_directive = before.what is What.DIRECTIVE and not item.is_code and not item.nl
            if alone and not comment_after_directive:
                nl, ws = 1, (item.ws if item.nl else "\t\t")
        if nl:
            out.append("\n" * nl)
        out.append(ws)
        out.append(_shifted(item, ws))
        before = item
    return "".join(out)


def _shifted(item: TextItem, ws: str) -> str:
    """Return the text of an item; the inner lines of a moved comment move with it."""
    if item.what is not What.BLOCK_COMMENT or "\n" not in item.text or not item.nl:
        return item.text
    delta = advance(0, ws) - item.indent
    if not delta:
        return item.text
    first, *rest = item.text.split("\n")
    return "\n".join([first, *(shift_line(line, delta) for line in rest)])


def shift_line(line: str, delta: int) -> str:
    """Move the first character of a line by `delta` columns, not beyond column 0."""
    bare = line.lstrip(" \t")
    if not bare:
        return line
    return indentation(max(0, advance(0, line[: len(line) - len(bare)]) + delta)) + bare


def split_ranges(items: Sequence[TextItem], start: int, end: int) -> list[tuple[int, int]]:
    """Return the ranges between the commas of `items[start:end]` that no bracket encloses."""
    commas = list(outside(items, {","}, start, end))
    return list(zip([start, *(at + 1 for at in commas)], [*commas, end], strict=True))


def text_of(items: Sequence[TextItem]) -> str:
    """Return items on one line, single spaces where there was white space."""
    out: list[str] = []
    for at, item in enumerate(items):
        if at and (item.nl or item.ws):
            out.append(" ")
        out.append(item.text)
    return "".join(out)
