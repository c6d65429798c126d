"""Two or more TRACE_EVENTs have the same five parts and could share a class.

## What it does

Compares parameters, fields, statements and print formats of all `TRACE_EVENT`s of a header.

## Why it is bad

Each `TRACE_EVENT` generates its own functions and tables, one to five kilobytes of kernel memory. A
`DEFINE_EVENT` costs about 250 bytes. Besides, code that is written once cannot drift apart.

## Example

```c
TRACE_EVENT(io_begin,
    TP_PROTO(int tag),
    TP_ARGS(tag),
    TP_STRUCT__entry(__field(int, tag)),
    TP_fast_assign(__entry->tag = tag;),
    TP_printk("tag=%d", __entry->tag)
);
TRACE_EVENT(io_end, /* error: TP106 */
    TP_PROTO(int tag),
    TP_ARGS(tag),
    TP_STRUCT__entry(__field(int, tag)),
    TP_fast_assign(__entry->tag = tag;),
    TP_printk("tag=%d", __entry->tag)
);
```

## Use instead

```c
DECLARE_EVENT_CLASS(io_tag,
    TP_PROTO(int tag),
    TP_ARGS(tag),
    TP_STRUCT__entry(__field(int, tag)),
    TP_fast_assign(__entry->tag = tag;),
    TP_printk("tag=%d", __entry->tag)
);
DEFINE_EVENT(io_tag, io_begin, TP_PROTO(int tag), TP_ARGS(tag));
DEFINE_EVENT(io_tag, io_end, TP_PROTO(int tag), TP_ARGS(tag));
```

## Fix safety

None is offered: choosing a name for the class is up to the author.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracepoint.check.context import CheckContext, origin_of
from tracepoint.check.finding import Finding
from tracepoint.model.event import Event


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield events that repeat an earlier one."""
    groups: dict[object, list[Event]] = {}
    for event in context.header.events:
        cls = event.event_class
        if event.macro != "TRACE_EVENT" or not cls.fields:
            continue
        key = (
            tuple(p.ctype for p in cls.proto.params),
            cls.args,
            cls.fields,
            cls.assign.text,
            cls.printk.text,
        )
        groups.setdefault(key, []).append(event)
    for events in groups.values():
        first = events[0]
        for event in events[1:]:
            place = origin_of(event)
            if place is not None:
                yield Finding(
                    f"has the same five parts as {first.name}",
                    place,
                    notes=((origin_of(first), "the same parts"),),
                    help=("DECLARE_EVENT_CLASS once and DEFINE_EVENT for each",),
                    event=event.full_name,
                )
