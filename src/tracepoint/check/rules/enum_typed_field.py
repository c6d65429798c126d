"""A field has an enum type, which bpftrace cannot use for events of modules.

## What it does

Finds fields of type `enum x`. Off by default: events built into the kernel are fine.

## Why it is bad

`bpftrace` copies the type's name from `format` into C; without BTF for the module it does not know the enum
("field has incomplete type") and cannot attach to the event at all.

## Example

```c
TRACE_EVENT(chosen,
    TP_PROTO(int mode),
    TP_ARGS(mode),
    TP_STRUCT__entry(__field(enum chosen_mode, mode)), /* error: TP502 */
    TP_fast_assign(__entry->mode = mode;),
    TP_printk("mode=%d", __entry->mode)
);
```

## Use instead

```c
TRACE_EVENT(chosen,
    TP_PROTO(int mode),
    TP_ARGS(mode),
    TP_STRUCT__entry(__field(int, mode)),
    TP_fast_assign(__entry->mode = mode;),
    TP_printk("mode=%d", __entry->mode)
);
```

## Fix safety

Unsafe: `format` then shows a different type. The record stays the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tracepoint.check.context import CheckContext, origin_of
from tracepoint.check.finding import Finding
from tracepoint.diagnostics import Edit, Fix, Safety
from tracepoint.model.field import Field


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield fields of an enum type."""
    for view in context.classes:
        for field in view.event_class.fields:
            place = origin_of(field, view.event_class)
            if field.ctype.startswith("enum ") and "*" not in field.ctype and place is not None:
                yield Finding(
                    f"field {field.name} has type {field.ctype}",
                    place,
                    help=("use int or unsigned int",),
                    fix=_fix(context, field),
                    event=view.event_name,
                )


def _fix(context: CheckContext, field: Field) -> Fix | None:
    source, origin = context.header.source, field.origin
    if source is None or origin is None or origin.chain or origin.span.start < 0:
        return None
    match = re.compile(r"\benum\s+\w+").search(source.text, origin.span.start, origin.span.end)
    if match is None:
        return None
    return Fix("use int", (Edit(source.path, match.start(), match.end(), "int"),), Safety.UNSAFE)
