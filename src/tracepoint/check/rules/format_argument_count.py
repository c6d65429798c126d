"""The print format has more or fewer conversions than arguments.

## What it does

Counts the conversions of the format string (a `*` takes an argument too) and the arguments after it, after
macro expansion.

## Why it is bad

A conversion without an argument prints what happens to be in a register or on the stack, and `%s` then
follows it as an address. An extra argument shifts nothing, but is never shown. `TP_printk` hides the
format from the compiler's own check in many kernel versions.

## Example

```c
TRACE_EVENT(pair,
    TP_PROTO(int a, int b),
    TP_ARGS(a, b),
    TP_STRUCT__entry(__field(int, a) __field(int, b)),
    TP_fast_assign(__entry->a = a; __entry->b = b;),
    TP_printk("a=%d b=%d", __entry->a) /* error: TP303 */
);
```

## Use instead

```c
TRACE_EVENT(pair,
    TP_PROTO(int a, int b),
    TP_ARGS(a, b),
    TP_STRUCT__entry(__field(int, a) __field(int, b)),
    TP_fast_assign(__entry->a = a; __entry->b = b;),
    TP_printk("a=%d b=%d", __entry->a, __entry->b)
);
```

## Fix safety

None is offered.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracepoint.check.context import CheckContext
from tracepoint.check.finding import Finding
from tracepoint.source.ast import Name


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield print formats with another number of conversions than arguments."""
    for view in context.prints:
        text = view.format
        if text is None or any(_may_be_many(a) for a in view.arguments):
            continue
        wanted = sum(c.n_arguments for c in view.conversions)
        given = len(view.arguments)
        if wanted != given:
            yield Finding(
                f"the format takes {wanted} argument{'s' * (wanted != 1)}, {given} given",
                text,
                help=(f"its conversions are {' '.join(c.text for c in view.conversions) or 'none'}",),
                event=view.event_name,
            )


def _may_be_many(node: object) -> bool:
    """Return whether an argument may be an unknown macro that expands to several."""
    return isinstance(node, Name) and node.name.isupper()
