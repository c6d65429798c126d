"""What is shown beside a declaration: Markdown for a word, and offsets beside the fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.errors import TracepointError
from tracepoint.lab.simulate.event import simulate_event
from tracepoint.layout.compute import compute_layout
from tracepoint.lsp.outline import class_of, declared, declared_at, event_of, field_at, own_fields, word_at
from tracepoint.model.event import BareTracepoint, Event
from tracepoint.model.vocabulary import DECLARING_MACROS, FIELD_MACROS
from tracepoint.tree.facts import char_sign

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.layout.abi import Abi
    from tracepoint.layout.format import EventFormat
    from tracepoint.lsp.outline import Declared
    from tracepoint.model.event import EventClass, TraceHeader


def layout_of(header: TraceHeader, thing: Event | EventClass, abi: Abi) -> EventFormat:
    """Return the record of an event, or of the events of a class; raises LayoutError when it is not known."""
    return compute_layout(
        event_of(header, thing),
        abi,
        environment=header.environment,
        is_char_signed=char_sign(header.path),
        enums=header.exported_enums,
    )


def hover_at(header: TraceHeader, offset: int, abi: Abi) -> str:
    """Return what is known about the word at an offset as Markdown, empty when that is nothing.

    Of a field this is its place in the record; of an event or its macro the prototype, the line that
    `trace` would show, and the record with its holes.
    """
    word = word_at(header.source.text if header.source is not None else "", offset)
    if word is None:
        return ""
    found = field_at(header, offset)
    if found is not None:
        return _field_text(header, found[0], found[1].name, abi)
    roles = FIELD_MACROS.get(word.text.removeprefix("__")) if word.text.startswith("__") else None
    if roles is not None:
        return f"`{word.text}({', '.join(roles)})`"
    thing = _named_at(header, offset)
    if thing is None:
        parts = DECLARING_MACROS.get(word.text)
        return f"`{word.text}({', '.join(parts)})`" if parts else ""
    return describe(header, thing, abi)


def tracepoint_at(header: TraceHeader, offset: int) -> Event | BareTracepoint | None:
    """Return the event or tracepoint whose macro or name is at an offset."""
    thing = _named_at(header, offset) if field_at(header, offset) is None else None
    return thing if isinstance(thing, (Event, BareTracepoint)) else None


def _named_at(header: TraceHeader, offset: int) -> Declared | None:
    """Return the declaration whose macro, name or class is the word at an offset."""
    thing = declared_at(header, offset)
    word = word_at(header.source.text if header.source is not None else "", offset)
    if thing is None or thing.origin is None or word is None:
        return None
    is_named = word.start == thing.origin.span.start or word.text in {thing.name, _class_name(thing)}
    return thing if is_named else None


def describe(header: TraceHeader, thing: Declared, abi: Abi) -> str:
    """Return a declaration as Markdown: how it is called, a simulated line, and its record.

    The record comes last: it is long, and editors show some ten lines without scrolling.
    """
    if isinstance(thing, BareTracepoint):
        return _code("c", f"void trace_{thing.call_name or thing.name}({thing.proto})")
    name = thing.full_name if isinstance(thing, Event) else f"class {thing.name}"
    parts = [f"**{name}**"]
    if isinstance(thing, Event):
        proto = thing.proto_override or thing.proto
        parts.append(_code("c", f"void trace_{thing.name}({proto})"))
        if thing.condition:
            parts.append(f"fires if `{thing.condition}`")
    try:
        layout = layout_of(header, thing, abi)
    except TracepointError as error:
        parts.append(f"no record: {error}")
    else:
        parts += [*_lines(header, event_of(header, thing), abi), "the record:", _code("text", _table(layout))]
    return "\n\n".join(parts)


def offset_hints(header: TraceHeader, start: int, end: int, abi: Abi) -> Iterator[tuple[int, str]]:
    """Yield the offset after each field's macro from `start` to `end`, and where the field is in the record.

    Classes of which a type or a length is not known have none.
    """
    for thing in declared(header):
        span, owner = (thing.origin.span if thing.origin else None), class_of(thing)
        if span is None or span.end < start or span.start > end or owner is None:
            continue
        if isinstance(thing, BareTracepoint) or not any(own_fields(thing)):
            continue
        try:
            layout = layout_of(header, thing, abi)
        except TracepointError:
            continue
        own = {id(field) for field in own_fields(thing)}
        holes = {at + size: size for at, size in layout.holes}
        for field, place in zip(owner.fields, layout.event_fields, strict=True):
            if id(field) in own and field.origin is not None and start <= field.origin.span.end <= end:
                hole = holes.get(place.offset)
                before = f", after a hole of {hole}" if hole else ""
                yield field.origin.span.end, f"at {place.offset}, size {place.size}{before}"


def _class_name(thing: Declared) -> str:
    return thing.event_class.name if isinstance(thing, Event) else thing.name


def _field_text(header: TraceHeader, thing: Event | EventClass, name: str, abi: Abi) -> str:
    try:
        layout = layout_of(header, thing, abi)
    except TracepointError as error:
        return f"no record: {error}"
    place = layout[name]
    sign = "signed" if place.is_signed else "unsigned"
    text = _code("c", place.declaration)
    text += f"\n\noffset {place.offset}, size {place.size}, {sign}; record of {layout.end} bytes"
    hole = next((size for at, size in layout.holes if at + size == place.offset), 0)
    return f"{text}\n\nafter a hole of {hole} bytes" if hole else text


def _table(layout: EventFormat) -> str:
    """Return the record with its holes; the fields that all events have are one row."""
    common = layout.common_fields
    size = sum(field.size for field in common)
    places = [(0, size, ", ".join(field.name for field in common))]
    places += [(row.offset, row.size, row.text) for row in layout.rows if row.offset >= size]
    rows = [f"{offset:6} {size:5}  {text}" for offset, size, text in places]
    return "\n".join(["offset  size  field", *rows, f"{layout.end:6}        end"])


def _lines(header: TraceHeader, event: Event, abi: Abi) -> list[str]:
    """Return the simulated line, or why there is none."""
    try:
        simulation = simulate_event(
            event,
            abi=abi,
            environment=header.environment,
            enums=header.exported_enums,
            is_char_signed=char_sign(header.path),
        )
    except TracepointError as error:
        return [f"cannot be simulated: {error}"]
    sampled = (
        "a line, of sample inputs:" if simulation.is_complete else f"a line, not exact ({simulation.reason}):"
    )
    shown = "\n".join(line.lstrip() for line in simulation.lines)
    return [sampled, _code("text", shown)] if shown else []


def _code(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```"
