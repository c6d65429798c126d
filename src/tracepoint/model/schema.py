"""The declaration model as JSON, and back.

The format is versioned: `"schema": "tracepoint.model/1"`.  Reading is strict: an unknown member,
a wrong type or C text that cannot be part of a declaration is a SourceError that names the place.
Origins, source text and diagnostics are not part of it.
"""

from __future__ import annotations

import json
from typing import Any

from tracepoint.errors import SourceError
from tracepoint.model.declaration import make_field
from tracepoint.model.event import (
    BareTracepoint,
    EnumDef,
    Event,
    EventClass,
    HeaderForm,
    Param,
    Proto,
    TraceHeader,
)
from tracepoint.model.field import (
    ArrayField,
    BitmaskField,
    DynamicArrayField,
    Field,
    SockaddrField,
    StringField,
    UnknownField,
)
from tracepoint.model.schema_reader import JsonPlace
from tracepoint.model.vocabulary import (
    CLASS_MACROS,
    EVENT_MACROS,
    FIELD_MACROS,
    INSTANCE_MACROS,
    LEGACY_MACROS,
    TRACEPOINT_MACROS,
)

SCHEMA = "tracepoint.model/1"

_FORM_TEXT = ("guard", "include_path", "include_file", "system_var", "system_string")
_EVENT_TEXT = ("reg", "unreg", "writable_size", "flags", "perf_perm")
_EVENT_FLAGS = ("is_nop", "is_syscall", "is_custom")


# --- writing --------------------------------------------------------------------------------


def write_json(header: TraceHeader, *, indent: int | None = 2) -> str:
    """Return the header's model as JSON text, `indent` blanks a level (None: one line).

    >>> read_json(write_json(TraceHeader("demo", ()))) == TraceHeader("demo", ())
    True
    """
    return json.dumps(header_to_json(header), indent=indent)


def header_to_json(header: TraceHeader) -> dict[str, Any]:
    """Return the header's model as JSON values."""
    classes = {cls.name: cls for cls in header.classes}
    return {
        "schema": SCHEMA,
        "system": header.system,
        "form": _form_to_json(header.form),
        "enums": [
            {"name": e.name, "system": e.system, **({"is_sizeof": True} if e.is_sizeof else {})}
            for e in header.enums
        ],
        "classes": [class_to_json(cls) for cls in header.classes],
        "events": [event_to_json(event, classes) for event in header.events],
        "tracepoints": [_tracepoint_to_json(t) for t in header.tracepoints],
    }


def _form_to_json(form: HeaderForm) -> dict[str, Any]:
    out: dict[str, Any] = {name: getattr(form, name) for name in _FORM_TEXT if getattr(form, name)}
    out.update((name, True) for name in ("has_multi_read", "is_notrace") if getattr(form, name))
    return out | ({"includes": list(form.includes)} if form.includes else {})


def class_to_json(cls: EventClass) -> dict[str, Any]:
    """Return one event class as JSON values."""
    return {
        "name": cls.name,
        "macro": cls.macro,
        "proto": _proto_to_json(cls.proto),
        "args": list(cls.args),
        "fields": [_field_to_json(f) for f in cls.fields],
        "assign": cls.assign.text,
        "printk": cls.printk.text,
        **({"perf_perm": cls.perf_perm} if cls.perf_perm else {}),
    }


def event_to_json(event: Event, classes: dict[str, EventClass] | None = None) -> dict[str, Any]:
    """Return one event as JSON values; its class by name when `classes` has it, else whole."""
    cls = event.event_class
    is_known = classes is not None and classes.get(cls.name) == cls
    out: dict[str, Any] = {
        "name": event.name,
        "system": event.system,
        "macro": event.macro,
        "class": cls.name if is_known else class_to_json(cls),
    }
    for name in ("print_override", "condition"):
        code = getattr(event, name)
        if code is not None:
            out[name] = code.text
    out.update((name, getattr(event, name)) for name in _EVENT_TEXT if getattr(event, name))
    out.update((name, True) for name in _EVENT_FLAGS if getattr(event, name))
    return out


def _tracepoint_to_json(tracepoint: BareTracepoint) -> dict[str, Any]:
    out: dict[str, Any] = {
        "name": tracepoint.name,
        "macro": tracepoint.macro,
        "proto": _proto_to_json(tracepoint.proto),
        "args": list(tracepoint.args),
        "call_name": tracepoint.call_name,
    }
    if tracepoint.condition is not None:
        out["condition"] = tracepoint.condition.text
    if tracepoint.writable_size:
        out["writable_size"] = tracepoint.writable_size
    return out


def _proto_to_json(proto: Proto) -> list[dict[str, str]]:
    return [{"type": p.ctype, "name": p.name} for p in proto.params]


def _field_to_json(field: Field) -> dict[str, str]:
    match field:
        case UnknownField():
            return {"kind": "unknown", "name": field.name}
        case ArrayField() | DynamicArrayField():
            texts: dict[str, Any] = {"type": field.ctype, "name": field.name, "length": field.length}
        case StringField():
            texts = {
                "name": field.name,
                "source": field.source,
                "length": field.length,
                "va_list": field.va_list,
            }
        case BitmaskField():
            texts = {"name": field.name, "n_bits": field.n_bits}
        case SockaddrField():
            texts = {"name": field.name, "length": field.length}
        case _:
            filter_type = getattr(field, "filter_type", "")
            texts = {"type": field.ctype, "name": field.name, "filter_type": filter_type or None}
    return {"kind": field.kind, **{key: str(value) for key, value in texts.items() if value is not None}}


# --- reading --------------------------------------------------------------------------------


def read_json(text: str) -> TraceHeader:
    """Read what `write_json` wrote; raises SourceError for anything else."""
    try:
        value = json.loads(text, object_pairs_hook=_no_duplicates)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"not JSON: {error}") from None
    return header_from_json(value)


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise SourceError("a member appears twice in one JSON object")
    return out


def header_from_json(value: object) -> TraceHeader:
    """Make a header of the JSON values that `header_to_json` returns; raises SourceError."""
    place = JsonPlace(value, "model")
    schema = place.text("schema")
    if schema != SCHEMA:
        raise SourceError(f"model.schema is {schema!r}; this version reads {SCHEMA!r}")
    classes = tuple(_class(p) for p in place.list("classes"))
    by_name = {cls.name: cls for cls in classes}
    header = TraceHeader(
        system=place.text("system"),
        events=tuple(_event(p, by_name) for p in place.list("events")),
        classes=classes,
        tracepoints=tuple(_tracepoint(p) for p in place.list("tracepoints")),
        enums=tuple(_enum(p) for p in place.list("enums")),
        form=_form(place.member("form")),
    )
    place.finish()
    return header


def _form(place: JsonPlace) -> HeaderForm:
    form = HeaderForm(
        guard=place.argument("guard", ""),
        has_multi_read=place.flag("has_multi_read"),
        include_path=place.argument("include_path", ""),
        include_file=place.argument("include_file", ""),
        system_var=place.argument("system_var", ""),
        system_string=place.argument("system_string", ""),
        is_notrace=place.flag("is_notrace"),
        includes=tuple(p.include() for p in place.list("includes", optional=True)),
    )
    place.finish()
    return form


def _enum(place: JsonPlace) -> EnumDef:
    enum = EnumDef(place.argument("name"), place.flag("is_sizeof"), place.text("system", ""))
    place.finish()
    return enum


def _proto(place: JsonPlace) -> Proto:
    params = []
    for param in place.list("proto"):
        params.append(Param(param.argument("type"), param.name("name", optional=True)))
        param.finish()
    return Proto(tuple(params))


def _args(place: JsonPlace) -> tuple[str, ...]:
    return tuple(p.argument_text() for p in place.list("args"))


def _class(place: JsonPlace) -> EventClass:
    cls = EventClass(
        place.event_name("name"),
        _proto(place),
        _args(place),
        tuple(_field(p) for p in place.list("fields")),
        place.code("assign"),
        place.code("printk"),
        place.choice("macro", ("", *EVENT_MACROS, *CLASS_MACROS)),
        place.argument("perf_perm", ""),
    )
    place.finish()
    return cls


def _event(place: JsonPlace, classes: dict[str, EventClass]) -> Event:
    event = Event(
        place.event_name("name"),
        place.text("system"),
        _class_of(place, classes),
        place.choice("macro", (*EVENT_MACROS, *INSTANCE_MACROS)),
        place.code("print_override", optional=True) if place.has("print_override") else None,
        place.code("condition", optional=True) if place.has("condition") else None,
        reg=place.argument("reg", ""),
        unreg=place.argument("unreg", ""),
        writable_size=place.argument("writable_size", ""),
        flags=place.argument("flags", ""),
        perf_perm=place.argument("perf_perm", ""),
        is_nop=place.flag("is_nop"),
        is_syscall=place.flag("is_syscall"),
        is_custom=place.flag("is_custom"),
    )
    place.finish()
    return event


def _class_of(place: JsonPlace, classes: dict[str, EventClass]) -> EventClass:
    if not place.is_text("class"):
        return _class(place.member("class"))
    name = place.text("class")
    if name not in classes:
        raise SourceError(f"{place.path}.class: no class {name!r} is in model.classes")
    return classes[name]


def _tracepoint(place: JsonPlace) -> BareTracepoint:
    tracepoint = BareTracepoint(
        place.event_name("name"),
        _proto(place),
        _args(place),
        place.choice("macro", (*TRACEPOINT_MACROS, *LEGACY_MACROS)),
        place.code("condition", optional=True) if place.has("condition") else None,
        place.argument("writable_size", ""),
        place.event_name("call_name"),
    )
    place.finish()
    return tracepoint


def _field(place: JsonPlace) -> Field:
    kind = place.choice("kind", ("unknown", *FIELD_MACROS))
    if kind == "unknown":
        name = place.name("name")
        field: Field = UnknownField(name, name, "")
    else:
        roles = FIELD_MACROS[kind]
        parts = {role: place.argument_code(role) for role in roles}
        field = make_field(kind, parts)
    place.finish()
    return field


__all__ = [
    "SCHEMA",
    "class_to_json",
    "event_to_json",
    "header_from_json",
    "header_to_json",
    "read_json",
    "write_json",
]
