"""Formatting of a part of a header: the declarations that touch it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.model.fmt.shape import Unbalanced, declarations
from tracepoint.model.fmt.text import format_text
from tracepoint.source.lexer import lex
from tracepoint.source.text import SourceFile

if TYPE_CHECKING:
    from collections.abc import Iterator


def format_range(text: str, path: str, start: int, end: int) -> Iterator[tuple[int, int, str]]:
    r"""Yield the edits that format the declarations from `start` to `end`: what is replaced, and by what.

    They are set as they would be with all of the text.

    >>> text = "TRACE_EVENT(a,TP_PROTO(int x),TP_ARGS(x));\nTRACE_EVENT(b,TP_PROTO(int x),TP_ARGS(x));"
    >>> [(start, end) for start, end, _ in format_range(text, "", 50, 60)]
    [(43, 85)]
    """
    new = format_text(text, path).text
    before, after = _stretches(text), _stretches(new)
    # Only white space changes, so both texts have the same declarations.
    if new == text or len(before) != len(after):
        return
    for (old_start, old_end), (new_start, new_end) in zip(before, after, strict=True):
        replacement = new[new_start:new_end]
        if old_start <= end and start <= old_end and text[old_start:old_end] != replacement:
            yield old_start, old_end, replacement


def _stretches(text: str) -> list[tuple[int, int]]:
    tokens = lex(SourceFile("", text))
    try:
        return [(tokens[start].start, tokens[end - 1].end) for start, end in declarations(tokens)]
    except Unbalanced:
        return []
