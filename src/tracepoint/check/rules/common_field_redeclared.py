"""A field has the name of a member that every record already has.

## What it does

Finds fields called `common_type`, `common_flags`, `common_preempt_count`, `common_pid`, `ent`, and those that
filters and histograms treat as built in (`common_cpu`, `common_timestamp`, `common_comm`).

## Why it is bad

Filters, histograms and readers look up names among the common fields too, and they do not agree on which of
the two they find.

## Example

```c
TRACE_EVENT(waker,
    TP_PROTO(int pid),
    TP_ARGS(pid),
    TP_STRUCT__entry(__field(int, common_pid)), /* error: TP104 */
    TP_fast_assign(__entry->common_pid = pid;),
    TP_printk("pid=%d", __entry->common_pid)
);
```

## Use instead

```c
TRACE_EVENT(waker,
    TP_PROTO(int pid),
    TP_ARGS(pid),
    TP_STRUCT__entry(__field(int, waker_pid)),
    TP_fast_assign(__entry->waker_pid = pid;),
    TP_printk("waker_pid=%d", __entry->waker_pid)
);
```

## Fix safety

None is offered: scripts may rely on the name.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracepoint.check.context import CheckContext, origin_of
from tracepoint.check.finding import Finding

_COMMON = frozenset(
    [
        "common_type",
        "common_flags",
        "common_preempt_count",
        "common_pid",
        "common_cpu",
        "common_timestamp",
        "common_comm",
        "common_stacktrace",
        "ent",
    ]
)


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield fields with a common name."""
    for view in context.classes:
        for field in view.event_class.fields:
            place = origin_of(field, view.event_class)
            if field.name in _COMMON and place is not None:
                yield Finding(f"every record already has {field.name}", place, event=view.event_name)
