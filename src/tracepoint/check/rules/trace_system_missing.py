"""The header does not define TRACE_SYSTEM.

## What it does

Finds headers that declare events and include `<trace/define_trace.h>` but never define `TRACE_SYSTEM`.

## Why it is bad

The events end up in whatever system a previously included header left defined, or the kernel does not
build.

## Example

```c
#if !defined(_TRACE_DEMO_H) || defined(TRACE_HEADER_MULTI_READ) /* error: TP014 */
#define _TRACE_DEMO_H

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

None is offered: the name is the author's choice.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracepoint.check.context import CheckContext
from tracepoint.check.finding import Finding


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield a header without a system."""
    form = context.header.form
    if form.define_trace is not None and not form.systems and context.declares:
        yield Finding(
            "TRACE_SYSTEM is not defined", context.head, help=("#undef TRACE_SYSTEM, then #define it",)
        )
