"""TRACE_SYSTEM cannot be part of a C name, and TRACE_SYSTEM_VAR is missing.

## What it does

Finds systems such as `my-driver` in headers that do not define `TRACE_SYSTEM_VAR`.

## Why it is bad

The system's name becomes part of a variable's name (include/trace/stages/init.h) as soon as an event or
enum is defined; with a `-` in it that does not compile.

## Example

```c
#undef TRACE_SYSTEM
#define TRACE_SYSTEM my-demo /* error: TP016 */

#if !defined(_TRACE_DEMO_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_DEMO_H

#include <linux/tracepoint.h>

DECLARE_TRACE(demo_tick, TP_PROTO(int n), TP_ARGS(n));

#endif
#define TRACE_INCLUDE_FILE demo
#include <trace/define_trace.h>
```

## Use instead

```c
#undef TRACE_SYSTEM
#define TRACE_SYSTEM my-demo
#undef TRACE_SYSTEM_VAR
#define TRACE_SYSTEM_VAR my_demo

#if !defined(_TRACE_DEMO_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_DEMO_H

#include <linux/tracepoint.h>

DECLARE_TRACE(demo_tick, TP_PROTO(int n), TP_ARGS(n));

#endif
#define TRACE_INCLUDE_FILE demo
#include <trace/define_trace.h>
```

## Fix safety

Safe: the fix adds `TRACE_SYSTEM_VAR` below it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tracepoint.check.context import CheckContext
from tracepoint.check.finding import Finding
from tracepoint.diagnostics import Edit, Fix, Safety


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield systems that cannot be part of a C name."""
    form = context.header.form
    if form.system_var:
        return
    for system, origin in form.systems:
        if origin is None or not system or re.fullmatch(r"\w+", system):
            continue
        variable = re.sub(r"\W+", "_", system).strip("_") or "trace_system"
        source = context.header.source
        fix = None
        if source is not None and origin.span.end >= 0:
            text = f"\n#undef TRACE_SYSTEM_VAR\n#define TRACE_SYSTEM_VAR {variable}"
            end = origin.span.end
            fix = Fix("name the variable", (Edit(source.path, end, end, text),), Safety.SAFE)
        yield Finding(
            f"TRACE_SYSTEM {system} cannot be part of a C name, TRACE_SYSTEM_VAR is missing", origin, fix=fix
        )
