"""Where a name is declared: events for `trace_x()`, classes for `DEFINE_EVENT`, fields for `__entry->x`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tracepoint.lsp.outline import declared_at, field_at, word_at
from tracepoint.model.event import Event
from tracepoint.tree.callsites.calls import classify

if TYPE_CHECKING:
    from tracepoint.diagnostics import Span
    from tracepoint.model.event import BareTracepoint, TraceHeader
    from tracepoint.model.origin import Origin


def definition_in(header: TraceHeader, offset: int) -> Span | None:
    """Return where a header declares what the word at an offset of it names, None if it does not.

    Of a field this is its macro, of the class in `DEFINE_EVENT` its `DECLARE_EVENT_CLASS`, of `trace_x`
    what declares x; of something that a wrapper macro declares it is the use of the macro.
    """
    text = header.source.text if header.source is not None else ""
    word = word_at(text, offset)
    if word is None:
        return None
    found = field_at(header, offset)
    if found is not None:
        return _place(header, found[1].origin, word.text)
    thing = declared_at(header, offset)
    if isinstance(thing, Event) and thing.is_instance and word.text == thing.event_class.name:
        return _place(header, thing.event_class.origin, word.text)
    if thing is not None and word.text == thing.name:
        return _place(header, thing.origin, word.text)
    return declaration_of(header, word.text)


def declaration_of(header: TraceHeader, word: str) -> Span | None:
    """Return where a header declares the tracepoint of `trace_x`, `trace_x_enabled` or `register_trace_x`."""
    thing = called(header, word)
    return _place(header, thing.origin, thing.name) if thing is not None else None


def called(header: TraceHeader, word: str) -> Event | BareTracepoint | None:
    """Return what a header declares the function `trace_x`, or another one of the tracepoint x, for.

    Tracepoints without an event count by what follows `trace_` in calls.
    """
    things: dict[str, Event | BareTracepoint] = {t.call_name or t.name: t for t in header.tracepoints}
    things |= {event.name: event for event in header.events if not event.is_custom}
    named = classify(word, things)
    return things[named[1]] if named is not None else None


def _place(header: TraceHeader, origin: Origin | None, name: str) -> Span | None:
    """Return the name in the text of a declaration, or all of the text when a macro makes the name."""
    if origin is None or header.source is None or origin.span.path != header.path or origin.span.start < 0:
        return origin.span if origin is not None else None
    span = origin.span
    match = re.compile(rf"\b{re.escape(name)}\b").search(header.source.text, span.start, span.end)
    return header.source.span(*match.span()) if match is not None else span
