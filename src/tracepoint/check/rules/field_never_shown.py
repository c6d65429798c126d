"""A field is recorded but its print format does not show it.

## What it does

Finds fields that no print format of the class mentions. Off by default: often a field is only
for `perf`, eBPF and filters.

## Why it is bad

Every record pays for the bytes, and readers of the text never see the value.

## Example

```c
TRACE_EVENT(request_done,
    TP_PROTO(int id, int status),
    TP_ARGS(id, status),
    TP_STRUCT__entry(
        __field(int, id)
        __field(int, status) /* error: TP203 */
    ),
    TP_fast_assign(
        __entry->id = id;
        __entry->status = status;
    ),
    TP_printk("id=%d", __entry->id)
);
```

## Use instead

```c
TRACE_EVENT(request_done,
    TP_PROTO(int id, int status),
    TP_ARGS(id, status),
    TP_STRUCT__entry(
        __field(int, id)
        __field(int, status)
    ),
    TP_fast_assign(
        __entry->id = id;
        __entry->status = status;
    ),
    TP_printk("id=%d status=%d", __entry->id, __entry->status)
);
```

## Fix safety

None is offered: how to show a value is the author's choice.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracepoint.check.context import CheckContext, origin_of
from tracepoint.check.finding import Finding


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield the fields that no print format mentions."""
    for view in context.classes:
        if not view.is_recorded or not any(p.tokens for p in view.prints):
            continue
        shown = frozenset().union(*(p.names for p in view.prints))
        for field in view.event_class.fields:
            place = origin_of(field, view.event_class)
            if field.name not in shown and place is not None:
                yield Finding(f"field {field.name} is recorded but never shown", place, event=view.event_name)
