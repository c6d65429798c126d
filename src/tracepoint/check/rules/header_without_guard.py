"""The header has no include guard.

## What it does

Finds trace headers without `#if !defined(X) || defined(TRACE_HEADER_MULTI_READ)` around a `#define X`.

## Why it is bad

A C file that includes the header twice, directly or through others, gets every tracepoint twice and does not
compile.

## Example

```c
#undef TRACE_SYSTEM /* error: TP010 */
#define TRACE_SYSTEM demo

#include <linux/tracepoint.h>

DECLARE_TRACE(demo_tick, TP_PROTO(int n), TP_ARGS(n));

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

#endif /* _TRACE_DEMO_H */

#include <trace/define_trace.h>
```

## Fix safety

None is offered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.check.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.check.context import CheckContext


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield a header without a guard."""
    form = context.header.form
    if context.is_whole_header and not form.guard and form.systems and context.declares:
        yield Finding(
            "the header has no include guard",
            context.head,
            help=("#if !defined(_TRACE_X_H) || defined(TRACE_HEADER_MULTI_READ)",),
        )
