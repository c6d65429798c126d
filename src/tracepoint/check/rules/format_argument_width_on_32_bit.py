"""A conversion fits its value on 64-bit kernels, but not on 32-bit ones.

## What it does

Finds `u64`, `loff_t`, `sector_t` and the like for `%lx`, and `long` values for `%llx`. Headers
under `arch/` are skipped when that architecture has no 32-bit variant.

## Why it is bad

On a 32-bit kernel `%lx` takes half of a `u64`, and every conversion after it is shifted by one word: the
line shows wrong values throughout, and a `%s` later in it follows a number as an address.

## Example

```c
TRACE_EVENT(offset,
    TP_PROTO(loff_t offset),
    TP_ARGS(offset),
    TP_STRUCT__entry(__field(loff_t, offset)),
    TP_fast_assign(__entry->offset = offset;),
    TP_printk("offset=%ld", __entry->offset) /* error: TP316 */
);
```

## Use instead

```c
TRACE_EVENT(offset,
    TP_PROTO(loff_t offset),
    TP_ARGS(offset),
    TP_STRUCT__entry(__field(loff_t, offset)),
    TP_fast_assign(__entry->offset = offset;),
    TP_printk("offset=%lld", __entry->offset)
);
```

## Fix safety

None is offered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tracepoint.check.context import CheckContext
from tracepoint.check.expressions import expression_type
from tracepoint.check.finding import Finding
from tracepoint.check.rules.format_argument_type import INTEGERS, width_problem
from tracepoint.source.cwrite import write_expression

_ONLY_64_BIT = re.compile(r"(?:^|/)arch/(?:arm64|s390|alpha|ia64|loongarch)/")


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield arguments whose width is right on 64-bit kernels only."""
    if _ONLY_64_BIT.search(context.header.path):
        return
    for view in context.prints:
        for conversion, argument in view.printed:
            if conversion.conversion not in INTEGERS:
                continue
            wide = expression_type(argument, view.view.fields, 8)
            narrow = expression_type(argument, view.view.fields, 4)
            if wide is None or narrow is None or width_problem(conversion, wide, 8):
                continue
            problem = width_problem(conversion, narrow, 4)
            if problem:
                yield Finding(
                    f"on 32-bit {conversion.text} {problem}: {write_expression(argument)}",
                    argument,
                    event=view.event_name,
                )
