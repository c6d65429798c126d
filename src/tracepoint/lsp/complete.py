"""Names that may stand at a place of a header: fields, macros, helpers, `%p` extensions, flags, classes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tracepoint.lsp.outline import class_of, declared_at
from tracepoint.lsp.signature import call_at
from tracepoint.model.vocabulary import (
    ASSIGN_HELPERS,
    CLASS_MACROS,
    DECLARING_MACROS,
    EVENT_MACROS,
    FIELD_HELPERS,
    FIELD_MACROS,
    INSTANCE_MACROS,
    PART_MACROS,
    PRINT_HELPERS,
)
from tracepoint.printk.extensions import POINTER_EXTENSIONS
from tracepoint.source.brackets import CLOSERS, step
from tracepoint.source.lexer import lex
from tracepoint.source.text import SourceFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.lsp.outline import Declared
    from tracepoint.lsp.signature import OpenCall
    from tracepoint.model.event import TraceHeader

_AFTER_ENTRY = re.compile(r"\b__entry\s*->\s*\w{0,80}\Z")
_AFTER_UNDERSCORES = re.compile(r"(?<!\w)__\w{0,80}\Z")
_AFTER_CAPITAL = re.compile(r"(?<!\w)[A-Z][A-Z_]{0,80}\Z")
#: A conversion of a pointer in a string of one line that is still open.
_AFTER_POINTER = re.compile(r'"(?:[^"\\\n]|\\.)*%[-#0 +]*[0-9*]*p(\w{0,8})\Z')
_MAX_BEFORE = 200
#: The largest declaration that is completed while its brackets are open.
_MAX_DECLARATION = 16_000
_QUOTES = re.compile(r'(?<!\\)"')
#: Values of `filter_type` in `__field_ext`: include/linux/trace_events.h.
_FILTERS = {
    "FILTER_OTHER": "by the field's type",
    "FILTER_STATIC_STRING": "text in an array of the record",
    "FILTER_DYN_STRING": "text of any length",
    "FILTER_PTR_STRING": "text that a pointer leads to",
    "FILTER_TRACE_FN": "name of a function",
    "FILTER_CPUMASK": "set of CPUs",
    "FILTER_COMM": "name of the task",
    "FILTER_CPU": "number of the CPU",
    "FILTER_STACKTRACE": "stack of functions",
}
#: Values for TRACE_EVENT_FLAGS: include/linux/trace_events.h.
_EVENT_FLAGS = {
    "TRACE_EVENT_FL_CAP_ANY": "any user may use it with perf",
    "TRACE_EVENT_FL_NO_SET_FILTER": "it takes no filter",
    "TRACE_EVENT_FL_IGNORE_ENABLE": "enabling it has no effect",
}
_OF_VALUES = frozenset({"__print_symbolic", "__print_flags", "__print_symbolic_u64", "__print_flags_u64"})
_NAMES_FIELD = FIELD_HELPERS | {name for name in ASSIGN_HELPERS if name.startswith("__assign_")}


def completions_at(header: TraceHeader, offset: int) -> list[tuple[str, str]]:
    """Return names that may stand at an offset, each with what it is: a field's type, a macro's arguments.

    Of extensions of `%p` these are the letters after it, with what the kernel shows.
    """
    text = header.source.text if header.source is not None else ""
    start = max(0, offset - _MAX_BEFORE)
    thing, call = declared_at(header, offset), call_at(text, offset)
    if call is not None and call.name == "TRACE_EVENT_FLAGS":
        return [*_EVENT_FLAGS.items()] if call.argument else [(event.name, "") for event in header.events]
    if thing is None and call is None:
        is_word = _AFTER_CAPITAL.search(text, start, offset)
        return [(name, _roles(roles)) for name, roles in DECLARING_MACROS.items()] if is_word else []
    if _AFTER_POINTER.search(text, start, offset):
        return [*POINTER_EXTENSIONS.items()]
    found = [*_arguments(header, thing, call)] if call is not None else []
    if not found and _AFTER_CAPITAL.search(text, start, offset) and _names_values(text, thing, offset):
        return [(one.name, "exported by TRACE_DEFINE_ENUM") for one in header.exported_enums]
    return found or [*_words(thing, text, start, offset)]


def closed_text(text: str, offset: int) -> str:
    """Return a text up to an offset with a declaration that is being written closed, so that it can be read.

    >>> closed_text('TP_printk("a %p', 15)
    'TP_printk("a %p");'
    """
    start = text.rfind("\n", 0, max(offset - _MAX_DECLARATION, 0)) + 1
    line = text[text.rfind("\n", 0, offset) + 1 : offset]
    quote = '"' if len(_QUOTES.findall(line)) % 2 else ""
    written = text[start:offset] + quote
    opened: list[str] = []
    for token in lex(SourceFile("", written)):
        if step(token.text) > 0:
            opened.append(CLOSERS[token.text])
        elif step(token.text) < 0 and opened:
            opened.pop()
    inner, last = "".join(reversed(opened[1:])), ")" if opened else ""
    return text[:offset] + quote + inner + _missing_parts(written) + last + ";"


def _missing_parts(written: str) -> str:
    """Return the parts that a declaration at the end of a text still needs after that with its fields."""
    begin = max((written.rfind(f"{name}(") for name in (*EVENT_MACROS, *CLASS_MACROS)), default=-1)
    declaration = written[max(begin, 0) :]
    if begin < 0 or "TP_STRUCT__entry(" not in declaration:
        return ""
    parts = {"TP_fast_assign(": ", TP_fast_assign()", "TP_printk(": ', TP_printk("")'}
    return "".join(part for name, part in parts.items() if name not in declaration)


def _names_values(text: str, thing: Declared | None, offset: int) -> bool:
    """Return whether an offset is in the list of values of a helper such as `__print_symbolic`."""
    start = thing.origin.span.start if thing is not None and thing.origin is not None else offset
    begin = max((text.rfind(f"{name}(", start, offset) for name in _OF_VALUES), default=-1)
    return begin >= 0 and call_at(text[begin:], offset - begin) is not None


def _arguments(header: TraceHeader, thing: Declared | None, call: OpenCall) -> Iterator[tuple[str, str]]:
    """Yield what an argument of a call can be, where that is one of a few names."""
    owner = class_of(thing) if thing is not None else None
    roles = FIELD_MACROS.get(call.name.removeprefix("__"), ())
    role = roles[call.argument] if call.argument < len(roles) else ""
    if role == "filter_type":
        yield from _FILTERS.items()
    elif call.name in INSTANCE_MACROS and call.argument == 0:
        yield from ((one.name, f"({one.proto})") for one in header.classes)
    elif call.name in _NAMES_FIELD and call.argument == 0 and owner is not None:
        yield from ((field.name, field.ctype) for field in owner.fields)


def _words(thing: Declared | None, text: str, start: int, offset: int) -> Iterator[tuple[str, str]]:
    owner = class_of(thing) if thing is not None else None
    if _AFTER_ENTRY.search(text, start, offset):
        yield from ((field.name, field.ctype) for field in (owner.fields if owner is not None else ()))
    elif _AFTER_UNDERSCORES.search(text, start, offset):
        yield from ((f"__{kind}", _roles(roles)) for kind, roles in FIELD_MACROS.items())
        yield from ((name, "") for name in sorted(PRINT_HELPERS | ASSIGN_HELPERS))
        yield "__entry", ""
    elif _AFTER_CAPITAL.search(text, start, offset):
        yield from ((names[0], part) for part, names in PART_MACROS.items())


def _roles(roles: tuple[str, ...]) -> str:
    return f"({', '.join(roles)})"
