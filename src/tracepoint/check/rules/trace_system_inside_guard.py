"""TRACE_SYSTEM is defined inside the include guard.

## What it does

Finds the definition after the guard's `#if`. Off by default: it is harmless until a C file includes several
trace headers and creates the events of one that was already included.

## Why it is bad

When the header was included before, its guard is closed: `#define CREATE_TRACE_POINTS` and a second include
then define the events under the TRACE_SYSTEM of another header.

## Example

```c
#if !defined(_TRACE_DEMO_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_DEMO_H

#undef TRACE_SYSTEM
#define TRACE_SYSTEM demo /* error: TP015 */

#include <linux/tracepoint.h>

DECLARE_TRACE(demo_tick, TP_PROTO(int n), TP_ARGS(n));

#endif
#include <trace/define_trace.h>
```

## Use instead

```c
#undef TRACE_SYSTEM
#define TRACE_SYSTEM demo

#if !defined(_TRACE_DEMO_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_DEMO_H

#include <linux/tracepoint.h>

DECLARE_TRACE(demo_tick, TP_PROTO(int n), TP_ARGS(n));

#endif
#include <trace/define_trace.h>
```

## Fix safety

None is offered.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracepoint.check.context import CheckContext
from tracepoint.check.finding import Finding


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield a first TRACE_SYSTEM that the guard hides."""
    form = context.header.form
    if not form.systems or form.guard_origin is None or form.define_trace is None:
        return
    origin = form.systems[0][1]
    if origin is not None and form.guard_origin.span.start < origin.span.start < form.define_trace.span.start:
        yield Finding(
            "TRACE_SYSTEM is defined inside the guard", origin, notes=((form.guard_origin, "the guard"),)
        )
