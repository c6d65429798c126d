"""strncpy may leave a string in the record without a terminating zero byte.

## What it does

Finds `strncpy` into a field of the record, unless its length is written `size - 1` or a later statement
stores a zero into the field. Off by default: a source of the same size that ends in
zero is fine.

## Why it is bad

A source that fills the array leaves no terminating zero, and `%s` reads on into the next field.

## Example

```c
TRACE_EVENT(dev_named,
    TP_PROTO(const char *name),
    TP_ARGS(name),
    TP_STRUCT__entry(__array(char, name, 16)),
    TP_fast_assign(strncpy(__entry->name, name, 16);), /* error: TP213 */
    TP_printk("name=%s", __entry->name)
);
```

## Use instead

```c
TRACE_EVENT(dev_named,
    TP_PROTO(const char *name),
    TP_ARGS(name),
    TP_STRUCT__entry(__array(char, name, 16)),
    TP_fast_assign(strscpy(__entry->name, name, 16);),
    TP_printk("name=%s", __entry->name)
);
```

## Fix safety

Unsafe: `strncpy` clears the rest of the array, `strscpy` does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracepoint.check.context import CheckContext
from tracepoint.check.finding import Finding
from tracepoint.check.syntax import RECORD_NAMES, calls_in, closing
from tracepoint.source.lexer import Token


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield copies that may leave a field unterminated."""
    for view in context.classes:
        for name, arguments in calls_in(view.assign):
            if name.text != "strncpy" or len(arguments) != 3 or len(arguments[0]) < 3:
                continue
            target = arguments[0]
            if target[0].text not in RECORD_NAMES or _leaves_room(arguments[2]):
                continue
            if not _is_ended(view.assign, target[-1].text):
                yield Finding(
                    "strncpy() may leave the field without a terminating zero byte",
                    name,
                    fix=context.fix("use strscpy", [name], "strscpy"),
                    event=view.event_name,
                )


def _leaves_room(length: Sequence[Token]) -> bool:
    """Return whether the length is written `size - 1`, which shows that the end was considered."""
    return len(length) > 2 and length[-2].text == "-" and length[-1].text == "1"


def _is_ended(tokens: Sequence[Token], field: str) -> bool:
    """Return whether a later statement stores a terminating zero: `__entry->x[...] = 0;`."""
    texts = [t.text for t in tokens]
    for index, text in enumerate(texts[:-1]):
        if text == field and texts[index + 1] == "[":
            end = closing(tokens, index + 1)
            if texts[end + 1 : end + 2] == ["="] and texts[end + 2 : end + 3] in (["0"], ["'\\0'"]):
                return True
    return False
