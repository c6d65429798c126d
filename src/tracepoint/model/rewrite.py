"""Break model text into lines, and spell `__assign_str` as a tree wants it.

Lines are only broken where the text has a blank, so that it reads back as it was.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tracepoint.model.field import StringField
from tracepoint.source.lexer import Kind, Token, lex
from tracepoint.source.text import SourceFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracepoint.model.field import Field

_HEADS = frozenset(("if", "for", "while", "switch"))
_WIDTH = 80
_DECLARATION = re.compile(
    r"\t\t(?:const |struct |unsigned |enum |union )*\w+ \**\w+(?:\[[^=;]*\])*(?: = [^;]*)?;$"
)
_PRINT_COLUMN = 18  # after `TP_printk(` one tab in


def _with_depth(text: str) -> Iterator[tuple[Token, int]]:
    """Yield the tokens of a text with how many round and square brackets enclose each."""
    depth = 0
    for token in lex(SourceFile("", text)):
        if token.kind is Kind.END:
            return
        if token.text in (")", "]"):
            depth -= 1
        yield token, depth
        if token.text in ("(", "["):
            depth += 1


def _broken(text: str, places: Sequence[int]) -> str:
    pieces = []
    at = 0
    for place in places:
        pieces.append(text[at:place].rstrip(" "))
        at = place
    return "\n".join([*pieces, text[at:]])


def break_statements(text: str) -> str:
    """Put each statement on a line of its own.

    >>> print(break_statements("__entry->a = a; if (b) { c(); }"))
    __entry->a = a;
    if (b) {
    c();
    }
    """
    places: list[int] = []
    before: Token | None = None
    braces: list[bool] = []
    is_head = closed_head = ends = False
    for token, depth in _with_depth(text):
        if before is not None and token.space and not depth:
            is_block_end = token.text == "}" and bool(braces) and braces[-1]
            after_head = closed_head and token.text != "{"
            if is_block_end or (
                (ends or after_head) and not (before.text == "}" and token.text in ("else", "while"))
            ):
                places.append(token.start)
        ends = False
        if not depth:
            ends = token.text == ";"
            if token.text == "{":
                braces.append(before is None or before.text in (")", ";", "{", "}", "else", "do", "("))
                ends = braces[-1]
            elif token.text == "}" and braces:
                ends = braces.pop()
            is_head_word = token.text in _HEADS
            closed_head = (is_head and token.text == ")") or token.text == "else"
            is_head = is_head_word or (is_head and token.text == "(")
        before = token
    return _broken(text, places)


def break_print(text: str) -> str:
    """Break a long print format after its string, and its arguments at column 80."""
    if _PRINT_COLUMN + len(text) < _WIDTH:
        return text
    places: list[int] = []
    column = _PRINT_COLUMN
    before: Token | None = None
    tokens = list(_with_depth(text))
    braces = 0
    in_format = True
    for index, (token, depth) in enumerate(tokens):
        if before is not None and token.space and not depth and not braces:
            joins = in_format and before.kind is Kind.STRING and token.kind is Kind.STRING
            starts = before.text == ","
            end = column + _argument_length(tokens, index)
            if joins or (starts and (in_format or end > _WIDTH)):
                places.append(token.start)
                column = _PRINT_COLUMN
        in_format = in_format and not (before is not None and before.text == "," and not depth)
        braces += (token.text == "{") - (token.text == "}")
        column += len(token.text) + token.space
        before = token
    return _broken(text, places)


def _argument_length(tokens: Sequence[tuple[Token, int]], start: int) -> int:
    """Return the length of the argument that begins at token `start`, looking 80 columns ahead."""
    first = tokens[start][0]
    braces = 0
    for index in range(start, len(tokens)):
        token, depth = tokens[index]
        braces += (token.text == "{") - (token.text == "}")
        if (token.text == "," and not depth and not braces) or token.end - first.start > _WIDTH:
            return token.end - first.start
    return tokens[-1][0].end - first.start


def set_assign_str_arity(text: str, fields: Sequence[Field], arity: int | None) -> str:
    """Spell `__assign_str` with one argument or with two; the second is the field's source.

    >>> set_assign_str_arity("__assign_str(a, b->c);", (), 1)
    '__assign_str(a);'
    """
    if arity is None or "__assign_" not in text:
        return text
    sources = {f.name: f.source.text for f in fields if isinstance(f, StringField)}
    tokens = list(_with_depth(text))
    pieces: list[str] = []
    at = 0
    for index, (token, depth) in enumerate(tokens[:-3]):
        if token.text not in ("__assign_str", "__assign_rel_str") or tokens[index + 1][0].text != "(":
            continue
        name = tokens[index + 2][0]
        comma, close = _comma_and_close(tokens, index + 2, depth)
        if close is None:
            continue
        if arity == 1 and comma is not None:
            pieces += (text[at : comma.start], ")")
            at = close.end
        elif arity == 2 and comma is None:
            pieces += (text[at : name.end], f", {sources.get(name.text, name.text)})")
            at = close.end
    pieces.append(text[at:])
    return "".join(pieces)


def _comma_and_close(
    tokens: Sequence[tuple[Token, int]], start: int, depth: int
) -> tuple[Token | None, Token | None]:
    """Return the first comma of a call's arguments and its closing bracket, from token `start` on."""
    comma = None
    for index in range(start, len(tokens)):
        token, at_depth = tokens[index]
        if token.text == ")" and at_depth == depth:
            return comma, token
        if token.text == "," and at_depth == depth + 1 and comma is None:
            comma = token
    return comma, None


def set_declarations_apart(text: str) -> str:
    """Put an empty line after the declarations with which a formatted TP_fast_assign begins.

    scripts/checkpatch.pl asks for it.
    """
    lines: list[str] = []
    may_declare = False
    n_declared = 0
    for line in text.split("\n"):
        is_declaration = may_declare and bool(_DECLARATION.match(line))
        if may_declare and n_declared and not is_declaration and line.strip():
            lines.append("")
        n_declared = n_declared + 1 if is_declaration else 0
        may_declare = is_declaration or line.strip() == "TP_fast_assign("
        lines.append(line)
    return "\n".join(lines)
