"""A list of `__print_symbolic` gives two names to one value.

## What it does

Evaluates the values of the lists of `__print_symbolic` and `__print_flags` and finds those that stand there
twice. Two entries with the same value and the same name are found too.

## Why it is bad

The first entry wins, the second name is never shown. Mostly it is a slip of copying: the constant that
belongs to the second name is missing, and shows as a bare number.

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

None is offered: which constant was meant is not in the header.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.check.finding import Finding
from tracepoint.check.lists import value_lists

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.check.context import CheckContext
    from tracepoint.check.lists import Item
    from tracepoint.source.ast import Node


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield entries whose value stood in the list before."""
    for view in context.prints:
        for _, items in value_lists(context, view):
            seen: dict[int | str, Item] = {}
            for item in items:
                key = item.value if item.value is not None else item.text
                first = seen.setdefault(key, item)
                if first is item:
                    continue
                shown = f'"{first.name}"' if first.name is not None else "the first name"
                yield Finding(
                    f"{item.text} stands in the list before: {shown} is shown for it",
                    item.node,
                    notes=((_place(first), "the entry that wins"),),
                    event=view.event_name,
                )


def _place(item: Item) -> Node | None:
    return item.node if item.node.first is not None and item.node.first.expansion is None else None
