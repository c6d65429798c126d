r"""The print format has a newline, or another control character, in its middle.

## What it does

Finds line breaks and control characters other than a tab inside the format string of `TP_printk`.

## Why it is bad

A trace is read line by line: by `grep`, by scripts, by every tool. The part after the newline has no
event name and no time stamp. In tracefs the raw byte also splits the `print fmt:` line of the `format` file.

## Example

```c
TRACE_EVENT(two_lines,
    TP_PROTO(int a, int b),
    TP_ARGS(a, b),
    TP_STRUCT__entry(__field(int, a) __field(int, b)),
    TP_fast_assign(__entry->a = a; __entry->b = b;),
    TP_printk("a=%d\nb=%d", __entry->a, __entry->b) /* error: TP306 */
);
```

## Use instead

```c
TRACE_EVENT(one_line,
    TP_PROTO(int a, int b),
    TP_ARGS(a, b),
    TP_STRUCT__entry(__field(int, a) __field(int, b)),
    TP_fast_assign(__entry->a = a; __entry->b = b;),
    TP_printk("a=%d b=%d", __entry->a, __entry->b)
);
```

## Fix safety

None is offered.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracepoint.check.context import CheckContext
from tracepoint.check.finding import Finding


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield formats with control characters inside."""
    for view in context.prints:
        text = view.format
        if text is None:
            continue
        inner = text.value.removesuffix("\n")
        if any(ord(c) < 32 and c != "\t" for c in inner):
            what = "a newline" if "\n" in inner else "a control character"
            yield Finding(f"the print format has {what} in its middle", text, event=view.event_name)
