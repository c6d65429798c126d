"""Where a text names an event or a class of events: in declarations, calls, exports and hooks.

This reads tokens, not the model: a C file has no model, and a macro's body that names a class counts too.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from tracepoint.lsp.outline import Word, declared
from tracepoint.model.event import BareTracepoint
from tracepoint.model.vocabulary import (
    ANNOTATION_MACROS,
    CLASS_MACROS,
    DECLARING_MACROS,
    EVENT_MACROS,
)
from tracepoint.named import NamedTuple
from tracepoint.source.brackets import read_macro_arguments
from tracepoint.source.lexer import Kind, lex
from tracepoint.source.text import SourceFile
from tracepoint.tree.callsites.calls import classify

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracepoint.model.event import TraceHeader
    from tracepoint.source.lexer import Token

_EVENT, _CLASS = "event", "class"
#: Macros whose one argument is the name of a tracepoint, outside of headers.
_TAKES_NAME = frozenset({"EXPORT_TRACEPOINT_SYMBOL", "EXPORT_TRACEPOINT_SYMBOL_GPL", "tracepoint_enabled"})
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_OF_ENUMS = frozenset({"TRACE_DEFINE_ENUM", "TRACE_DEFINE_SIZEOF"})


class DeclaredName(NamedTuple):
    """The name of an event, of a class, or of both (`TRACE_EVENT`); `call_name` follows `trace_` in calls."""

    name: str
    call_name: str
    kinds: frozenset[str]

    @property
    def is_called(self) -> bool:
        """Whether it has a tracepoint, so that functions are named after it."""
        return _EVENT in self.kinds


def named_at(header: TraceHeader, offset: int) -> DeclaredName | None:
    """Return the event or class whose name in a declaration is at an offset."""
    text = header.source.text if header.source is not None else ""
    for kinds, token in declared_names(lex(SourceFile("", text))):
        if token.start <= offset <= token.end:
            return _resolved(header, token.text, kinds)
    for thing, word in _made_by_macros(header):
        if word.start <= offset <= word.end:
            return _resolved(header, thing, frozenset({_EVENT}))
    return None


def _resolved(header: TraceHeader, name: str, kinds: frozenset[str]) -> DeclaredName:
    """Return a name with all that it is: the event of a TRACE_EVENT is also the class of others."""
    both = any(event.name == name and event.macro in EVENT_MACROS for event in header.events)
    bare = next((t for t in header.tracepoints if t.name == name and _EVENT in kinds), None)
    call_name = (bare.call_name if bare is not None else "") or name
    return DeclaredName(name, call_name, frozenset({_EVENT, _CLASS}) if both else kinds)


def named_event(header: TraceHeader, name: str) -> DeclaredName:
    """Return an event or tracepoint of a header by its name."""
    return _resolved(header, name, frozenset({_EVENT}))


def declared_in(header: TraceHeader, named: DeclaredName) -> list[Word]:
    """Return where a header names it: in its declaration, in those that use it, in calls, in order."""
    text = header.source.text if header.source is not None else ""
    found = {word.start: word for word in mentioned_in(text, named)}
    if named.is_called:
        made = (word for name, word in _made_by_macros(header) if name == named.name)
        found |= {word.start: word for word in made}
    return [found[start] for start in sorted(found)]


def mentioned_in(text: str, named: DeclaredName) -> Iterator[Word]:
    """Yield where a text names it, outside of comments and strings.

    >>> pair = DeclaredName("tick", "tick", frozenset({"event"}))
    >>> text = "if (trace_tick_enabled()) trace_tick(1); /* trace_tick */ trace_tick_tock();"
    >>> [word.start for word in mentioned_in(text, pair)]
    [10, 32]
    """
    if named.name not in text:
        return
    tokens = lex(SourceFile("", text))
    for kinds, token in declared_names(tokens):
        if token.text == named.name and kinds & named.kinds:
            yield Word(token.text, token.start, token.end)
    if named.is_called:
        yield from _called_names(tokens, named)


def declared_names(tokens: Sequence[Token]) -> Iterator[tuple[frozenset[str], Token]]:
    """Yield the names in declaring macros, each with what it is the name of."""
    for at, token in enumerate(tokens[:-1]):
        roles = DECLARING_MACROS.get(token.text)
        if roles is None or token.text in _OF_ENUMS or tokens[at + 1].text != "(":
            continue
        arguments = read_macro_arguments(tokens, at + 1)
        for role, argument in zip(roles, arguments[0] if arguments else (), strict=False):
            if role in ("name", "template") and len(argument) == 1 and argument[0].kind is Kind.NAME:
                yield _kinds(token.text, role), argument[0]


def _kinds(macro: str, role: str) -> frozenset[str]:
    if role == "template" or macro in CLASS_MACROS:
        return frozenset({_CLASS})
    both = macro in EVENT_MACROS and macro not in ANNOTATION_MACROS
    return frozenset({_EVENT, _CLASS}) if both else frozenset({_EVENT})


def _called_names(tokens: Sequence[Token], named: DeclaredName) -> Iterator[Word]:
    """Yield the name in `trace_x`, `trace_x_enabled`, `register_trace_x`, and as argument of macros."""
    before = ""
    names = {named.call_name}
    for token, after in pairwise(tokens):
        if token.text == "(" and before in _TAKES_NAME and after.text == named.call_name:
            yield Word(named.name, after.start, after.start + len(named.name))
        elif token.kind is Kind.NAME:
            if "trace_" in token.text and classify(token.text, names) is not None:
                at = token.start + _place_in(token.text, named.call_name)
                yield Word(named.name, at, at + len(named.name))
            elif token.text == f"__tracepoint_{named.call_name}":
                at = token.end - len(named.call_name)
                yield Word(named.name, at, at + len(named.name))
        before = token.text


def _place_in(word: str, name: str) -> int:
    """Return where the name of a tracepoint begins in the name of a function.

    >>> _place_in("register_trace_prio_prio", "prio")
    20
    """
    at = word.index("trace_") + len("trace_")
    for infix in ("call__", "prio_"):
        rest = word[at + len(infix) :] if word.startswith(infix, at) else ""
        if rest.startswith(name):
            return at + len(infix)
    return at


def _made_by_macros(header: TraceHeader) -> Iterator[tuple[str, Word]]:
    """Yield the names in uses of the header's own macros, where they stand as whole words."""
    text = header.source.text if header.source is not None else ""
    for thing in declared(header):
        origin = thing.origin
        if (
            origin is None
            or not origin.chain
            or text[origin.span.start :].startswith(tuple(DECLARING_MACROS))
        ):
            continue
        name = thing.name
        match = re.compile(rf"\b{re.escape(name)}\b").search(text, origin.span.start, origin.span.end)
        if match is not None and not isinstance(thing, BareTracepoint):
            yield name, Word(name, *match.span())


def is_name(text: str) -> bool:
    """Return whether a text can be a name of C."""
    return _NAME.fullmatch(text) is not None
