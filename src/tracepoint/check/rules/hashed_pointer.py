"""`%p` shows a hash of the pointer, not its value.

## What it does

Finds `%p` without an extension. Off by default: a hash is enough to distinguish objects.

## Why it is bad

Since 4.15 `%p` prints a hash that differs from boot to boot, while the raw record holds the real address.
The output of `trace` cannot be compared with that of `perf`, nor with addresses in other messages.

## Example

```c
TRACE_EVENT(mapped,
    TP_PROTO(void *where),
    TP_ARGS(where),
    TP_STRUCT__entry(__field(void *, where)),
    TP_fast_assign(__entry->where = where;),
    TP_printk("where=%p", __entry->where) /* error: TP312 */
);
```

## Use instead

`%px` for the address, `%pS` for a symbol, or an identifier of the object instead of its address.

```c
TRACE_EVENT(mapped,
    TP_PROTO(void *where),
    TP_ARGS(where),
    TP_STRUCT__entry(__field(void *, where)),
    TP_fast_assign(__entry->where = where;),
    TP_printk("where=%pS", __entry->where)
);
```

## Fix safety

None is offered: showing addresses is a decision about security.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracepoint.check.context import CheckContext
from tracepoint.check.finding import Finding


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield arguments of a bare `%p`."""
    for view in context.prints:
        for conversion, argument in view.printed:
            if conversion.conversion == "p" and not conversion.letters:
                yield Finding("%p shows a hash, not the address", argument, event=view.event_name)
