"""Declare trace events from Python, with the same five parts as `TRACE_EVENT()`.

What comes out is the model that the reader makes of the same declaration in a header.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from tracepoint.errors import SourceError
from tracepoint.model.code_text import (
    given_argument,
    given_code,
    given_event_name,
    given_proto,
)
from tracepoint.model.event import BareTracepoint, Event, EventClass, Proto
from tracepoint.model.field import Field, UnknownField
from tracepoint.model.origin import Code
from tracepoint.model.python.names import assign_statements, resolve_assign, resolve_print
from tracepoint.model.vocabulary import CLASS_MACROS, EVENT_MACROS, INSTANCE_MACROS, TRACEPOINT_MACROS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

# A string literal in which a line ends.
_LINE_IN_STRING = re.compile(r'(?:[^"\\]|\\.|"(?:[^"\\\n]|\\.)*")*"(?:[^"\\\n]|\\.)*\n', re.DOTALL)


def declare(
    name: str,
    *,
    system: str,
    proto: str | Proto = "void",
    struct: Sequence[Field] = (),
    assign: str | Code | Mapping[str, str] = "",
    printk: str | Code,
    args: Iterable[str] | None = None,
    condition: str = "",
    reg: str = "",
    unreg: str = "",
    writable_size: str = "",
    flags: str = "",
    perf_perm: str = "",
    macro: str = "",
) -> Event:
    """Declare a trace event; raises SourceError when the parts do not fit together.

    `proto` is the text of the parameters.  In `printk` the bare name of a field means what
    TP_printk needs (`__entry->pid`, `__get_str(name)`).  `assign` is a mapping from field to C
    expression, or the statements as text, where a name alone on the left means the field;
    parameters are parameters.  A `Code` instead of text is taken as it is.  `condition`, `reg` and
    `unreg`, and `writable_size` choose the variant of the macro unless `macro` names it.

    >>> from tracepoint.model.python.fields import scalar
    >>> event = declare("retry", system="block", proto="struct request *rq, int tries",
    ...     struct=[scalar("sector_t", "sector"), scalar("int", "tries")],
    ...     assign={"sector": "blk_rq_pos(rq)"}, printk='"%llu %d", (u64)sector, tries')
    >>> event.assign.text
    '__entry->sector = blk_rq_pos(rq); __entry->tries = tries;'
    >>> event.printk.text
    '"%llu %d", (u64)__entry->sector, __entry->tries'
    """
    macro = macro or _event_macro(condition, reg, writable_size)
    cls = declare_class(
        name,
        proto=proto,
        struct=struct,
        assign=assign,
        printk=printk,
        args=args,
        macro=_one_of(macro, EVENT_MACROS),
    )
    event = Event(
        cls.name,
        _system(system, macro),
        cls,
        macro,
        condition=given_code(condition, "condition") if condition else None,
        reg=_name_or_empty(reg, "reg"),
        unreg=_name_or_empty(unreg, "unreg"),
        writable_size=_text(writable_size, "writable_size"),
        flags=_text(flags, "flags"),
        perf_perm=_text(perf_perm, "perf_perm"),
    )
    return _with_kind(event)


def _with_kind(event: Event) -> Event:
    """Set the flags that follow from the macro's name."""
    return replace(
        event,
        is_nop=event.macro.endswith("_NOP"),
        is_syscall=event.macro.endswith("_SYSCALL"),
        is_custom="CUSTOM" in event.macro,
    )


def _event_macro(condition: str, reg: str, writable_size: str) -> str:
    if writable_size:
        return "TRACE_EVENT_WRITABLE"
    if reg:
        return "TRACE_EVENT_FN_COND" if condition else "TRACE_EVENT_FN"
    return "TRACE_EVENT_CONDITION" if condition else "TRACE_EVENT"


def declare_class(
    name: str,
    *,
    proto: str | Proto = "void",
    struct: Sequence[Field] = (),
    assign: str | Code | Mapping[str, str] = "",
    printk: str | Code,
    args: Iterable[str] | None = None,
    macro: str = "DECLARE_EVENT_CLASS",
    perf_perm: str = "",
) -> EventClass:
    """Declare an event class from which `define_event` makes events; arguments as in `declare`."""
    given_event_name(name, "event name")
    if macro:
        _one_of(macro, {**EVENT_MACROS, **CLASS_MACROS})
    proto = proto if isinstance(proto, Proto) else given_proto(proto, f"proto of {name}")
    fields = _fields(struct, name)
    return EventClass(
        name,
        proto,
        _args(args, proto, name),
        fields,
        _assign_code(assign, fields, proto, name),
        _print_code(printk, fields, name),
        macro,
        perf_perm,
    )


def define_event(
    event_class: EventClass,
    name: str,
    *,
    system: str,
    printk: str | Code | None = None,
    condition: str = "",
    reg: str = "",
    unreg: str = "",
    writable_size: str = "",
    flags: str = "",
    perf_perm: str = "",
    macro: str = "",
) -> Event:
    """Make an event of a class, with a print format of its own if `printk` is given.

    >>> from tracepoint.model.python.fields import scalar
    >>> cls = declare_class("c", proto="int n", struct=[scalar("int", "n")], printk='"%d", n', assign={})
    >>> define_event(cls, "one", system="demo").macro
    'DEFINE_EVENT'
    """
    macro = macro or _instance_macro(printk, condition, reg, writable_size)
    _one_of(macro, INSTANCE_MACROS)
    return Event(
        given_event_name(name, "event name"),
        _system(system, macro),
        event_class,
        macro,
        print_override=None if printk is None else _print_code(printk, event_class.fields, name),
        condition=given_code(condition, "condition") if condition else None,
        reg=_name_or_empty(reg, "reg"),
        unreg=_name_or_empty(unreg, "unreg"),
        writable_size=_text(writable_size, "writable_size"),
        flags=_text(flags, "flags"),
        perf_perm=_text(perf_perm, "perf_perm"),
        is_nop=macro.endswith("_NOP") or event_class.macro.endswith("_NOP"),
        is_syscall=macro.endswith("_SYSCALL") or event_class.macro == "DECLARE_EVENT_SYSCALL_CLASS",
        is_custom="CUSTOM" in macro,
    )


def _instance_macro(printk: str | Code | None, condition: str, reg: str, writable_size: str) -> str:
    chosen = [
        macro
        for macro, is_wanted in (
            ("DEFINE_EVENT_PRINT", printk is not None),
            ("DEFINE_EVENT_CONDITION", bool(condition)),
            ("DEFINE_EVENT_FN", bool(reg)),
            ("DEFINE_EVENT_WRITABLE", bool(writable_size)),
        )
        if is_wanted
    ]
    if len(chosen) > 1:
        raise SourceError(f"no macro of the kernel is {' and '.join(chosen)} at once")
    return chosen[0] if chosen else "DEFINE_EVENT"


def declare_tracepoint(
    name: str,
    *,
    proto: str | Proto = "void",
    args: Iterable[str] | None = None,
    condition: str = "",
    writable_size: str = "",
    call_name: str = "",
    macro: str = "",
) -> BareTracepoint:
    """Declare a tracepoint without an event; `call_name` is what follows `trace_` in a call.

    >>> declare_tracepoint("tick", proto="int n").args
    ('n',)
    """
    given_event_name(name, "tracepoint name")
    default = "DECLARE_TRACE_WRITABLE" if writable_size else "DECLARE_TRACE"
    macro = macro or ("DECLARE_TRACE_CONDITION" if condition else default)
    proto = proto if isinstance(proto, Proto) else given_proto(proto, f"proto of {name}")
    return BareTracepoint(
        name,
        proto,
        _args(args, proto, name),
        _one_of(macro, TRACEPOINT_MACROS),
        given_code(condition, "condition") if condition else None,
        _text(writable_size, "writable_size"),
        call_name or name,
    )


# --- the parts ------------------------------------------------------------------------------


def _one_of(macro: str, macros: Mapping[str, object]) -> str:
    if macro not in macros:
        raise SourceError(f"{macro!r} is none of {', '.join(macros)}")
    return macro


def _system(system: str, macro: str) -> str:
    if not system and "CUSTOM" in macro:
        return ""  # custom events are registered by hand, under no TRACE_SYSTEM
    if not isinstance(system, str) or not system or any(c.isspace() or c in "\"'(){},;:/" for c in system):
        raise SourceError(f"system {system!r} is not a name")
    return system


def _name_or_empty(text: str, what: str) -> str:
    return given_argument(text, what).text if text else ""


_text = _name_or_empty


def _fields(struct: Sequence[Field], event: str) -> tuple[Field, ...]:
    members: set[str] = set()
    for field in struct:
        if not isinstance(field, Field):
            raise SourceError(
                f"struct of {event}: {field!r} is not a field; use scalar(), array(), string(), ..."
            )
        # The record has `__data_loc_name` for a dynamic field: it may share its name with another.
        member = f"__data_loc_{field.name}" if field.is_dynamic else field.name
        if member in members and not isinstance(field, UnknownField):
            raise SourceError(f"struct of {event}: two fields are called {field.name!r}")
        members.add(member)
    return tuple(struct)


def _args(args: Iterable[str] | None, proto: Proto, event: str) -> tuple[str, ...]:
    if args is None:
        return proto.names
    return tuple(given_argument(arg, f"args of {event}").text for arg in args)


def _assign_code(
    assign: str | Code | Mapping[str, str], fields: Sequence[Field], proto: Proto, event: str
) -> Code:
    what = f"assign of {event}"
    if isinstance(assign, Code):
        return given_code(assign.text, what)
    if isinstance(assign, str):
        return given_code(resolve_assign(assign, fields, proto.names, what), what)
    return given_code(assign_statements(assign, fields, proto.names), what)


def _print_code(printk: str | Code, fields: Sequence[Field], event: str) -> Code:
    what = f"printk of {event}"
    if isinstance(printk, Code):
        return given_code(printk.text, what)
    if not isinstance(printk, str):
        raise SourceError(f"{what} is a {type(printk).__name__}, not text")
    try:
        code = given_code(resolve_print(printk, fields, what), what)
    except SourceError:
        if _LINE_IN_STRING.match(printk) is None:
            raise
        message = f"{what} has a line break inside quotes; leave it out, every event is a line anyway"
        raise SourceError(message) from None
    if not code:
        raise SourceError(f"{what} is empty; an event without fields to show has printk='\"\"'")
    return code
