"""TP_printk uses a parameter of the tracepoint, which is gone when the record is printed.

## What it does

Finds names in the arguments of `TP_printk` that are parameters of `TP_PROTO` (fields are written
`__entry->x`).

## Why it is bad

The output function has the record and nothing else. It does not compile, or, where a global of that name
exists, it prints that.

## Example

```c
TRACE_EVENT(sized,
    TP_PROTO(int size),
    TP_ARGS(size),
    TP_STRUCT__entry(__field(int, size)),
    TP_fast_assign(__entry->size = size;),
    TP_printk("size=%d", size) /* error: TP319 */
);
```

## Use instead

```c
TRACE_EVENT(sized,
    TP_PROTO(int size),
    TP_ARGS(size),
    TP_STRUCT__entry(__field(int, size)),
    TP_fast_assign(__entry->size = size;),
    TP_printk("size=%d", __entry->size)
);
```

## Fix safety

Unsafe: the fix takes the field of that name, when there is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.check.finding import Finding
from tracepoint.model.field import ScalarField

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.check.context import CheckContext


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield parameters that are printed."""
    for view in context.prints:
        params = view.view.event_class.proto.names
        for name in view.free_names:
            if name.name not in params or name.first is None:
                continue
            field = view.view.fields.get(name.name)
            is_plain = isinstance(field, ScalarField)
            yield Finding(
                f"{name.name} is a parameter; TP_printk has only the record",
                name,
                help=(f"write __entry->{name.name}",) if is_plain else ("record it in a field",),
                fix=context.fix("take the field", [name.first], f"__entry->{name.name}")
                if is_plain
                else None,
                event=view.event_name,
            )
