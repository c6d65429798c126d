"""The prototype has no parameters, which no kernel can compile.

## What it does

Finds `TP_PROTO(void)` and `TP_PROTO()`.

## Why it is bad

The kernel puts its own first parameter before the prototype's, with a comma between them:
`void *__data, void` is not C (`DECLARE_TRACE()` in `include/linux/tracepoint.h`). The compiler's message
points into that file, not to the declaration.

## Example

```c
TRACE_EVENT(woken,
    TP_PROTO(void), /* error: TP111 */
    TP_ARGS(),
    TP_STRUCT__entry(__field(u64, at)),
    TP_fast_assign(__entry->at = ktime_get_ns();),
    TP_printk("at=%llu", __entry->at)
);
```

## Use instead

Pass what the event is about, or a number that is not recorded, as the kernel's own headers do.

```c
TRACE_EVENT(woken,
    TP_PROTO(int dummy),
    TP_ARGS(dummy),
    TP_STRUCT__entry(__field(u64, at)),
    TP_fast_assign(__entry->at = ktime_get_ns();),
    TP_printk("at=%llu", __entry->at)
);
```

## Fix safety

None is offered: the calls would have to change as well.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracepoint.check.context import CheckContext, origin_of
from tracepoint.check.finding import Finding
from tracepoint.model.event import Proto


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield declarations without parameters."""
    for view in context.classes:
        # A class without a record does not become a tracepoint.
        if view.event_class.macro and _is_empty(view.event_class.proto):
            place = origin_of(view.event_class.proto, view.event_class, *view.events)
            if place is not None:
                yield Finding("TP_PROTO has no parameters", place, help=_HELP, event=view.event_name)
    for bare in context.header.tracepoints:
        if _is_empty(bare.proto):
            place = origin_of(bare.proto, bare)
            if place is not None:
                yield Finding("TP_PROTO has no parameters", place, help=_HELP, event=bare.name)


_HELP = ("declare a parameter, which need not be recorded, and pass it in the calls",)


def _is_empty(proto: Proto) -> bool:
    return not proto.params or (len(proto.params) == 1 and str(proto).strip() == "void")
