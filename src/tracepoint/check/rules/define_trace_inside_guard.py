"""`<trace/define_trace.h>` is included inside the include guard.

## What it does

Finds that include between the guard's `#if` and its `#endif`.

## Why it is bad

A C file that includes the header first without and then with `CREATE_TRACE_POINTS` finds the guard closed
the second time: nothing is defined, and the kernel does not link. It works only while the C file that creates
the events includes the header once.

## Example

```c
#undef TRACE_SYSTEM
#define TRACE_SYSTEM demo

#if !defined(_TRACE_DEMO_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_DEMO_H

#include <linux/tracepoint.h>

DECLARE_TRACE(demo_tick, TP_PROTO(int n), TP_ARGS(n));

#include <trace/define_trace.h> /* error: TP013 */
#endif
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
    """Yield an include that the guard hides."""
    form = context.header.form
    if form.define_trace is not None and form.is_define_trace_guarded:
        yield Finding(
            "<trace/define_trace.h> is included inside the guard",
            form.define_trace,
            notes=((form.guard_origin, "the guard"),),
        )
