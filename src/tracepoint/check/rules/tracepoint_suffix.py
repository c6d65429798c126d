"""DECLARE_TRACE has a name that ends in `_tp`, which newer kernels add themselves.

## What it does

Finds `DECLARE_TRACE` (and its variants) with a name ending in `_tp`. Since 6.16 the macro adds `_tp` itself.

## Why it is bad

In a new tree the call becomes `trace_x_tp_tp()`. In an old tree the same text means `trace_x_tp()`, so it
cannot be used in code that must build on both.

## Example

```c
DECLARE_TRACE(rq_done_tp, TP_PROTO(int n), TP_ARGS(n)); /* error: TP503 */
```

## Use instead

```c
DECLARE_TRACE(rq_done, TP_PROTO(int n), TP_ARGS(n));
```

## Fix safety

None is offered: the calls are in other files, and their name depends on the tree.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracepoint.check.context import CheckContext, origin_of
from tracepoint.check.finding import Finding


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield tracepoints whose name already has the suffix."""
    if context.facts.has_tp_suffix is False:
        return
    for point in context.header.tracepoints:
        place = origin_of(point)
        if place is not None and point.name.endswith("_tp") and "_EVENT" not in point.macro:
            yield Finding(
                f"since 6.16 {point.macro} adds _tp itself: the call is trace_{point.name}_tp()",
                place,
                event=point.name,
            )
