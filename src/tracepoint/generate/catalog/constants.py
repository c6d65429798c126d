"""Print formats as a reader wants them: with their constants worked out.

The kernel's own text has `( unsigned long)(((( gfp_t)(((((1UL))) << (10))|...`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from tracepoint.errors import SourceError
from tracepoint.source.brackets import outside, pair_brackets
from tracepoint.source.cexpr import parse_expression
from tracepoint.source.constants import constant_value
from tracepoint.source.lexer import Kind, lex
from tracepoint.source.text import SourceFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracepoint.source.lexer import Token

_MAX_CONSTANT = 4000
_HAS_OPERATOR = re.compile(r"[(|<~]")
# A size may differ from machine to machine, and an address is no number to a reader.
_IS_LEFT = re.compile(r"\bsizeof\b|\*\s*\)|^[^\d]*$")


@lru_cache(maxsize=1 << 12)
def work_out(text: str) -> str:
    """Return a print format with a number in place of each value in parentheses, or of a table, that is one.

    Worked out is what is constant on any 64-bit machine and not negative; the rest stays as it is.

    >>> work_out('"%x", REC->a & ((((0x1 | 0x2) + 1) << 1) - 1)')
    '"%x", REC->a & 7'
    """
    try:
        tokens = [token for token in lex(SourceFile("<print format>", text)) if token.kind is not Kind.END]
    except SourceError:
        return text
    parts, at = [], 0
    for first, last in sorted(_values(tokens), key=lambda place: (place[0], -place[1])):
        start, end = tokens[first].start, tokens[last].end
        number = _number(text[start:end], tokens[first : last + 1]) if start >= at else None
        if number is not None:
            parts += [text[at:start], str(number) if number < 10 else f"{number:#x}"]
            at = end
    return "".join(parts) + text[at:]


def _values(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last token of values: in parentheses not of a call, and first in an entry."""
    pairs, _ = pair_brackets([token.text for token in tokens])
    for at, close in pairs.items():
        if at > close:
            continue
        if tokens[at].text == "(" and not (at and tokens[at - 1].kind is Kind.NAME):
            yield at, close
        elif tokens[at].text == "{":
            comma = next(outside(tokens, (",",), at + 1, close), at + 1)
            if comma > at + 1:
                yield at + 1, comma - 1


def _number(text: str, tokens: Sequence[Token]) -> int | None:
    if len(text) > _MAX_CONSTANT or _IS_LEFT.search(text) or not _HAS_OPERATOR.search(text):
        return None
    try:
        found = constant_value(parse_expression(tokens), lambda _: None)
    except SourceError:
        return None
    return found if found is not None and found >= 0 else None
