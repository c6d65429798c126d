"""An event class is declared, but no event is made from it.

## What it does

Finds `DECLARE_EVENT_CLASS` without a `DEFINE_EVENT` in any header of the run.

## Why it is bad

The class costs code and data in the kernel, and nobody can switch it on. Usually its last event went away
and the class was forgotten.

## Example

```c
DECLARE_EVENT_CLASS(forgotten, /* error: TP110 */
    TP_PROTO(int tag),
    TP_ARGS(tag),
    TP_STRUCT__entry(__field(int, tag)),
    TP_fast_assign(__entry->tag = tag;),
    TP_printk("tag=%d", __entry->tag)
);
```

## Use instead

```c
DECLARE_EVENT_CLASS(kept,
    TP_PROTO(int tag),
    TP_ARGS(tag),
    TP_STRUCT__entry(__field(int, tag)),
    TP_fast_assign(__entry->tag = tag;),
    TP_printk("tag=%d", __entry->tag)
);
DEFINE_EVENT(kept, kept_begin, TP_PROTO(int tag), TP_ARGS(tag));
```

## Fix safety

None is offered: the class may be waiting for its events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.check.context import origin_of
from tracepoint.check.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.check.context import CheckContext


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield classes that no event uses."""
    used = context.used_classes
    for view in context.classes:
        cls = view.event_class
        place = origin_of(cls)
        if view.events or cls.name in used or place is None or cls.macro.endswith("_NOP"):
            continue
        yield Finding("no event is made of this class", place, event=cls.name)
