"""The fixed part of a record is larger than 256 bytes.

## What it does

Lays out the record without its dynamic parts.

## Why it is bad

A sub-buffer is one page: it holds few such records, and each event copies the whole record with preemption
off. Often most of it is an array that is rarely full.

## Example

```c
TRACE_EVENT(whole_path,
    TP_PROTO(const char *path),
    TP_ARGS(path),
    TP_STRUCT__entry(__array(char, path, 512)), /* error: TP205 */
    TP_fast_assign(strscpy(__entry->path, path, 512);),
    TP_printk("path=%s", __entry->path)
);
```

## Use instead

A string or dynamic array takes only the bytes that it needs.

```c
TRACE_EVENT(whole_path,
    TP_PROTO(const char *path),
    TP_ARGS(path),
    TP_STRUCT__entry(__string(path, path)),
    TP_fast_assign(__assign_str(path, path);),
    TP_printk("path=%s", __get_str(path))
);
```

## Fix safety

None is offered.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracepoint.check.context import CheckContext, origin_of
from tracepoint.check.finding import Finding
from tracepoint.check.record_layout import is_bound, lay_out

_LIMIT_BYTES = 256


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield records above the limit."""
    for view in context.classes:
        layout = lay_out(context, view) if view.is_recorded else None
        if layout is None or layout.size_bytes <= _LIMIT_BYTES or is_bound(context, view):
            continue
        widest = max(layout.members, key=lambda m: m.size)
        place = origin_of(widest.field, view.event_class)
        if place is not None:
            yield Finding(
                f"every record takes {layout.size_bytes} bytes",
                place,
                label=f"{widest.size} of them",
                event=view.event_name,
            )
