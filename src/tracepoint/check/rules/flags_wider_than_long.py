"""Flags or symbols with more than 32 bits are printed by a helper that takes a long.

## What it does

Finds values above 2^32-1 in the lists of `__print_flags` and `__print_symbolic`.

## Why it is bad

On 32-bit kernels both take an `unsigned long`: the upper half of the value and of the list is cut off, so
flags are missing and different symbols become one.

## Example

```c
TRACE_EVENT(features,
    TP_PROTO(u64 features),
    TP_ARGS(features),
    TP_STRUCT__entry(__field(u64, features)),
    TP_fast_assign(__entry->features = features;),
    TP_printk("%s", __print_flags(__entry->features, "|",
        { 1ULL << 40, "WIDE" })) /* error: TP311 */
);
```

## Use instead

```c
TRACE_EVENT(features,
    TP_PROTO(u64 features),
    TP_ARGS(features),
    TP_STRUCT__entry(__field(u64, features)),
    TP_fast_assign(__entry->features = features;),
    TP_printk("%s", __print_flags_u64(__entry->features, "|",
        { 1ULL << 40, "WIDE" }))
);
```

## Fix safety

Safe: the record stays the same, and so does the text on 64-bit kernels.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracepoint.check.context import CheckContext
from tracepoint.check.finding import Finding
from tracepoint.check.lists import value_lists
from tracepoint.diagnostics import Safety


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield values that do not fit a 32-bit long."""
    for view in context.prints:
        for call, items in value_lists(context, view):
            if call.name.endswith("_u64"):
                continue
            wide = next(
                (i for i in items if i.value is not None and not -(1 << 31) <= i.value < 1 << 32), None
            )
            # -1 and other sign-extended masks of an int look wide too, but are not.
            if wide is None or wide.value is None or wide.value >= (1 << 64) - (1 << 31):
                continue
            first = call.function.first
            yield Finding(
                f"{wide.text} does not fit the unsigned long that {call.name} takes on 32-bit kernels",
                wide.node,
                help=(f"use {call.name}_u64",),
                fix=context.fix(f"use {call.name}_u64", [first], f"{call.name}_u64", Safety.SAFE)
                if first is not None
                else None,
                event=view.event_name,
            )
