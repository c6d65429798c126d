"""The print format has no arguments, which no kernel can compile.

## What it does

Finds `TP_printk("text")` with nothing after the text.

## Why it is bad

The kernel's `TP_printk(fmt, args...)` writes a comma after the text whether or not arguments follow
(`include/trace/stages/stage3_trace_output.h`), so the call ends in `, )`. The compiler's message points
into the kernel's headers, not to the declaration.

## Example

```c
TRACE_EVENT(woken,
    TP_PROTO(int cpu),
    TP_ARGS(cpu),
    TP_STRUCT__entry(__field(int, cpu)),
    TP_fast_assign(__entry->cpu = cpu;),
    TP_printk("woken") /* error: TP322 */
);
```

## Use instead

Show the fields; if there is nothing to show, print the text as an argument.

```c
TRACE_EVENT(woken,
    TP_PROTO(int cpu),
    TP_ARGS(cpu),
    TP_STRUCT__entry(__field(int, cpu)),
    TP_fast_assign(__entry->cpu = cpu;),
    TP_printk("woken cpu=%d", __entry->cpu)
);
```

## Fix safety

None is offered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tracepoint.check.context import CheckContext
from tracepoint.check.finding import Finding

_BEFORE = re.compile(r"\bTP_printk\s*\(\s*\Z")


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield print formats that consist of a text alone."""
    for view in context.prints:
        # A text with conversions lacks arguments, which another rule reports.
        text = view.format
        if text is None or len(view.nodes) != 1 or view.conversions or text.first is None:
            continue
        # A bare text instead of TP_printk is what the macro expands to, without the comma.
        if _BEFORE.search(text.first.file.text, 0, text.first.start):
            yield Finding(
                "TP_printk has a text and no arguments",
                text,
                help=('show a field, or write TP_printk("%s", "text")',),
                event=view.event_name,
            )
