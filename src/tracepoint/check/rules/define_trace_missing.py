"""The header declares events but does not include `<trace/define_trace.h>`.

## What it does

Finds trace headers with `TRACE_SYSTEM` and a guard that lets them be read again, but without that include.

## Why it is bad

`CREATE_TRACE_POINTS` then has no effect: the tracepoints are declared, nothing is defined, and the kernel
does not link.

## Example

```c
#undef TRACE_SYSTEM /* error: TP012 */
#define TRACE_SYSTEM demo

#if !defined(_TRACE_DEMO_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_DEMO_H

#include <linux/tracepoint.h>

DECLARE_TRACE(demo_tick, TP_PROTO(int n), TP_ARGS(n));

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

/* This part must be outside the guard. */
#include <trace/define_trace.h>
```

## Fix safety

Safe: the include is added at the end, outside the guard.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracepoint.check.context import CheckContext
from tracepoint.check.finding import Finding
from tracepoint.diagnostics import Edit, Fix, Safety


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield a header that never reaches define_trace.h."""
    header = context.header
    form = header.form
    if form.define_trace is not None or not form.systems or not form.has_multi_read or not context.declares:
        return
    source = header.source
    fix = None
    if source is not None:
        end = len(source.text)
        break_ = "" if source.text.endswith("\n") else "\n"
        text = f"{break_}\n/* This part must be outside the guard. */\n#include <trace/define_trace.h>\n"
        fix = Fix("include it at the end", (Edit(source.path, end, end, text),), Safety.SAFE)
    yield Finding("<trace/define_trace.h> is not included", context.head, fix=fix)
