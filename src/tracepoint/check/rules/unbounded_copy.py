"""A string is copied into the record with a function that does not know the length of the field.

## What it does

Finds `strcpy`, `strcat`, `sprintf` and `vsprintf` into a field of the record. A literal of one
character is allowed.

## Why it is bad

They write as many bytes as the source has, over whatever follows in the ring buffer.

## Example

```c
TRACE_EVENT(dev_named,
    TP_PROTO(const char *name),
    TP_ARGS(name),
    TP_STRUCT__entry(__array(char, name, 16)),
    TP_fast_assign(strcpy(__entry->name, name);), /* error: TP208 */
    TP_printk("name=%s", __entry->name)
);
```

## Use instead

```c
TRACE_EVENT(dev_named,
    TP_PROTO(const char *name),
    TP_ARGS(name),
    TP_STRUCT__entry(__array(char, name, 16)),
    TP_fast_assign(strscpy(__entry->name, name, sizeof(__entry->name));),
    TP_printk("name=%s", __entry->name)
);
```

A `__string` field takes any length and needs no array.

## Fix safety

Unsafe: a string that is too long is truncated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracepoint.check.context import CheckContext
from tracepoint.check.finding import Finding
from tracepoint.check.syntax import RECORD_NAMES, calls_in
from tracepoint.diagnostics import Fix
from tracepoint.model.field import ArrayField
from tracepoint.source.lexer import Kind, Token
from tracepoint.source.macros import spell

#: The functions, with the least number of arguments that they take.
_UNBOUNDED = {"strcpy": 2, "strcat": 2, "sprintf": 2, "vsprintf": 3}
#: A literal of one character, with its quotes.
_SHORT = 3


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield copies that may overrun the field."""
    for view in context.classes:
        for name, arguments in calls_in(view.assign):
            if len(arguments) < _UNBOUNDED.get(name.text, 99) or len(arguments[0]) < 3:
                continue
            target = arguments[0]
            if target[0].text not in RECORD_NAMES and target[0].text != "__get_str":
                continue
            if name.text == "strcpy" and _fits(arguments[1]):
                continue
            field = view.fields.get(target[-1].text)
            yield Finding(
                f"{name.text}() does not know the length of the field",
                name,
                help=("strscpy(__entry->x, source, sizeof(__entry->x)), or a __string field",),
                fix=_fix(context, name, arguments) if isinstance(field, ArrayField) else None,
                event=view.event_name,
            )


def _fits(source: Sequence[Token]) -> bool:
    """Return whether the source is a short literal, which fits every array."""
    return len(source) == 1 and source[0].kind is Kind.STRING and len(source[0].text) <= _SHORT


def _fix(context: CheckContext, name: Token, arguments: Sequence[Sequence[Token]]) -> Fix | None:
    if name.text != "strcpy" or not arguments[1]:
        return None
    target = spell(arguments[0])
    whole = [name, *arguments[0], *arguments[1]]
    return context.fix("use strscpy", whole, f"strscpy({target}, {spell(arguments[1])}, sizeof({target})")
