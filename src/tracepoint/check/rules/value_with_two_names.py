"""Two constants of a `__print_symbolic` list have the same value.

## What it does

Evaluates the constants of the lists of `__print_symbolic` and finds different ones with the same value.
Off by default: aliases such as `AF_UNIX` and `AF_LOCAL` are not a fault, and opcodes of different devices
overlap.

## Why it is bad

The first entry wins, and the second name is never shown. When the constants come from different enums, the
trace may show a name of the wrong one.

## Example

```c
enum { ERR_NONE, ERR_BUSY };
enum { WARN_NONE, WARN_HOT };
TRACE_DEFINE_ENUM(ERR_BUSY);
TRACE_DEFINE_ENUM(WARN_HOT);

TRACE_EVENT(state,
    TP_PROTO(int state),
    TP_ARGS(state),
    TP_STRUCT__entry(__field(int, state)),
    TP_fast_assign(__entry->state = state;),
    TP_printk("state=%s", __print_symbolic(__entry->state,
        { ERR_BUSY, "busy" },
        { WARN_HOT, "hot" })) /* error: TP321 */
);
```

## Use instead

Record what kind of value it is, and use one list for each kind.

```c
enum { ERR_NONE, ERR_BUSY };
TRACE_DEFINE_ENUM(ERR_BUSY);

TRACE_EVENT(state,
    TP_PROTO(int state),
    TP_ARGS(state),
    TP_STRUCT__entry(__field(int, state)),
    TP_fast_assign(__entry->state = state;),
    TP_printk("state=%s", __print_symbolic(__entry->state,
        { ERR_BUSY, "busy" }))
);
```

## Fix safety

None is offered.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracepoint.check.context import CheckContext
from tracepoint.check.finding import Finding
from tracepoint.check.lists import place_of, repeated_items
from tracepoint.source.ast import Number


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield constants with the value of an earlier one."""
    for view, item, first in repeated_items(context):
        if item.text == first.text or (isinstance(item.node, Number) and isinstance(first.node, Number)):
            continue
        yield Finding(
            f"{item.text} has the value of {first.text}, whose name is shown for both",
            item.node,
            notes=((place_of(first), "the entry that wins"),),
            event=view.event_name,
        )
