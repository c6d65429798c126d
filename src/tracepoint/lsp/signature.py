"""Which call an offset is in, and what it takes: `trace_x()`, and the macros of declarations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.model.event import Event
from tracepoint.model.vocabulary import DECLARING_MACROS, FIELD_MACROS
from tracepoint.named import NamedTuple
from tracepoint.source.brackets import split_arguments
from tracepoint.source.lexer import lex
from tracepoint.source.text import SourceFile

if TYPE_CHECKING:
    from tracepoint.model.event import BareTracepoint

#: A call begins at most so many characters before the argument that is written.
_MAX_CALL = 8000
_CLOSES = {")": "(", "]": "[", "}": "{"}


class OpenCall(NamedTuple):
    """A call whose parenthesis is open at an offset, and the number of the argument there, from 0."""

    name: str
    argument: int


class Signature(NamedTuple):
    """What is called, and its parameters in order."""

    label: str
    parameters: tuple[str, ...]


def call_at(text: str, offset: int) -> OpenCall | None:
    """Return the innermost call that is open at an offset.

    >>> call_at("f(a, trace_tick(1, (2, 3), ", 27)
    OpenCall(name='trace_tick', argument=2)
    """
    start = text.rfind("\n", 0, max(offset - _MAX_CALL, 0)) + 1
    open_calls: list[OpenCall | None] = []
    before = ""
    for token in lex(SourceFile("", text[start:offset])):
        if token.text in {"(", "[", "{"}:
            open_calls.append(OpenCall(before, 0) if token.text == "(" and before.isidentifier() else None)
        elif token.text in _CLOSES and open_calls:
            open_calls.pop()
        elif token.text == "," and open_calls and (call := open_calls[-1]) is not None:
            open_calls[-1] = call._replace(argument=call.argument + 1)
        before = token.text
    return next((call for call in reversed(open_calls) if call is not None), None)


def macro_signature(name: str) -> Signature | None:
    """Return the arguments of a macro of fields or declarations, None for another word.

    >>> macro_signature("__array").label
    '__array(type, name, length)'
    """
    roles = FIELD_MACROS.get(name[2:]) if name.startswith("__") else DECLARING_MACROS.get(name)
    return Signature(f"{name}({', '.join(roles)})", tuple(roles)) if roles else None


def call_signature(name: str, thing: Event | BareTracepoint) -> Signature:
    """Return what a call of a tracepoint takes: the parameters of its prototype."""
    override = thing.proto_override if isinstance(thing, Event) else None
    proto = str(override or thing.proto)
    parts = split_arguments(lex(SourceFile("", proto))[:-1])
    parameters = tuple(proto[part[0].span.start : part[-1].span.end] for part in parts if part)
    return Signature(f"void {name}({', '.join(parameters)})", parameters)
