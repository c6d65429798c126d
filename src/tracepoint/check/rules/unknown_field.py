"""An expression names a field that the record does not have.

## What it does

Finds `__entry->x`, `__get_str(x)` and `__assign_str(x)` where `TP_STRUCT__entry` declares no `x`, in
assignments and in print formats; and `__entry->x` where `x` is a `__string` or another dynamic field, which
is not a member of the record: only `__get_str(x)`, `__get_dynamic_array(x)` and the like reach it.

## Why it is bad

The header does not compile, and the compiler's message points into six levels of macros. In a macro body
that several events share, the mistake may appear only when another event is built.

## Example

```c
TRACE_EVENT(sample,
    TP_PROTO(int count),
    TP_ARGS(count),
    TP_STRUCT__entry(__field(int, count)),
    TP_fast_assign(__entry->count = count;),
    TP_printk("count=%d", __entry->cuont) /* error: TP212 */
);
```

## Use instead

```c
TRACE_EVENT(sample,
    TP_PROTO(int count),
    TP_ARGS(count),
    TP_STRUCT__entry(__field(int, count)),
    TP_fast_assign(__entry->count = count;),
    TP_printk("count=%d", __entry->count)
);
```

## Fix safety

Unsafe: the fix uses the field with the closest name and, for a string, `__get_str(x)`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from tracepoint.check.context import CheckContext, ClassView
from tracepoint.check.finding import Finding
from tracepoint.check.syntax import RECORD_NAMES
from tracepoint.model.field import Field, StringField
from tracepoint.source.lexer import Kind, Token

_COMMON = frozenset({"ent"})
_GETTERS = {"string": "str", "string_len": "str", "vstring": "str"}
_PREFIXES = ("__data_loc_", "__rel_loc_")


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield names of fields that are not declared."""
    for view in context.classes:
        if not view.is_recorded or not view.is_known:
            continue
        codes = [(view.assign, view.event_name), *((p.tokens, p.event_name) for p in view.prints)]
        for tokens, event in codes:
            for named in _named(tokens):
                alike = [f for f in view.event_class.fields if f.name == named[2].text]
                if alike and named[0].text in RECORD_NAMES and all(f.is_dynamic for f in alike):
                    yield _no_member(context, alike[0], named, event)
                else:
                    yield from _finding(context, view, named[2], event)


def _named(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """Yield `__entry -> x` and `__get_str ( x`: three tokens that name a field of the record."""
    for index in range(len(tokens) - 2):
        first, second, third = tokens[index : index + 3]
        if third.kind is not Kind.NAME:
            continue
        if first.text in RECORD_NAMES and second.text == "->":
            yield first, second, third
        elif second.text == "(" and first.text.startswith(("__get_", "__assign_")):
            known = first.text.endswith(("str", "array", "array_len", "bitmask", "cpumask", "sockaddr"))
            if known and index + 3 < len(tokens) and tokens[index + 3].text in {")", ","}:
                yield first, second, third


def _no_member(context: CheckContext, field: Field, named: Sequence[Token], event: str) -> Finding:
    kind = field.kind.removeprefix("rel_")
    rel = "rel_" if field.is_relative else ""
    getter = f"__get_{rel}{_GETTERS.get(kind, kind)}({field.name})"
    is_string = isinstance(field, StringField)
    return Finding(
        f"{field.name} is a {field.macro}, the record has no such member",
        (named[0], named[2]),
        notes=((field.origin, "the field"),),
        help=(f"use {getter}",),
        fix=context.fix(f"use {getter}", named, getter) if is_string else None,
        event=event,
    )


def _finding(context: CheckContext, view: ClassView, token: Token, event: str) -> Iterator[Finding]:
    name = token.text
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    if name in view.fields or name in _COMMON or any(f.startswith(f"{name}[") for f in view.fields):
        return
    close = difflib.get_close_matches(name, view.fields, n=1)
    yield Finding(
        f"the record has no field {name}",
        token,
        label=f"did you mean {close[0]}?" if close else "",
        help=() if close else (f"its fields are {', '.join(view.fields) or 'none'}",),
        fix=context.fix(f"use {close[0]}", [token], close[0]) if close else None,
        event=event,
    )
