"""The include guard does not let the header be read again.

## What it does

Finds an include guard without `|| defined(TRACE_HEADER_MULTI_READ)` in a header that includes
`<trace/define_trace.h>`.

## Why it is bad

`define_trace.h` reads the header again, once for each stage of its macros, with `TRACE_HEADER_MULTI_READ`
defined. With a plain guard the second reading is empty: the tracepoints exist but the events do not, and the
compiler says nothing, or says that `__tracepoint_x` is not defined.

## Example

```c
#undef TRACE_SYSTEM
#define TRACE_SYSTEM demo

#ifndef _TRACE_DEMO_H /* error: TP011 */
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

Safe: the fix adds the missing condition.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tracepoint.check.context import CheckContext
from tracepoint.check.finding import Finding
from tracepoint.diagnostics import Edit, Fix, Safety


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield a guard that stops the second reading."""
    form = context.header.form
    if not form.guard or form.has_multi_read or form.guard_origin is None or form.define_trace is None:
        return
    span = form.guard_origin.span
    source = context.header.source
    if source is not None and re.search(r"defined\s*\(?\s*TRACE_HEADER_MULTI_READ", source.text):
        return  # the trace part has a guard of its own
    fix = None
    if source is not None and span.start >= 0:
        text = f"#if !defined({form.guard}) || defined(TRACE_HEADER_MULTI_READ)"
        fix = Fix("let it be read again", (Edit(source.path, span.start, span.end, text),), Safety.SAFE)
    yield Finding("the include guard lacks || defined(TRACE_HEADER_MULTI_READ)", form.guard_origin, fix=fix)
