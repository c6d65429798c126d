"""`define_trace.h` will look for a header of another name, or in another place.

## What it does

`define_trace.h` includes `TRACE_SYSTEM.h` again, from `include/trace/events`. Finds headers with another name
that lack `TRACE_INCLUDE_FILE`, and headers in another directory that define neither that nor
`TRACE_INCLUDE_PATH` (some define only one: the C file that creates the events defines the other).

## Why it is bad

The header does not compile ("No such file or directory"), or another header is read in its place.

## Example

```c
#undef TRACE_SYSTEM
#define TRACE_SYSTEM demo

#if !defined(_TRACE_DEMO_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_DEMO_H

#include <linux/tracepoint.h>

DECLARE_TRACE(demo_tick, TP_PROTO(int n), TP_ARGS(n));

#endif
/* Saved as drivers/demo/demo_trace.h, the next line needs both macros. */
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
#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH ../../drivers/demo
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE demo_trace
#include <trace/define_trace.h>
```

## Fix safety

Safe: the fix adds the macros before the include. For the path it takes `.`, which needs
`CFLAGS_file.o := -I$(src)` in the Makefile.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from tracepoint.check.finding import Finding
from tracepoint.diagnostics import Edit, Fix, Safety

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.check.context import CheckContext

_HOME = ("trace", "events")


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield headers that define_trace.h does not find."""
    form = context.header.form
    path = PurePosixPath(context.header.path)
    if form.define_trace is None or not form.systems or path.suffix != ".h":
        return
    missing = []
    if not form.include_file and path.stem != form.systems[-1][0]:
        missing.append(
            ("TRACE_INCLUDE_FILE", path.stem, f"the file is {path.name}, the system {form.systems[-1][0]}")
        )
    if (
        not form.include_path
        and not form.include_file
        and path.parent.parts
        and path.parent.parts[-2:] != _HOME
    ):
        missing.append(
            ("TRACE_INCLUDE_PATH", ".", f"the file is not in include/trace/events but in {path.parent}")
        )
    source = context.header.source
    for name, value, why in missing:
        fix = None
        start = form.define_trace.span.start
        if source is not None and start >= 0:
            text = f"#undef {name}\n#define {name} {value}\n"
            fix = Fix(f"define {name}", (Edit(source.path, start, start, text),), Safety.SAFE)
        yield Finding(f"{name} is missing: {why}", form.define_trace, fix=fix)
