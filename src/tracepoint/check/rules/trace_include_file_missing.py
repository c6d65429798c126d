"""`define_trace.h` looks for a header with another name, or in another place.

## What it does

`define_trace.h` includes `TRACE_SYSTEM.h` again, from `include/trace/events`. Finds headers with another name
that lack `TRACE_INCLUDE_FILE` or name another file in it, and headers in another directory for which
`TRACE_INCLUDE_PATH` is not defined: neither by the header, nor by the C file that creates the events, nor by
its Makefile with `-D`.

## Why it is bad

The header does not compile ("No such file or directory"), or another header is read instead.

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

Safe: the fix adds the macros before the include. It sets the path to `.`, which needs
`CFLAGS_file.o := -I$(src)` in the Makefile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from tracepoint.check.context import CheckContext
from tracepoint.check.finding import Finding
from tracepoint.diagnostics import Edit, Fix, Safety
from tracepoint.model.origin import Origin

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
    is_away = bool(path.parent.parts) and path.parent.parts[-2:] != _HOME
    if is_away and not form.include_path and not _is_defined_outside(context, "TRACE_INCLUDE_PATH"):
        missing.append(
            ("TRACE_INCLUDE_PATH", ".", f"the file is not in include/trace/events but in {path.parent}")
        )
    if form.include_file and PurePosixPath(form.include_file).name != path.stem:
        yield Finding(
            f"TRACE_INCLUDE_FILE is {form.include_file}, the file is {path.name}",
            form.define_trace,
            help=(f"#define TRACE_INCLUDE_FILE {path.stem}",),
        )
    fix = _fix(context, form.define_trace, {name: value for name, value, _ in missing})
    for name, _, why in missing:
        yield Finding(f"{name} is missing: {why}", form.define_trace, fix=fix)


def _fix(context: CheckContext, place: Origin, missing: Mapping[str, str]) -> Fix | None:
    """Return the one fix that defines all of the macros before the include."""
    source = context.header.source
    start = place.span.start
    if source is None or start < 0:
        return None
    text = "".join(f"#undef {name}\n#define {name} {value}\n" for name, value in missing.items())
    return Fix(f"define {' and '.join(missing)}", (Edit(source.path, start, start, text),), Safety.SAFE)


def _is_defined_outside(context: CheckContext, name: str) -> bool:
    """Return whether the Makefile, the C file that creates the events, or one of its includes defines it."""
    return name in context.header.form.built_with or context.macro(name) is not None
