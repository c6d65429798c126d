"""An unsigned value is printed as signed, or a signed one as unsigned.

## What it does

Compares the sign of each integer argument with that of `%d` and `%u` (hexadecimal takes either). Off by
default: most such values never reach the range where it matters.

## Why it is bad

A `u32` of 3,000,000,000 is shown as -1294967296, an error code of -5 as 4294967291.

## Example

```c
TRACE_EVENT(bytes_left,
    TP_PROTO(u32 bytes),
    TP_ARGS(bytes),
    TP_STRUCT__entry(__field(u32, bytes)),
    TP_fast_assign(__entry->bytes = bytes;),
    TP_printk("bytes=%d", __entry->bytes) /* error: TP317 */
);
```

## Use instead

```c
TRACE_EVENT(bytes_left,
    TP_PROTO(u32 bytes),
    TP_ARGS(bytes),
    TP_STRUCT__entry(__field(u32, bytes)),
    TP_fast_assign(__entry->bytes = bytes;),
    TP_printk("bytes=%u", __entry->bytes)
);
```

## Fix safety

None is offered: the field's type may be what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracepoint.check.context import CheckContext
from tracepoint.check.expressions import expression_type
from tracepoint.check.finding import Finding
from tracepoint.check.syntax import strip_casts
from tracepoint.source.ast import Number
from tracepoint.source.cvalue import promote
from tracepoint.source.cwrite import write_expression


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield integers whose conversion has the other sign."""
    for view in context.prints:
        for conversion, argument in view.printed:
            if conversion.conversion not in "diu" or isinstance(strip_casts(argument), Number):
                continue
            kind = expression_type(argument, view.view.fields, 8)
            if kind is None or kind.integer is None or kind.integer.size < 4:
                continue
            is_signed = promote(kind.integer).is_signed
            if is_signed == (conversion.conversion in "di"):
                continue
            given, shown = ("signed", "unsigned") if is_signed else ("unsigned", "signed")
            yield Finding(
                f"{conversion.text} shows {given} {write_expression(argument)} as {shown}",
                argument,
                event=view.event_name,
            )
