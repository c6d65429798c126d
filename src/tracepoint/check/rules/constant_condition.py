"""The condition of a conditional event is a constant.

## What it does

Finds `TP_CONDITION` (and the condition of `TRACE_EVENT_FN_COND`, `DEFINE_EVENT_CONDITION`,
`DECLARE_TRACE_CONDITION`) that contains no name.

## Why it is bad

The event always fires, or never does, and the condition misleads its readers.

## Example

```c
TRACE_EVENT_CONDITION(slow_path,
    TP_PROTO(int ns),
    TP_ARGS(ns),
    TP_CONDITION(1), /* error: TP107 */
    TP_STRUCT__entry(__field(int, ns)),
    TP_fast_assign(__entry->ns = ns;),
    TP_printk("ns=%d", __entry->ns)
);
```

## Use instead

```c
TRACE_EVENT_CONDITION(slow_path,
    TP_PROTO(int ns),
    TP_ARGS(ns),
    TP_CONDITION(ns > 1000),
    TP_STRUCT__entry(__field(int, ns)),
    TP_fast_assign(__entry->ns = ns;),
    TP_printk("ns=%d", __entry->ns)
);
```

## Fix safety

None is offered.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracepoint.check.context import CheckContext, origin_of
from tracepoint.check.finding import Finding
from tracepoint.source.lexer import Kind


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield conditions without a name in them."""
    header = context.header
    for name, declared in [
        *((e.full_name, e) for e in header.events),
        *((t.name, t) for t in header.tracepoints),
    ]:
        condition = declared.condition  # type: ignore[attr-defined]
        if condition is None or any(t.kind is Kind.NAME for t in condition.tokens):
            continue
        place = condition.tokens[0] if condition.tokens else origin_of(declared)
        if place is not None:
            yield Finding(f"condition {condition or 'is empty and'} never changes", place, event=name)
