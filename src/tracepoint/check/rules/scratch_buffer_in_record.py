"""A field of the record is only scratch space for TP_printk.

## What it does

Finds fields that `TP_fast_assign` does not assign and that `TP_printk` passes to a function as a buffer.

## Why it is bad

Every record carries the unused bytes, with old data of the ring buffer in them. Reading the trace then writes
into the ring buffer, which is not allowed for a mapped or shared buffer. Readers of raw records show
nothing.

## Example

```c
TRACE_EVENT(decoded,
    TP_PROTO(u32 raw),
    TP_ARGS(raw),
    TP_STRUCT__entry(
        __field(u32, raw)
        __dynamic_array(char, text, 200) /* error: TP206 */
    ),
    TP_fast_assign(__entry->raw = raw;),
    TP_printk("%s", my_decode(__get_str(text), 200, __entry->raw)) /* error: TP308 */
);
```

## Use instead

Show the value with `__print_flags` and `__print_symbolic`, or get a buffer with `__get_buf()` (6.5 and
later), which is not part of the record.

```c
TRACE_EVENT(decoded,
    TP_PROTO(u32 raw),
    TP_ARGS(raw),
    TP_STRUCT__entry(__field(u32, raw)),
    TP_fast_assign(__entry->raw = raw;),
    TP_printk("%s", __print_flags(__entry->raw, "|", { 1, "READY" }, { 2, "ERROR" }))
);
```

## Fix safety

None is offered.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracepoint.check.context import CheckContext, origin_of
from tracepoint.check.finding import Finding
from tracepoint.check.rules.field_never_assigned import can_claim


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield fields that only the print format writes."""
    for view in context.classes:
        for field in view.event_class.fields:
            place = origin_of(field, view.event_class)
            if field.name not in view.scratch or field.name in view.assigned or place is None:
                continue
            if can_claim(view):
                yield Finding(
                    f"field {field.name} is only a buffer for TP_printk to write into",
                    place,
                    label="every record carries its bytes",
                    event=view.event_name,
                )
