"""The formatter: trace headers set as the kernel's own are, without changing a token.

clang-format cannot do this: the five parts of a declaration are not C until the preprocessor
has run.  Text goes in, text and findings come out; only white space inside declarations changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.diagnostics import Diagnostic, Severity
from tracepoint.model.fmt.items import CannotFormatError, render
from tracepoint.model.fmt.layout import BLOCK_QUESTIONS, Style, apply_style, choose_style
from tracepoint.model.fmt.own_style import is_laid_out, keep_own_style
from tracepoint.model.fmt.shape import DeclarationShape, Unbalanced, declarations, make_shape
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

    Without a `style`, a declaration that is broken into lines stays as it is, but for the lines that
    break what the header does itself; one that is not is set as the header's others are, or as most of
    the kernel's are.  Text whose brackets do not match comes back unchanged, with one diagnostic.
    Line ends stay what they are, LF or CRLF.

    >>> print(format_text("TRACE_EVENT(a,TP_PROTO(int x),TP_ARGS(x));").text.expandtabs(4))
    TRACE_EVENT(a,
    <BLANKLINE>
        TP_PROTO(int x),
    <BLANKLINE>
        TP_ARGS(x)
    );
    """
    try:
        new = _format_once(text, path, style)
        if style is not None:
            return FormatResult(new)
        for _ in range(_MOST_TURNS):
            before, new = new, _format_once(new, path, style)
            if new == before:
                return FormatResult(new)
    except Unbalanced as error:
        return FormatResult(text, (_unbalanced(error),))
    return FormatResult(text)


_MOST_TURNS = 8  # a change can be the one that makes another way usual: until nothing more changes


def _format_once(text: str, path: str, style: Style | None) -> str:
    """Return the text formatted; raises `Unbalanced`."""
    shapes = _shapes(text, lex(SourceFile(path, text)))
    if style is None:
        _set_in_own_style(shapes)
    else:
        for shape in shapes:
            _set_in_style(shape, style)
    pieces: list[str] = []
    at = 0
    for shape in shapes:
        new = render(shape.items)
        old = text[shape.start : shape.end]
        if "\r\n" in old:
            new = new.replace("\n", "\r\n")
        pieces += (text[at : shape.start], new)
        at = shape.end
    pieces.append(text[at:])
    return "".join(pieces)


def _set_in_own_style(shapes: list[DeclarationShape]) -> None:
    """Keep what is laid out as it is, but for what breaks its style; set the rest in that style."""
    laid_out = [shape for shape in shapes if is_laid_out(shape)]
    if len(laid_out) < len(shapes):
        overall = choose_style(shapes, Style())
        for shape in shapes:
            if not is_laid_out(shape):
                _set_in_style(shape, choose_style([shape], overall, BLOCK_QUESTIONS))
    keep_own_style(laid_out)


def _set_in_style(shape: DeclarationShape, style: Style) -> None:
    for item in shape.items:
        item.reset()
    apply_style(shape, style)


def _shapes(text: str, tokens: list[Token]) -> list[DeclarationShape]:
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
