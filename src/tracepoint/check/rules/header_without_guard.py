"""The header has no include guard.

## What it does

Finds trace headers without `#if !defined(X) || defined(TRACE_HEADER_MULTI_READ)`, and those that never
define `X`.

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

Safe where there is a guard: the header then tests the macro that it defines or, if it defines none,
defines the one that it tests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tracepoint.check.context import CheckContext
from tracepoint.check.finding import Finding
from tracepoint.diagnostics import Edit, Fix, Safety
from tracepoint.source.text import SourceFile

_CONDITION = re.compile(
    r"^[ \t]*#[ \t]*if[ \t]+!\s*defined\s*\(?\s*(\w+)\s*\)?\s*\|\|(?:\s|\\\n)*"
    r"defined\s*\(?\s*TRACE_HEADER_MULTI_READ\b\)?",
    re.MULTILINE,
)


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield a header without a guard."""
    form = context.header.form
    source = context.header.source
    if source is None or form.guard or not form.systems or not context.declares:
        return
    match = _CONDITION.search(source.text)
    if match is None:
        yield Finding(
            "the header has no include guard",
            context.head,
            help=("#if !defined(_TRACE_X_H) || defined(TRACE_HEADER_MULTI_READ)",),
        )
    elif not re.search(rf"^[ \t]*#[ \t]*define[ \t]+{match[1]}\b", source.text, re.MULTILINE):
        fix = _fix(source, match)
        yield Finding(
            f"the include guard {match[1]} is never defined",
            source.span(match.start(), match.end()),
            fix=fix,
        )


_DEFINED = re.compile(
    r"(?:\s|/\*(?:[^*]|\*(?!/))*\*/|//[^\n]*\n)*#[ \t]*define[ \t]+(\w+)[ \t]*(?:\n|/[/*]|\Z)"
)


def _fix(source: SourceFile, match: re.Match[str]) -> Fix:
    """Test the macro that the next line defines or, if it defines none, define the one that is tested."""
    line_end = source.text.find("\n", match.start(1)) + 1 or len(source.text)
    defined = _DEFINED.match(source.text, match.end())
    if defined is not None:
        edit = Edit(source.path, match.start(1), match.end(1), defined[1])
        return Fix(f"test {defined[1]}, which the header defines", (edit,), Safety.SAFE)
    edit = Edit(source.path, line_end, line_end, f"#define {match[1]}\n")
    return Fix("define it", (edit,), Safety.SAFE)
