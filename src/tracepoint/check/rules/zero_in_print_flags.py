"""A list of `__print_flags` has an entry whose value is zero.

## What it does

Evaluates the values of the list of `__print_flags`, and finds zero.

## Why it is bad

Zero is contained in every set of flags: as soon as another bit is set, the name of zero is printed with it
("NONE|READ"). And when no bit is set the list is not looked at, so it is *not* printed then.
(trace_print_flags_seq() in kernel/trace/trace_output.c.)

## Example

```c
TRACE_EVENT(opened,
    TP_PROTO(int mode),
    TP_ARGS(mode),
    TP_STRUCT__entry(__field(int, mode)),
    TP_fast_assign(__entry->mode = mode;),
    TP_printk("mode=%s", __print_flags(__entry->mode, "|",
        { 0, "NONE" }, /* error: TP314 */
        { 1, "READ" },
        { 2, "WRITE" }))
);
```

## Use instead

```c
TRACE_EVENT(opened,
    TP_PROTO(int mode),
    TP_ARGS(mode),
    TP_STRUCT__entry(__field(int, mode)),
    TP_fast_assign(__entry->mode = mode;),
    TP_printk("mode=%s", __entry->mode ? __print_flags(__entry->mode, "|",
        { 1, "READ" },
        { 2, "WRITE" }) : "NONE")
);
```

## Fix safety

None is offered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.check.finding import Finding
from tracepoint.check.lists import value_lists

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.check.context import CheckContext


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield flags that are zero."""
    for view in context.prints:
        for call, items in value_lists(context, view):
            if "flags" not in call.name:
                continue
            for item in items:
                if item.value == 0:
                    named = f' ("{item.name}")' if item.name else ""
                    yield Finding(
                        f"{item.text}{named} is zero: it is printed with every other flag, and never alone",
                        item.node,
                        event=view.event_name,
                    )
