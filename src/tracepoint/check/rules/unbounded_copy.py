"""A string is copied into the record with a function that does not keep its bounds or its end.

## What it does

Finds `strcpy`, `strcat`, `sprintf`, `vsprintf` and `strncpy` into a field of the record.

## Why it is bad

`strcpy` and `sprintf` write as much as the source has, over whatever follows in the ring buffer. `strncpy`
leaves the array without an ending zero byte when the source fills it, and `%s` then reads on.

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

Unsafe: `strncpy` clears the rest of the array, `strscpy` does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.check.finding import Finding
from tracepoint.check.syntax import RECORD_NAMES, calls_in, closing, spell
from tracepoint.model.field import ArrayField
from tracepoint.source.lexer import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracepoint.check.context import CheckContext
    from tracepoint.diagnostics import Fix
    from tracepoint.source.lexer import Token

#: A literal of one character, with its quotes.
_SHORT = 3
_UNBOUNDED = {"strcpy": 2, "strcat": 2, "sprintf": 2, "vsprintf": 3, "strncpy": 3}


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield copies that may run over the field or leave it without an end."""
    for view in context.classes:
        for name, arguments in calls_in(view.assign):
            if len(arguments) < _UNBOUNDED.get(name.text, 99) or len(arguments[0]) < 3:
                continue
            target = arguments[0]
            if target[0].text not in RECORD_NAMES and target[0].text != "__get_str":
                continue
            field = view.fields.get(target[-1].text)
            if name.text == "strncpy" and (
                _leaves_room(arguments[2]) or _is_ended(view.assign, target[-1].text)
            ):
                continue
            if name.text == "strcpy" and _fits(arguments[1]):
                continue
            what = (
                "may leave the field without an ending zero byte"
                if name.text == "strncpy"
                else "does not know how long the field is"
            )
            yield Finding(
                f"{name.text}() {what}",
                name,
                help=("strscpy(__entry->x, source, sizeof(__entry->x)), or a __string field",),
                fix=_fix(context, name, arguments) if isinstance(field, ArrayField) else None,
                event=view.event_name,
            )


def _leaves_room(length: Sequence[Token]) -> bool:
    """Whether the length is written `size - 1`, which shows that somebody thought of the end."""
    return len(length) > 2 and length[-2].text == "-" and length[-1].text == "1"


def _is_ended(tokens: Sequence[Token], field: str) -> bool:
    """Whether a later statement stores an ending zero: `__entry->x[...] = 0;`."""
    texts = [t.text for t in tokens]
    for index, text in enumerate(texts[:-1]):
        if text == field and texts[index + 1] == "[":
            end = closing(tokens, index + 1)
            if texts[end + 1 : end + 2] == ["="] and texts[end + 2 : end + 3] in (["0"], ["'\\0'"]):
                return True
    return False


def _fits(source: Sequence[Token]) -> bool:
    """Whether the source is a short literal, which fits every array."""
    return len(source) == 1 and source[0].kind is Kind.STRING and len(source[0].text) <= _SHORT


def _fix(context: CheckContext, name: Token, arguments: Sequence[Sequence[Token]]) -> Fix | None:
    if name.text not in {"strcpy", "strncpy"} or not arguments[1]:
        return None
    target = spell(arguments[0])
    whole = [name, *arguments[0], *arguments[1]]
    if name.text == "strncpy":
        return context.fix("use strscpy", [name], "strscpy")
    return context.fix("use strscpy", whole, f"strscpy({target}, {spell(arguments[1])}, sizeof({target})")
