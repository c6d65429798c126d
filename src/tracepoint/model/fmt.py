"""The formatter: trace headers set as the kernel's own are, without changing a token.

clang-format cannot do this: the five parts of a declaration are not C until the preprocessor
has run.  Text goes in, text and findings come out; only white space inside declarations changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.diagnostics import Diagnostic, Severity
from tracepoint.model.fmt_items import CannotFormatError, render
from tracepoint.model.fmt_layout import BLOCK_QUESTIONS, Style, apply_style, choose_style, unspaced_calls
from tracepoint.model.fmt_shape import Shape, Unbalanced, declarations, make_shape
from tracepoint.source.lexer import lex
from tracepoint.source.text import SourceFile

if TYPE_CHECKING:
    from tracepoint.source.lexer import Token

__all__ = ["FormatResult", "Style", "format_text"]


@dataclass(frozen=True, slots=True)
class FormatResult:
    """The formatted text, and what kept the formatter from its work (nothing, as a rule)."""

    text: str
    diagnostics: tuple[Diagnostic, ...] = ()


def format_text(text: str, path: str = "", style: Style | None = None) -> FormatResult:
    r"""Format the declarations of a trace header; everything else stays as it is, byte for byte.

    Without a `style`, of the layouts that the kernel's headers use the one that changes the
    fewest lines is taken: for blank lines and indentation in the whole file, for columns in each
    declaration.  Text whose brackets do not match comes
    back unchanged, with one diagnostic.  Line ends stay what they are, LF or CRLF.

    >>> print(format_text("TRACE_EVENT(a,TP_PROTO(int x),TP_ARGS(x));").text.expandtabs(4))
    TRACE_EVENT(a,
    <BLANKLINE>
        TP_PROTO(int x),
    <BLANKLINE>
        TP_ARGS(x)
    );
    """
    file = SourceFile(path, text)
    tokens = lex(file)
    try:
        shapes = _shapes(text, tokens)
    except Unbalanced as error:
        return FormatResult(text, (_unbalanced(error),))
    overall = style or choose_style(shapes, Style())
    pieces: list[str] = []
    at = 0
    for shape in shapes:
        for item in shape.items:
            item.reset()
        apply_style(shape, style or choose_style([shape], overall, BLOCK_QUESTIONS))
        for item in unspaced_calls(shape):
            item.join()
        new = render(shape.items)
        old = text[shape.start : shape.end]
        if "\r\n" in old:
            new = new.replace("\n", "\r\n")
        pieces += (text[at : shape.start], new)
        at = shape.end
    pieces.append(text[at:])
    return FormatResult("".join(pieces))


def _shapes(text: str, tokens: list[Token]) -> list[Shape]:
    """Return the declarations that can be formatted; raises `Unbalanced`."""
    shapes = []
    for start, end in declarations(tokens):
        old = text[tokens[start].start : tokens[end - 1].end]
        if "\r" in old and (old.count("\r") != old.count("\n") or old.count("\r\n") != old.count("\n")):
            continue  # mixed line ends: no telling which to write
        try:
            shape = make_shape(tokens[start:end])
        except CannotFormatError:
            continue
        if shape is not None:
            shapes.append(shape)
    return shapes


def _unbalanced(error: Unbalanced) -> Diagnostic:
    return Diagnostic(
        code="TP001",
        name="unbalanced-parenthesis",
        message=f"{error.message}; the file is left as it is",
        span=error.token.span,
        severity=Severity.ERROR,
    )
