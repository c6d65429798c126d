"""TP_printk to the text after `print fmt: `, as stage7 of include/trace/stages makes it.

The format's pieces are joined into one string; the arguments are expanded and turned to text
by the preprocessor's `#`, with `__entry` shown as `REC`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from tracepoint.source.brackets import find_parenthesis, outside
from tracepoint.source.cwrite import decode_string
from tracepoint.source.lexer import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.model.origin import Code
    from tracepoint.source.lexer import Token

# The only two helpers that have a text of their own in a print format.
_TIME_HELPERS = {"__print_ns_to_secs": "/", "__print_ns_without_secs": "%"}


_ON_64_BIT = {"__print_flags_u64": "__print_flags", "__print_symbolic_u64": "__print_symbolic"}


@runtime_checkable
class Expands(Protocol):
    """An environment that can expand macros of included files."""

    def expand(self, tokens: Sequence[Token]) -> list[Token]:
        """Return the tokens with all macros expanded."""


def print_fmt_text(printk: Code, environment: object = None, *, long_size: int = 8) -> str:
    """Return the print format of a `TP_printk`, before names of TRACE_DEFINE_ENUM are replaced.

    `long_size` is that of the ABI in bytes: stage 3 has `__print_flags_u64` only where it is 4.
    A part of the format that is neither a literal nor a macro for one stays as it is spelt.

    >>> from tracepoint.model.origin import Code
    >>> print_fmt_text(Code('"%d" " %s", __entry->n,  __get_str(name)'))
    '"%d %s", REC->n, __get_str(name)'
    """
    tokens = list(printk.all_tokens())
    tokens = [t for t in tokens if t.kind is not Kind.END]
    if isinstance(environment, Expands):
        tokens = [t for t in environment.expand(tokens) if t.kind is not Kind.END]
    texts = _ON_64_BIT if long_size == 8 else {}
    split = next(outside(tokens, {","}), len(tokens))
    fmt = "".join(decode_string(t.text[1:-1]) if t.kind is Kind.STRING else t.text for t in tokens[:split])
    return f'"{_as_text(fmt)}", {_arguments(tokens[split + 1 :], texts)}'


def _as_text(latin1: str) -> str:
    """String values hold bytes as latin-1; tracefs shows those bytes, which are mostly UTF-8."""
    try:
        return latin1.encode("latin-1").decode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return latin1


def _arguments(tokens: Sequence[Token], texts: Mapping[str, str]) -> str:
    parts: list[str] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        text = "REC" if token.text == "__entry" else texts.get(token.text, token.text)
        operator = _TIME_HELPERS.get(text)
        if operator and at + 1 < len(tokens) and tokens[at + 1].text == "(":
            close = find_parenthesis(tokens, at + 1)
            close = len(tokens) if close < 0 else close
            text = f"({_arguments(tokens[at + 2 : close], texts)}) {operator} 1000000000UL"
            at = close
        parts.append((" " if token.space and parts else "") + text.replace("\\\n", ""))
        at += 1
    return "".join(parts)
