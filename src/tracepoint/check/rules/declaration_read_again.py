"""An enum, struct or function is defined in the part of the header that is read many times.

## What it does

Finds definitions of `enum`, `struct`, `union`, `typedef` of those, and `static inline` functions inside the
trace header's guard, unless they have a guard of their own.

## Why it is bad

`define_trace.h` reads the header again for each stage of its macros: the second time, the definition is a
redefinition, and the C file with `CREATE_TRACE_POINTS` does not compile.

## Example

```c
#undef TRACE_SYSTEM
#define TRACE_SYSTEM demo

#if !defined(_TRACE_DEMO_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_DEMO_H

#include <linux/tracepoint.h>

enum demo_kind { DEMO_A, DEMO_B }; /* error: TP018 */

DECLARE_TRACE(demo_tick, TP_PROTO(int n), TP_ARGS(n));

#endif
#include <trace/define_trace.h>
```

## Use instead

Move it to another header, or give it its own guard.

```c
#undef TRACE_SYSTEM
#define TRACE_SYSTEM demo

#if !defined(_TRACE_DEMO_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_DEMO_H

#include <linux/tracepoint.h>

#ifndef _TRACE_DEMO_ONCE
#define _TRACE_DEMO_ONCE
enum demo_kind { DEMO_A, DEMO_B };
#endif

DECLARE_TRACE(demo_tick, TP_PROTO(int n), TP_ARGS(n));

#endif
#include <trace/define_trace.h>
```

## Fix safety

None is offered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tracepoint.check.context import CheckContext
from tracepoint.check.finding import Finding

_DEFINITION = re.compile(
    r"^(?P<what>(?:typedef\s+)?(?:enum|struct|union)\s*\w*\s*\{|static\s+(?:__always_)?(?:inline|__inline)\b[^;{]*\{)",
    re.MULTILINE,
)
#: Conditions that do not hold, or not again, when the header is read for its stages.
_ONCE = {
    "ifndef",
    "CREATE_TRACE_POINTS",
    "TRACE_HEADER_MULTI_READ",
    "CONFIG_TRACEPOINTS",
    "CONFIG_EVENT_TRACING",
}
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(if|ifdef|ifndef|endif)\b(.*)", re.MULTILINE)
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield definitions that are read more than once."""
    source = context.header.source
    form = context.header.form
    if source is None or form.define_trace is None or not form.has_multi_read:
        return
    if not _DEFINITION.search(source.text):
        return
    text = _COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), source.text)
    for match in _DEFINITION.finditer(text):
        if match.start() < form.define_trace.span.start and not _is_read_once(
            text, match.start(), form.guard
        ):
            what = " ".join(match["what"].split("{")[0].split())
            yield Finding(
                f"{what} is defined in the part of the header that is read again",
                source.span(match.start(), match.end("what")),
                help=("move it to another header, or give it a guard of its own",),
            )


def _is_read_once(text: str, at: int, guard: str) -> bool:
    """Return whether the place lies outside the trace header's guard, or inside a guard of its own."""
    stack: list[str] = []
    for match in _DIRECTIVE.finditer(text, 0, at):
        if match[1] == "endif":
            if stack:
                stack.pop()
        else:
            stack.append(f"{match[1]} {match[2]}")
    named = [set(re.findall(r"\w+", condition)) for condition in stack]
    if guard and not any({guard, "TRACE_HEADER_MULTI_READ"} <= names for names in named):
        return True
    # CREATE_TRACE_POINTS is undefined before the header is read again.
    return any(
        (guard in names and "TRACE_HEADER_MULTI_READ" not in names)
        or (guard not in names and (names & _ONCE or "!" in condition))
        for names, condition in zip(named, stack, strict=True)
    )
