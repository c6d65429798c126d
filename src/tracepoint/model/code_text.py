"""C text that a program gives instead of a header: checked, and made into `Code`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tracepoint.errors import SourceError
from tracepoint.model.declaration import read_proto
from tracepoint.model.origin import Code
from tracepoint.source.brackets import CLOSERS, match_brackets, outside
from tracepoint.source.lexer import Kind, Token, lex
from tracepoint.source.macros import spell
from tracepoint.source.text import SourceFile

if TYPE_CHECKING:
    from tracepoint.model.event import Proto

IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*\Z", re.ASCII)
# An event's name is only ever pasted after `trace_`, so it may begin with a digit: 9p_client_req.
_EVENT_NAME = re.compile(r"[A-Za-z0-9_$]+\Z", re.ASCII)


def given_tokens(text: str, what: str) -> list[Token]:
    """Return the tokens of a piece of C; raises SourceError when it cannot be part of a declaration.

    `what` names the piece in the message.  Brackets must match, and there must be no preprocessor
    directive, unclosed literal or stray character.
    """
    tokens = lex(SourceFile(f"<{what}>", text))[:-1]
    for token in tokens:
        if token.kind is Kind.BAD:
            raise SourceError(f"{what}: {token.text[:1]!r} is not valid here, or is never closed", token.span)
        if token.first and token.text == "#":
            raise SourceError(f"{what}: a preprocessor directive is not valid here", token.span)
    _, wrong = match_brackets(tokens)
    if wrong is not None:
        token = tokens[wrong]
        fault = "is never closed" if token.text in CLOSERS else "has no opening bracket"
        raise SourceError(f"{what}: {token.text!r} {fault}", token.span)
    return tokens


def given_code(text: str, what: str) -> Code:
    r"""Return the `Code` of a piece of C text, blanks normalised, comments dropped.

    >>> given_code("a  +\n b", "length").text
    'a + b'
    """
    tokens = given_tokens(text, what)
    return Code(spell(tokens), tuple(tokens))


def given_argument(text: str, what: str) -> Code:
    """Like `given_code`, for one macro argument: not empty, and no comma outside brackets."""
    code = given_code(text, what)
    for comma in outside(code.tokens, {","}):
        raise SourceError(f"{what}: a comma here would begin another argument", code.tokens[comma].span)
    if not code.text:
        raise SourceError(f"{what} is empty")
    return code


def given_name(name: object, what: str) -> str:
    """Return a C identifier; raises SourceError for anything else.

    >>> given_name("prev_pid", "field name")
    'prev_pid'
    """
    if not isinstance(name, str) or not IDENTIFIER.match(name):
        raise SourceError(f"{what}: {name!r} is not a C identifier")
    return name


def given_event_name(name: object, what: str) -> str:
    """Return the name of an event, class or tracepoint; raises SourceError for anything else."""
    if not isinstance(name, str) or not _EVENT_NAME.match(name):
        raise SourceError(f"{what}: {name!r} cannot follow `trace_` in a C identifier")
    return name


def given_proto(text: str, what: str) -> Proto:
    """Return the prototype of parameter text such as `struct page *page, int order`."""
    proto = read_proto(given_tokens(text, what))
    for param in proto.params:
        if not param.name:
            raise SourceError(f"{what}: parameter {param.ctype!r} has no name")
    if len(set(proto.names)) != len(proto.names):
        raise SourceError(f"{what}: two parameters have the same name")
    return proto
