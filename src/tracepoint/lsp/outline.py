"""What a header declares and where: the outline of it, its folds, and what is declared at an offset."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tracepoint.model.event import BareTracepoint, Event, EventClass
from tracepoint.model.vocabulary import PART_MACROS
from tracepoint.source.lexer import lex
from tracepoint.source.syntax import read_call

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.model.event import TraceHeader
    from tracepoint.model.field import Field

Declared: TypeAlias = Event | EventClass | BareTracepoint

_WORD = re.compile(r"\w+")
#: What precedes the name of a field: `__entry->`, `__get_str(`, `__assign_str(`.
_BEFORE_FIELD = re.compile(
    r"(?:\b__entry\s*->\s*|\b__(?:get|assign)_\w+\s*\(\s*|\b__print_dynamic_array\s*\(\s*)\Z"
)
_MAX_BEFORE = 200
_PART_NAMES = frozenset(name for names in PART_MACROS.values() for name in names)


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a text and the offsets of its characters."""

    text: str
    start: int
    end: int


def word_at(text: str, offset: int) -> Word | None:
    """Return the word that an offset is in, or at the end of.

    >>> word_at("a __entry->len", 13)
    Word(text='len', start=11, end=14)
    """
    start = offset
    while start > 0 and (text[start - 1].isalnum() or text[start - 1] == "_"):
        start -= 1
    match = _WORD.match(text, start)
    return Word(match[0], *match.span()) if match and match.start() <= offset <= match.end() else None


def declared(header: TraceHeader) -> Iterator[Declared]:
    """Yield what the text of a header itself declares, in the order of the text; an event hides its class."""
    things: dict[int, Declared] = {}
    every: tuple[Declared, ...] = (*header.classes, *header.tracepoints, *header.events)
    for thing in every:
        if (
            thing.origin is not None
            and thing.origin.span.path == header.path
            and thing.origin.span.start >= 0
        ):
            things[thing.origin.span.start] = thing
    yield from (things[start] for start in sorted(things))


def declared_at(header: TraceHeader, offset: int) -> Declared | None:
    """Return what is declared by the text around an offset."""
    for thing in declared(header):
        span = thing.origin.span if thing.origin else None
        if span is not None and span.start <= offset <= span.end:
            return thing
    return None


def class_of(thing: Declared) -> EventClass | None:
    """Return the class whose record a declaration has, None for a tracepoint without an event."""
    return thing.event_class if isinstance(thing, Event) else thing if isinstance(thing, EventClass) else None


def event_of(header: TraceHeader, thing: Event | EventClass) -> Event:
    """Return an event with the record of a class: its first one, or one made up for it."""
    if isinstance(thing, Event):
        return thing
    mine = (event for event in header.events if event.event_class.name == thing.name)
    return next(mine, None) or Event(thing.name, header.system, thing)


def field_at(header: TraceHeader, offset: int) -> tuple[Event | EventClass, Field] | None:
    """Return the field that the word at an offset names, and what declares it.

    That is a word in the field's own macro, after `__entry->`, or the first argument of a getter.
    """
    thing = declared_at(header, offset)
    text = header.source.text if header.source is not None else ""
    word = word_at(text, offset)
    if thing is None or isinstance(thing, BareTracepoint) or word is None:
        return None
    owner = class_of(thing)
    for field in owner.fields if owner is not None else ():
        span = field.origin.span if field.origin is not None and not field.origin.chain else None
        is_here = span is not None and span.start <= word.start < span.end
        if word.text == field.name and (
            is_here or _BEFORE_FIELD.search(text, max(0, word.start - _MAX_BEFORE), word.start)
        ):
            return thing, field
    return None


def own_fields(thing: Declared) -> Iterator[Field]:
    """Yield the fields that stand in the text of a declaration, not those of a class or macro elsewhere."""
    owner, origin = class_of(thing), thing.origin
    if owner is None or origin is None:
        return
    for field in owner.fields:
        place = field.origin
        if place is not None and not place.chain and origin.span.start <= place.span.start < origin.span.end:
            yield field


def folds(header: TraceHeader) -> Iterator[tuple[int, int]]:
    """Yield the first and last line (from 1) of each declaration and part of it that has several lines."""
    for thing in declared(header):
        span = thing.origin.span if thing.origin else None
        if header.source is None or span is None or span.end_line <= span.line:
            continue
        yield span.line, span.end_line
        tokens = lex(header.source, span.start, span.end)
        for at, token in enumerate(tokens):
            call = read_call(tokens, at) if token.text in _PART_NAMES else None
            if call is not None and (last := call[0].close.span.line) > token.span.line:
                yield token.span.line, last
