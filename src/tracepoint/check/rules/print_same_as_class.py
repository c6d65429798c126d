"""DEFINE_EVENT_PRINT repeats the print format of its class.

## What it does

Compares the print format of each `DEFINE_EVENT_PRINT` with that of the class, after macro expansion.

## Why it is bad

It generates a second output function and a second copy of the text for nothing, and a change of the class
does not reach this event.

## Example

```c
DECLARE_EVENT_CLASS(tagged,
    TP_PROTO(int tag),
    TP_ARGS(tag),
    TP_STRUCT__entry(__field(int, tag)),
    TP_fast_assign(__entry->tag = tag;),
    TP_printk("tag=%d", __entry->tag)
);
DEFINE_EVENT_PRINT(tagged, tagged_twice, TP_PROTO(int tag), TP_ARGS(tag),
    TP_printk("tag=%d", __entry->tag)); /* error: TP109 */
```

## Use instead

```c
DECLARE_EVENT_CLASS(tagged,
    TP_PROTO(int tag),
    TP_ARGS(tag),
    TP_STRUCT__entry(__field(int, tag)),
    TP_fast_assign(__entry->tag = tag;),
    TP_printk("tag=%d", __entry->tag)
);
DEFINE_EVENT(tagged, tagged_once, TP_PROTO(int tag), TP_ARGS(tag));
```

## Fix safety

None is offered.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracepoint.check.context import CheckContext, origin_of
from tracepoint.check.finding import Finding
from tracepoint.check.syntax import meaning


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield print formats that repeat the class's."""
    for event in context.header.events:
        own, base = event.print_override, event.event_class.printk
        if own is None or not own.tokens or meaning(own.tokens) != meaning(base.tokens):
            continue
        yield Finding(
            f"prints as its class {event.event_class.name} does",
            own.tokens[0],
            notes=((origin_of(event.event_class), "the class"),),
            help=("use DEFINE_EVENT",),
            event=event.full_name,
        )
