"""Write a header's model as a Python module that declares the same events."""

from __future__ import annotations

import keyword
from typing import TYPE_CHECKING

from tracepoint.errors import SourceError
from tracepoint.model.code_text import given_proto
from tracepoint.model.field import BitmaskField, Field, StringField, UnknownField
from tracepoint.model.python.names import resolve_assign, resolve_print
from tracepoint.model.rewrite import break_print, break_statements
from tracepoint.model.vocabulary import EVENT_MACROS
from tracepoint.model.write import write_proto

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tracepoint.model.event import BareTracepoint, Event, EventClass, Proto, TraceHeader
    from tracepoint.model.origin import Code

_IMPORTS = """from tracepoint.model.event import EnumDef, HeaderForm, Param, Proto, TraceHeader
from tracepoint.model.origin import Code
from tracepoint.model.python.declare import declare, declare_class, declare_tracepoint, define_event
from tracepoint.model.python.fields import (
    array,
    bitmask,
    cpumask,
    dynamic_array,
    scalar,
    sockaddr,
    string,
    string_len,
    struct_field,
    unknown_field,
    vstring,
)
"""
_TAKEN = frozenset(
    [
        "EnumDef",
        "HeaderForm",
        "Param",
        "Proto",
        "TraceHeader",
        "Code",
        "array",
        "bitmask",
        "cpumask",
        "declare",
        "declare_class",
        "declare_tracepoint",
        "define_event",
        "dynamic_array",
        "scalar",
        "sockaddr",
        "string",
        "string_len",
        "struct_field",
        "unknown_field",
        "vstring",
        "header",
        "True",
        "False",
        "None",
    ]
)
_EVENT_TEXT = ("condition", "reg", "unreg", "writable_size", "flags", "perf_perm")


def write_python(header: TraceHeader) -> str:
    """Return a Python module whose `header` equals the given one.

    >>> from tracepoint.model.read import read_header_text
    >>> header = read_header_text("DECLARE_TRACE(tick, TP_PROTO(int n), TP_ARGS(n));")
    >>> names = {}
    >>> exec(write_python(header), names)
    >>> names["header"] == header
    True
    """
    return _Module(header).text()


class _Module:
    """Collects the statements of the module and the names of events and classes."""

    def __init__(self, header: TraceHeader) -> None:
        self.header = header
        self.statements: list[str] = []
        self._used = set(_TAKEN)
        self._classes: list[tuple[EventClass, str]] = []

    def text(self) -> str:
        header = self.header
        own = {event.name for event in header.events if _makes_class(event)}
        for cls in header.classes:
            if cls.name not in own:
                self._class(cls)
        events = [self._event(event) for event in header.events]
        classes = [self._class_name(cls) for cls in header.classes]
        tracepoints = [self._tracepoint(t) for t in header.tracepoints]
        enums = [f"EnumDef({e.name!r}, is_sizeof={e.is_sizeof}, system={e.system!r})" for e in header.enums]
        rows = [
            f"system={header.system!r},",
            _tuple("events", events),
            _tuple("classes", classes),
            _tuple("tracepoints", tracepoints),
            _tuple("enums", enums),
            f"form={_form(header)},",
        ]
        body = "".join(f"    {row}\n" for row in rows)
        title = f'"""Trace events of system {header.system or "(none)"}."""\n'.replace("\\", "\\\\")
        return "\n".join([title, _IMPORTS, *self.statements, f"header = TraceHeader(\n{body})\n"])

    def _variable(self, name: str) -> str:
        name = name.replace("$", "_")
        if name[:1].isdigit() or keyword.iskeyword(name):
            name = "_" + name
        while name in self._used:
            name += "_"
        self._used.add(name)
        return name

    def _add(self, variable: str, function: str, rows: Iterable[str]) -> str:
        body = "".join(f"    {row}\n" for row in rows)
        self.statements.append(f"{variable} = {function}(\n{body})\n")
        return variable

    def _class_name(self, cls: EventClass) -> str:
        for known, name in self._classes:
            if known is cls:
                return name
        for known, name in self._classes:
            if known == cls and known.macro == cls.macro:
                return name
        return self._class(cls)

    def _class(self, cls: EventClass) -> str:
        rows = [f"{cls.name!r},", *_parts(cls)]
        if cls.macro != "DECLARE_EVENT_CLASS":
            rows.append(f"macro={cls.macro!r},")
        if cls.perf_perm:
            rows.append(f"perf_perm={cls.perf_perm!r},")
        variable = self._add(self._variable(cls.name), "declare_class", rows)
        self._classes.append((cls, variable))
        return variable

    def _event(self, event: Event) -> str:
        options = [f"macro={event.macro!r},"]
        for name in _EVENT_TEXT:
            value = str(getattr(event, name) or "")
            options += [f"{name}={value!r},"] if value else []
        system = f"system={event.system!r},"
        if _makes_class(event):
            rows = [f"{event.name!r},", system, *_parts(event.event_class), *options]
            variable = self._add(self._variable(event.name), "declare", rows)
            self._classes.append((event.event_class, f"{variable}.event_class"))
            return variable
        rows = [f"{self._class_name(event.event_class)},", f"{event.name!r},", system]
        if event.print_override is not None:
            rows += _print("printk", event.print_override, event.fields)
        return self._add(self._variable(event.name), "define_event", [*rows, *options])

    def _tracepoint(self, tracepoint: BareTracepoint) -> str:
        rows = [f"{tracepoint.name!r},", *_proto_rows(tracepoint.proto, tracepoint.args)]
        for name in ("condition", "writable_size"):
            value = str(getattr(tracepoint, name) or "")
            rows += [f"{name}={value!r},"] if value else []
        rows += [f"call_name={tracepoint.call_name!r},", f"macro={tracepoint.macro!r},"]
        return self._add(self._variable(tracepoint.name), "declare_tracepoint", rows)


def _makes_class(event: Event) -> bool:
    return event.macro in EVENT_MACROS and event.event_class.name == event.name


def _tuple(name: str, items: Sequence[str]) -> str:
    if not items:
        return f"{name}=(),"
    return f"{name}=(\n" + "".join(f"        {item},\n" for item in items) + "    ),"


def _form(header: TraceHeader) -> str:
    form = header.form
    names = ("guard", "has_multi_read", "include_path", "include_file", "system_var", "system_string")
    rows = [f"{name}={getattr(form, name)!r}" for name in (*names, "is_notrace") if getattr(form, name)]
    if form.includes:
        rows.append(f"includes={form.includes!r}")
    return f"HeaderForm({', '.join(rows)})"


def _parts(cls: EventClass) -> list[str]:
    rows = _proto_rows(cls.proto, cls.args)
    rows += ["struct=[", *(f"    {_field(field)}," for field in cls.fields), "],"] if cls.fields else []
    text = cls.assign.text
    if text:
        is_plain = _same(resolve_assign, text, cls.fields, cls.proto.names)
        rows += _text_rows("assign", break_statements(text).split("\n"), is_plain=is_plain)
    return rows + _print("printk", cls.printk, cls.fields)


def _proto_rows(proto: Proto, args: tuple[str, ...]) -> list[str]:
    rows = []
    if proto.params:
        text = write_proto(proto)
        rows.append(f"proto={text!r}," if _reads_back(text, proto) else f"proto={proto!r},")
    return rows + ([] if args == proto.names else [f"args={list(args)!r},"])


def _reads_back(text: str, proto: Proto) -> bool:
    try:
        return given_proto(text, "proto") == proto
    except SourceError:
        return False


def _print(name: str, code: Code, fields: Sequence[Field]) -> list[str]:
    is_plain = bool(code) and _same(resolve_print, code.text, fields)
    return _text_rows(name, break_print(code.text).split("\n"), is_plain=is_plain)


def _same(resolve: object, text: str, *context: object) -> bool:
    """Return whether text without bare field names can be given as it is."""
    return callable(resolve) and resolve(text, *context) == text


def _text_rows(name: str, lines: Sequence[str], *, is_plain: bool) -> list[str]:
    pieces = [line + " " for line in lines[:-1]] + [lines[-1]]
    opening, closing = ("(", ")") if is_plain else ("Code(", ")")
    if len(pieces) == 1:
        value = repr(pieces[0]) if is_plain else f"Code({pieces[0]!r})"
        return [f"{name}={value},"]
    return [f"{name}={opening}", *(f"    {piece!r}" for piece in pieces), f"{closing},"]


def _field(field: Field) -> str:
    rel = ", rel=True" if field.is_relative else ""
    family = field.kind.removeprefix("rel_")
    if isinstance(field, UnknownField):
        return f"unknown_field({field.name!r})"
    function = {"field": "scalar", "field_ext": "scalar", "field_struct_ext": "struct_field"}.get(
        family, "struct_field" if family == "field_struct" else family
    )
    return f"{function}({', '.join(map(repr, _arguments(field)))}{rel})"


def _arguments(field: Field) -> list[str]:
    match field:
        case StringField():
            values: list[object] = [field.name, field.source, field.length, field.va_list]
        case BitmaskField():
            values = [field.name, field.n_bits]
        case _:
            takes_type = field.kind.removeprefix("rel_") != "sockaddr"
            values = [*([field.ctype] if takes_type else []), field.name]
            values += [getattr(field, "length", None), getattr(field, "filter_type", "") or None]
    return [str(value) for value in values if value is not None]
