"""A print format as the format string and the trees of its arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.errors import SourceError
from tracepoint.printk.conversion import Conversion, parse_format
from tracepoint.source import ast
from tracepoint.source.cexpr import parse_arguments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.source.lexer import Token


def _latin(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("latin-1")


def split_print_format(text: str) -> tuple[str, tuple[ast.Node, ...]]:
    """Split the text after `print fmt: ` into format string (latin-1) and argument expressions.

    The string ends at the first quote after which everything parses and as many arguments
    stand as the format takes.  Raises `SourceError` when there is none.

    >>> split_print_format('"say "%d"", REC->a')[0]
    'say "%d"'
    """
    if not text.startswith('"'):
        raise SourceError("a print format begins with a quote")
    best: tuple[str, tuple[ast.Node, ...]] | None = None
    error: SourceError | None = None
    at = text.find('"', 1)
    while at > 0:
        rest = text[at + 1 :].lstrip()
        if not rest or rest.startswith(","):
            found = _latin(text[1:at]).replace(r"\"", '"')
            try:
                arguments = parse_arguments(rest[1:])
            except SourceError as caught:
                error = error or caught
            else:
                wanted = sum(p.n_arguments for p in parse_format(found) if isinstance(p, Conversion))
                if wanted == len(arguments):
                    return found, arguments
                best = best or (found, arguments)
        at = text.find('"', at + 1)
    if best is None:
        raise error or SourceError("the format string of a print format never ends")
    return best


def split_source(source: str | Sequence[Token]) -> tuple[str, tuple[ast.Node, ...]]:
    """Split the C text of TP_printk: literals with escapes, then arguments."""
    nodes = parse_arguments(source)
    if not nodes or not isinstance(nodes[0], ast.String):
        raise SourceError("TP_printk does not begin with a string literal")
    if nodes[0].pieces:
        raise SourceError("TP_printk has a name in its format string")
    return nodes[0].value, nodes[1:]
