"""The trace header of a generated module: the declaration in module form.

What a kernel takes from include/trace/events/ a module takes from its own folder: TRACE_INCLUDE_PATH
is `.`, TRACE_INCLUDE_FILE the header's name (include/trace/define_trace.h).
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from tracepoint.assign.program import read_program
from tracepoint.errors import GenerateError
from tracepoint.generate.inputs.rewrite import NO_ARGUMENTS, Rewriter
from tracepoint.generate.inputs.statements import write_statements
from tracepoint.generate.writer import check_event, check_name
from tracepoint.model.field import BitmaskField, DynamicArrayField, SockaddrField, StringField
from tracepoint.model.fmt.columns import FIELD_STYLES
from tracepoint.model.fmt.text import Style, format_text
from tracepoint.model.origin import Code
from tracepoint.model.rewrite import set_declarations_apart
from tracepoint.model.write import Vocabulary, write_header

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.generate.inputs.variables import InputPlan
    from tracepoint.model.event import Event, EventClass, TraceHeader
    from tracepoint.model.field import Field
    from tracepoint.source.definitions import Definition
    from tracepoint.tree.tracing_macros import TreeFacts

# scripts/checkpatch.pl rejects blanks inside brackets, which columns need.
_STYLE = Style(
    fields=next(style for style in FIELD_STYLES if style.name == "compact"), assign="space", adds_blanks=False
)
_WORD = re.compile(r"[A-Za-z_]\w*")
_DEFINED = re.compile(r"^(?:(?:struct|union) \w+ \{|typedef |static )", re.MULTILINE)
_STRUCT = re.compile(r"\b(?:struct|union)\s+[A-Za-z_]\w*")


def rename_events(header: TraceHeader, *, system: str = "", prefix: str = "") -> TraceHeader:
    """Return the header with another TRACE_SYSTEM, and `prefix` before all names.

    Names of events and classes are global in a kernel, and so is the folder of a system.  Raises
    GenerateError for a name that is not valid in C.
    """
    for word, what in ((system, "TRACE_SYSTEM"), (prefix, "prefix")):
        if word:
            check_name(word, what)
    classes: dict[int, EventClass] = {}

    def renamed(cls: EventClass) -> EventClass:
        if id(cls) not in classes:
            classes[id(cls)] = replace(cls, name=prefix + cls.name)
        return classes[id(cls)]

    events = tuple(
        replace(e, name=prefix + e.name, system=system or e.system, event_class=renamed(e.event_class))
        for e in header.events
    )
    points = tuple(
        replace(p, name=prefix + p.name, call_name=prefix + p.call_name if p.call_name else "")
        for p in header.tracepoints
    )
    form = replace(header.form, system_var="", system_string="") if system else header.form
    return replace(
        header,
        system=system or header.system,
        events=events,
        classes=tuple(renamed(cls) for cls in header.classes),
        tracepoints=points,
        enums=tuple(replace(enum, system=system) for enum in header.enums) if system else header.enums,
        form=form,
    )


def write_module_header(
    header: TraceHeader,
    name: str,
    facts: TreeFacts,
    includes: Sequence[str],
    preamble: str = "",
    *,
    has_functions: bool = True,
) -> str:
    """Return the text of `<name>_trace.h`.

    `includes` are the files it includes, with brackets or quotes; `preamble` is C text for what the
    kernel does not define, set apart from what is read several times; `has_functions` keeps inline
    functions of the header.
    """
    guard = f"_{name.upper()}_TRACE_H"
    form = replace(
        header.form,
        guard=guard,
        has_multi_read=True,
        include_path=".",
        include_file=f"{name}_trace",
        includes=tuple(includes),
    )
    vocabulary = Vocabulary(facts.assign_str_arity, has_tp_suffix=bool(facts.has_tp_suffix))
    text = write_header(replace(header, form=form), vocabulary=vocabulary)
    text = set_declarations_apart(format_text(text, style=_STYLE).text)
    parts = ["/* SPDX-License-Identifier: GPL-2.0 */\n"]
    types = own_types(header, text, has_functions=has_functions)
    hooks = "".join(f"{line}\n" for line in _hooks(header))
    # What the header defines for itself needs what it includes.
    needed = "".join(f"#include {item}\n" for item in includes) if _DEFINED.search(types) else ""
    inner = "\n".join(part.rstrip("\n") for part in (preamble, types, hooks) if part)
    inner = f"{needed}\n{inner}" if needed else inner
    if inner:
        own = guard.removesuffix("_H") + "_TYPES_H"
        parts.append(f"#ifndef {own}\n#define {own}\n\n{inner}\n\n#endif /* {own} */\n\n")
    return "".join([*parts, text])


def _hooks(header: TraceHeader) -> list[str]:
    """Return the declarations of the functions of TRACE_EVENT_FN."""
    lines: dict[str, None] = {}
    for event in header.events:
        if event.reg and event.reg != "NULL":
            lines[f"int {event.reg}(void);"] = None
        if event.unreg and event.unreg != "NULL":
            lines[f"void {event.unreg}(void);"] = None
    return list(lines)


def own_types(header: TraceHeader, text: str, *, has_functions: bool = True) -> str:
    """Return what the header itself defines and `text` uses: enums, structs, typedefs, inline functions.

    Structs of parameters that it does not define are declared by name.
    """
    environment = header.environment
    words = set(_WORD.findall(text))
    kept = _used_definitions(environment.definitions, words) if environment is not None else []
    kept = [item for item in kept if has_functions or not item.is_function]
    done = {name for item in kept for name in item.enumerators}
    lines: list[str] = []
    if environment is not None:
        own = environment.own
        for tag, names in own.enums.items():
            if (tag in words or words.intersection(names)) and not done.intersection(names):
                done.update(names)
                lines += [f"enum {tag} {{", *_enumerators(header, names), "};", ""]
        loose = [name for name in own.enumerators if name in words and name not in done]
        if loose:
            lines += ["enum {", *_enumerators(header, loose), "};", ""]
    defined = {item.name for item in kept}
    lines += [f"{name};" for name in dict.fromkeys(_forward(header)) if name not in defined]
    for item in kept:
        lines += [*([""] if lines and lines[-1] else []), *item.lines]
    return "\n".join(lines)


def _used_definitions(definitions: Sequence[Definition], words: set[str]) -> list[Definition]:
    """Return the definitions that `words` name, recursively; their words are added."""
    kept: dict[int, Definition] = {}
    n_before = -1
    while len(kept) != n_before:
        n_before = len(kept)
        for number, item in enumerate(definitions):
            if number not in kept and item.name.rpartition(" ")[2] in words:
                kept[number] = item
                words |= item.words
    return [kept[number] for number in sorted(kept)]


def _enumerators(header: TraceHeader, names: Sequence[str]) -> list[str]:
    lines = []
    for name in names:
        value = header.environment.constant(name) if header.environment is not None else None
        lines.append(f"\t{name}," if value is None else f"\t{name} = {value},")
    return lines


def _forward(header: TraceHeader) -> list[str]:
    protos = [e.proto for e in header.events] + [p.proto for p in header.tracepoints]
    return [name for proto in protos for param in proto.params for name in _STRUCT.findall(param.ctype)]


def set_inputs(header: TraceHeader, plan: InputPlan) -> TraceHeader:
    """Return the header with the variables of `plan` in place of all inputs.

    Raises GenerateError, naming event and expression, for what cannot be replaced.
    """
    classes: dict[str, EventClass] = {}
    events = []
    for event in header.events:
        rewriter = _rewriter(header, event, plan)
        cls = event.event_class
        if cls.name not in classes:
            classes[cls.name] = _with_inputs(event, rewriter)
        condition = event.condition
        if condition:
            condition = Code(rewriter.text(condition.expression()))
        events.append(replace(event, event_class=classes[cls.name], condition=condition))
    used = tuple(classes.get(cls.name, cls) for cls in header.classes if cls.name in classes)
    return replace(header, events=tuple(events), classes=used, tracepoints=())


def _rewriter(header: TraceHeader, event: Event, plan: InputPlan) -> Rewriter:
    environment = header.environment

    def is_constant(name: str) -> bool:
        known = environment.constant(name) if environment is not None else None
        return known is not None or name.isupper()

    return Rewriter(event.full_name, plan.of_event(event.name), is_constant, write_statements)


def _with_inputs(event: Event, rewriter: Rewriter) -> EventClass:
    cls = event.event_class
    fields = tuple(_field_with_inputs(field, rewriter) for field in cls.fields)
    text = write_statements(read_program(event).statements.body, rewriter)
    return replace(cls, fields=fields, assign=Code(text))


def _field_with_inputs(field: Field, rewriter: Rewriter) -> Field:
    match field:
        case StringField(source=source, length=length, va_list=va_list):
            made = replace(field, source=_code(source, rewriter))
            if length is not None:
                made = replace(made, length=_code(length, rewriter))
            # The format has no directives, so nothing is ever taken from the list.
            return replace(made, va_list=Code(NO_ARGUMENTS)) if va_list is not None else made
        case DynamicArrayField(length=length) | SockaddrField(length=length):
            return replace(field, length=_code(length, rewriter))
        case BitmaskField(n_bits=n_bits) if n_bits is not None:
            return replace(field, n_bits=_code(n_bits, rewriter))
    return field


def _code(code: Code, rewriter: Rewriter) -> Code:
    return Code(rewriter.text(code.expression())) if code else code


def select_events(header: TraceHeader, names: Sequence[str]) -> TraceHeader:
    """Return the header with the events of these full names, their classes and the enums that they print."""
    events = tuple(event for event in header.events if event.full_name in names)
    classes = {event.event_class.name for event in events}
    kept = tuple(cls for cls in header.classes if cls.name in classes)
    words = {word for event in events for word in _WORD.findall(f"{event.printk.text} {event.fields}")}
    enums = tuple(enum for enum in header.enums if enum.name in words)
    return replace(header, events=events, classes=kept, tracepoints=(), enums=enums)


def check_events(header: TraceHeader) -> None:
    """Raise GenerateError for events that no module can declare, or when there is nothing to declare."""
    if not header.events and not header.tracepoints:
        raise GenerateError(header.path or header.system, "no events to declare")
    names: dict[str, str] = {}
    for event in header.events:
        check_event(event.system, event.name)
        if event.is_syscall or event.is_custom:
            kind = "a system call's" if event.is_syscall else "a custom"
            raise GenerateError(event.full_name, f"{kind} event cannot be declared by a module")
        if event.name in names:
            raise GenerateError(event.full_name, f"{names[event.name]} has the same name")
        names[event.name] = event.full_name


def pick_arguments(header: TraceHeader, arguments: Mapping[str, str] | None) -> Mapping[str, str]:
    """Return the C expressions given for parameters; raises GenerateError for an unknown one."""
    given = arguments or {}
    known = {p.name for e in header.events for p in e.proto.params}
    known |= {p.name for t in header.tracepoints for p in t.proto.params}
    for name in given:
        if name not in known:
            shown = ", ".join(sorted(known)) or "none"
            raise GenerateError(header.system, f"no event has a parameter {name}; there are: {shown}")
    return given
