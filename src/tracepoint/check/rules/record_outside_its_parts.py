"""`__entry` is used where there is no record yet.

## What it does

Finds `__entry` in `TP_PROTO`, `TP_ARGS`, `TP_CONDITION`, and in the lengths and sources of
`TP_STRUCT__entry`.

## Why it is bad

Lengths are computed and conditions tested before the record exists. It does not compile; with some compilers
and macros the message names a variable that is not in the source.

## Example

```c
TRACE_EVENT(blob,
    TP_PROTO(const u8 *data, int n),
    TP_ARGS(data, n),
    TP_STRUCT__entry(
        __field(int, n)
        __dynamic_array(u8, data, __entry->n) /* error: TP108 */
    ),
    TP_fast_assign(
        __entry->n = n;
        memcpy(__get_dynamic_array(data), data, n);
    ),
    TP_printk("n=%d %*ph", __entry->n, __entry->n, __get_dynamic_array(data))
);
```

## Use instead

```c
TRACE_EVENT(blob,
    TP_PROTO(const u8 *data, int n),
    TP_ARGS(data, n),
    TP_STRUCT__entry(
        __field(int, n)
        __dynamic_array(u8, data, n)
    ),
    TP_fast_assign(
        __entry->n = n;
        memcpy(__get_dynamic_array(data), data, n);
    ),
    TP_printk("n=%d %*ph", __entry->n, __entry->n, __get_dynamic_array(data))
);
```

## Fix safety

None is offered.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracepoint.check.context import CheckContext
from tracepoint.check.finding import Finding
from tracepoint.model.origin import Code


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield uses of the record before it exists."""
    for view in context.classes:
        for field in view.event_class.fields:
            for name in ("length", "source", "n_bits", "va_list"):
                yield from _uses(getattr(field, name, None), f"the {name} of {field.name}", view.event_name)
    for event in context.header.events:
        yield from _uses(event.condition, "the condition", event.full_name)


def _uses(code: Code | None, where: str, event: str) -> Iterator[Finding]:
    if code is None:
        return
    for token in code.tokens:
        if token.text == "__entry":
            yield Finding(f"{where} uses __entry, but there is no record yet", token, event=event)
            return
