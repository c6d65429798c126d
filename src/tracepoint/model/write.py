"""From the declaration model back to a trace header, in the kernel's style.

What `read_header_text` makes of the result is the model that went in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.model.event import BareTracepoint, Event, EventClass, HeaderForm, Proto, TraceHeader
from tracepoint.model.field import (
    ArrayField,
    BitmaskField,
    DynamicArrayField,
    Field,
    ScalarField,
    SockaddrField,
    StringField,
    StructField,
)
from tracepoint.model.fmt.text import Style, format_text
from tracepoint.model.rewrite import break_print, break_statements, set_assign_str_arity
from tracepoint.model.vocabulary import DECLARING_MACROS, EVENT_MACROS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tracepoint.model.origin import Code

_STYLE = Style(adds_blanks=False)
_PLAIN_TRACE = {
    "DECLARE_TRACE": "DECLARE_TRACE_EVENT",
    "DECLARE_TRACE_CONDITION": "DECLARE_TRACE_EVENT_CONDITION",
    "DECLARE_TRACE_SYSCALL": "DECLARE_TRACE_EVENT_SYSCALL",
}
_MEMBERS = {"size": "writable_size"}
_POINTER = re.compile(r"\(\s*\*(?:\s*\*|\s*const\b)*")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What the tree at hand understands.

    `assign_str_arity` is the number of arguments of `__assign_str` there (2 before 6.10, 1 since;
    None leaves calls as they are); `has_tp_suffix` says that DECLARE_TRACE makes `trace_<name>_tp()`
    there, so that the old meaning is spelt DECLARE_TRACE_EVENT.
    """

    assign_str_arity: int | None = None
    has_tp_suffix: bool = False


def write_header(
    header: TraceHeader | Iterable[Event],
    *,
    system: str = "",
    guard: str = "",
    includes: Iterable[str] = ("<linux/tracepoint.h>",),
    vocabulary: Vocabulary | None = None,
) -> str:
    """Return the text of a trace header that declares `header`, or the given events.

    `system`, `guard` and `includes` (with their brackets or quotes) are for events that come
    without a header; the guard is made from the system's name when empty.  `vocabulary` says how
    the tree for which it is written spells things.  Declarations in the form of 2008 come out as
    DECLARE_TRACE.

    >>> from tracepoint.model.read import read_header_text
    >>> text = '''#undef TRACE_SYSTEM
    ... #define TRACE_SYSTEM demo
    ... DECLARE_TRACE(tick, TP_PROTO(int n), TP_ARGS(n));'''
    >>> print(write_header(read_header_text(text)).expandtabs(4))
    #undef TRACE_SYSTEM
    #define TRACE_SYSTEM demo
    <BLANKLINE>
    DECLARE_TRACE(tick,
    <BLANKLINE>
        TP_PROTO(int n),
    <BLANKLINE>
        TP_ARGS(n)
    );
    <BLANKLINE>
    #include <trace/define_trace.h>
    <BLANKLINE>
    """
    if not isinstance(header, TraceHeader):
        header = header_of(header, system=system, guard=guard, includes=includes)
    writer = _Writer(vocabulary or Vocabulary())
    writer.write(header)
    return format_text("\n".join(writer.lines) + "\n", style=_STYLE).text


def header_of(
    events: Iterable[Event],
    *,
    system: str = "",
    guard: str = "",
    includes: Iterable[str] = ("<linux/tracepoint.h>",),
    tracepoints: Iterable[BareTracepoint] = (),
) -> TraceHeader:
    """Return a header that declares the events, their classes once each, and the tracepoints."""
    events = tuple(events)
    classes: dict[str, EventClass] = {}
    for event in events:
        classes.setdefault(event.event_class.name, event.event_class)
    system = system or next((event.system for event in events), "")
    form = HeaderForm(
        guard=guard or f"_TRACE_{re.sub(r'[^A-Z0-9]', '_', system.upper())}_H",
        has_multi_read=True,
        includes=tuple(includes),
    )
    return TraceHeader(system, events, tuple(classes.values()), tuple(tracepoints), form=form)


class _Writer:
    """Collects the lines of one header."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.lines: list[str] = []
        self.system = ""

    def write(self, header: TraceHeader) -> None:
        form = header.form
        if header.system:
            self._set_system(header.system)
        self._define("TRACE_SYSTEM_VAR", form.system_var)
        self._define("TRACE_SYSTEM_STRING", form.system_string)
        if form.is_notrace:
            self.lines += ["#define NOTRACE", ""]
        if form.guard:
            multi = " || defined(TRACE_HEADER_MULTI_READ)" if form.has_multi_read else ""
            self.lines += [f"#if !defined({form.guard}){multi}", f"#define {form.guard}", ""]
        includes = [name for name in form.includes if name != "<trace/define_trace.h>"]
        self.lines += [f"#include {name}" for name in includes] + [""] * bool(includes)
        for enum in header.enums:
            if enum.system and enum.system != self.system:
                self._separate()
                self._set_system(enum.system)
            macro = "TRACE_DEFINE_SIZEOF" if enum.is_sizeof else "TRACE_DEFINE_ENUM"
            self.lines.append(f"{macro}({enum.name});")
        self.lines += [""] * bool(header.enums)
        for item in _in_order(header):
            self._declare(item)
        if form.guard:
            self.lines += [f"#endif /* {form.guard} */", ""]
        self._define("TRACE_INCLUDE_PATH", form.include_path)
        self._define("TRACE_INCLUDE_FILE", form.include_file)
        self.lines.append("#include <trace/define_trace.h>")

    def _define(self, name: str, value: str) -> None:
        if value:
            self.lines += [f"#undef {name}", f"#define {name} {value}", ""]

    def _set_system(self, system: str) -> None:
        self._define("TRACE_SYSTEM", system)
        self.system = system

    def _separate(self) -> None:
        """Keep two values of TRACE_SYSTEM apart when nothing is declared under the first."""
        if not any(line.endswith(");") for line in self.lines):
            self.lines += ["struct tracepoint;", ""]

    def _declare(self, item: EventClass | Event | BareTracepoint) -> None:
        if isinstance(item, Event) and item.system != self.system:
            self._separate()
            self._set_system(item.system)
        macro = self._macro(item)
        parts = [self._part(role, item) for role in DECLARING_MACROS[macro]]
        self.lines.append(f"{macro}({', '.join(parts)});")
        if isinstance(item, Event) and item.flags:
            self.lines.append(f"TRACE_EVENT_FLAGS({item.name}, {item.flags})")
        if isinstance(item, Event) and item.perf_perm:
            self.lines.append(f"TRACE_EVENT_PERF_PERM({item.name}, {item.perf_perm})")
        self.lines.append("")

    def _macro(self, item: EventClass | Event | BareTracepoint) -> str:
        macro = item.macro
        if isinstance(item, EventClass):
            return "DECLARE_EVENT_CLASS" if macro in EVENT_MACROS or not macro else macro
        if isinstance(item, BareTracepoint):
            macro = "DECLARE_TRACE" if macro == "DEFINE_TRACE" else macro
            if self.vocabulary.has_tp_suffix and item.call_name == item.name:
                macro = _PLAIN_TRACE.get(macro, macro)
        return macro

    def _part(self, role: str, item: EventClass | Event | BareTracepoint) -> str:
        match role:
            case "name":
                return item.name
            case "proto":
                proto = getattr(item, "proto_override", None) or item.proto
                return f"TP_PROTO({write_proto(proto)})"
            case "args":
                names = getattr(item, "args_override", ()) or item.args
                return f"TP_ARGS({', '.join(names)})"
            case "cond":
                return f"TP_CONDITION({getattr(item, 'condition', None) or ''})"
            case "size" | "reg" | "unreg":
                return str(getattr(item, _MEMBERS.get(role, role), ""))
        assert not isinstance(item, BareTracepoint), role  # noqa: S101 - its macros have no such part
        return self._record_part(role, item)

    def _record_part(self, role: str, item: EventClass | Event) -> str:
        match role:
            case "template":
                return item.event_class.name if isinstance(item, Event) else item.name
            case "struct":
                fields = "\n".join(write_field(field) for field in item.fields)
                return f"TP_STRUCT__entry({fields})"
            case "assign":
                text = set_assign_str_arity(item.assign.text, item.fields, self.vocabulary.assign_str_arity)
                return f"TP_fast_assign({break_statements(text)})"
            case _:
                return f"TP_printk({break_print(item.printk.text)})"


def _in_order(header: TraceHeader) -> Iterator[EventClass | Event | BareTracepoint]:
    """Yield what to declare so that classes come before instances and each list keeps its order."""
    waiting = list(reversed(header.classes))
    done: set[str] = set()
    for event in header.events:
        name = event.event_class.name
        makes_class = event.macro in EVENT_MACROS and event.name == name
        while waiting and name not in done and (not makes_class or waiting[-1].name != name):
            if not any(cls.name == name for cls in waiting):
                break  # declared in another header
            cls = waiting.pop()
            done.add(cls.name)
            yield cls
        if makes_class and name not in done:
            if waiting and waiting[-1].name == name:
                waiting.pop()
            done.add(name)
        yield event
    yield from reversed(waiting)
    yield from header.tracepoints


def write_proto(proto: Proto) -> str:
    """Return the parameters as `TP_PROTO` wants them.

    >>> from tracepoint.model.event import Param
    >>> write_proto(Proto((Param("int[3]", "a"), Param("void (*)(int)", "fn"))))
    'int a[3], void (*fn)(int)'
    """
    if not proto.params:
        return "void"
    return ", ".join(declare_param(param.ctype, param.name) for param in proto.params)


def declare_param(ctype: str, name: str) -> str:
    """Put a name where the declarator of a C type has it."""
    if not name:
        return ctype
    pointer = _POINTER.search(ctype)
    if pointer:
        space = " " if pointer[0].endswith("const") else ""
        return ctype[: pointer.end()] + space + name + ctype[pointer.end() :]
    base, bracket, rest = ctype.partition("[")
    bare = base.rstrip()
    space = "" if bare.endswith("*") else " "
    return bare + space + name + base[len(bare) :] + bracket + rest


def write_field(field: Field) -> str:
    """Return the macro call that declares a field."""
    arguments: list[Code | str | None]
    match field:
        case ScalarField() | StructField():
            arguments = [field.ctype, field.name, field.filter_type or None]
        case ArrayField() | DynamicArrayField():
            arguments = [field.ctype, field.name, field.length]
        case StringField():
            arguments = [field.name, field.source, field.length, field.va_list]
        case BitmaskField():
            arguments = [field.name, field.n_bits]
        case SockaddrField():
            arguments = [field.name, field.length]
        case _:
            return field.kind
    return f"{field.macro}({', '.join(str(a) for a in arguments if a is not None)})"
