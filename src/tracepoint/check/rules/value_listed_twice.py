"""A `__print_symbolic` list has two names for one value.

## What it does

Finds values that appear twice in a list of `__print_symbolic` or `__print_flags`: the same constant, or the
same number. For different constants with the same value there is another rule (`value-with-two-names`).

## Why it is bad

The first entry wins, and the second name is never shown. Usually it is a copying mistake: the constant that
belongs to the second name is missing, and is shown as a bare number.

## Example

```c
TRACE_EVENT(state,
    TP_PROTO(int state),
    TP_ARGS(state),
    TP_STRUCT__entry(__field(int, state)),
    TP_fast_assign(__entry->state = state;),
    TP_printk("state=%s", __print_symbolic(__entry->state,
        { 1, "idle" },
        { 2, "busy" },
        { 2, "gone" })) /* error: TP315 */
);
```

## Use instead

```c
TRACE_EVENT(state,
    TP_PROTO(int state),
    TP_ARGS(state),
    TP_STRUCT__entry(__field(int, state)),
    TP_fast_assign(__entry->state = state;),
    TP_printk("state=%s", __print_symbolic(__entry->state,
        { 1, "idle" },
        { 2, "busy" },
        { 3, "gone" }))
);
```

## Fix safety

None is offered: the header does not show which constant was intended.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracepoint.check.context import CheckContext
from tracepoint.check.finding import Finding
from tracepoint.check.lists import place_of, repeated_items
from tracepoint.source.ast import Number


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield entries whose value is earlier in the list too."""
    for view, item, first in repeated_items(context):
        if item.text == first.text or (isinstance(item.node, Number) and isinstance(first.node, Number)):
            shown = f'"{first.name}"' if first.name is not None else "the first name"
            yield Finding(
                f"{item.text} is already in the list: {shown} is shown for it",
                item.node,
                notes=((place_of(first), "the entry that wins"),),
                event=view.event_name,
            )
