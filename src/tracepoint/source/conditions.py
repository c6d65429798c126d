"""The value of `#if` expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.errors import SourceError
from tracepoint.source.brackets import find_parenthesis
from tracepoint.source.cexpr import parse_expression
from tracepoint.source.constants import constant_value
from tracepoint.source.lexer import Kind, Token

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tracepoint.source.config import Config

_CONFIG_TESTS = frozenset({"IS_ENABLED", "IS_BUILTIN", "IS_MODULE", "IS_REACHABLE"})


def evaluate_condition(
    tokens: Sequence[Token],
    is_defined: Callable[[str], bool],
    expand: Callable[[Sequence[Token]], list[Token]],
    config: Config,
) -> bool:
    """Return whether `#if tokens` is taken; raises SourceError when it cannot be evaluated.

    `is_defined` answers `defined(X)`, `expand` expands macros.  As in C, a name that is no
    macro counts as 0; CONFIG names take their value from `config`.
    """
    if not tokens:
        raise SourceError("#if without an expression")
    resolved = expand(_resolve_tests(tokens, is_defined, config))
    numbers = [_as_number(t, config) for t in _drop_unknown_calls(resolved)]
    value = constant_value(parse_expression(numbers), lambda _name: 0)
    if value is None:
        raise SourceError("not a constant expression", tokens[0].span)
    return value != 0


def _number(token: Token, value: str) -> Token:
    return Token(Kind.NUMBER, value, token.start, token.lead, token.file, space=token.space)


def _as_number(token: Token, config: Config) -> Token:
    if token.kind is not Kind.NAME:
        return token
    # Set by linux/libc-compat.h; inside the kernel all of them are 1.
    if token.text.startswith("__UAPI_DEF_"):
        return _number(token, "1")
    value = config.value(token.text) if token.text.startswith("CONFIG_") else None
    return _number(token, value if value is not None and value.isdigit() else "1" if value else "0")


def _resolve_tests(tokens: Sequence[Token], is_defined: Callable[[str], bool], config: Config) -> list[Token]:
    """Replace `defined X`, `defined(X)` and `IS_ENABLED(X)` by 1 or 0, before macros expand."""
    out: list[Token] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        rest = tokens[at + 1 : at + 4]
        if token.text == "defined" and rest:
            is_call = rest[0].text == "("
            name = rest[1 if is_call and len(rest) > 1 else 0]
            out.append(_number(token, "1" if is_defined(name.text) else "0"))
            at += 4 if is_call else 2
        elif token.text in _CONFIG_TESTS and len(rest) == 3 and rest[0].text == "(":
            out.append(_number(token, "1" if config.is_enabled(rest[1].text) else "0"))
            at += 4
        else:
            out.append(token)
            at += 1
    return out


def _drop_unknown_calls(tokens: Sequence[Token]) -> list[Token]:
    """Replace `unknown(...)` by 0: compiler questions such as `__has_attribute(x)`."""
    out: list[Token] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        at += 1
        if token.kind is Kind.NAME and at < len(tokens) and tokens[at].text == "(":
            close = find_parenthesis(tokens, at)
            at = close + 1 if close >= 0 else len(tokens)
            token = _number(token, "0")
        out.append(token)
    return out
