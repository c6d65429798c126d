"""TP_printk uses a parameter of the tracepoint, or a variable of the output function, not the record.

## What it does

Finds names in the arguments of `TP_printk` that are parameters of `TP_PROTO` (fields are written
`__entry->x`), and the names `ret` and `flags`.

## Why it is bad

The output function has the record and nothing else, so usually it does not compile. But the function has
variables of its own: `ret` is there, always `TRACE_TYPE_HANDLED`, and so is `flags`, the flags of the
output. Those compile and always print a wrong value (include/trace/stages/stage3_trace_output.h and
trace_raw_output_x() in include/trace/trace_events.h).

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

Unsafe: the fix uses the field of that name, if there is one.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracepoint.check.context import CheckContext
from tracepoint.check.finding import Finding
from tracepoint.model.field import ScalarField

_OUTPUT_LOCALS = frozenset({"ret", "flags", "trace_event"})


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield parameters that are printed."""
    for view in context.prints:
        params = view.view.event_class.proto.names
        for name in view.free_names:
            is_local = name.name in _OUTPUT_LOCALS
            if name.first is None or not (is_local or name.name in params):
                continue
            field = view.view.fields.get(name.name)
            is_plain = isinstance(field, ScalarField)
            yield Finding(
                f"{name.name} here is a variable of the kernel's output function, not of the event"
                if is_local
                else f"{name.name} is a parameter; TP_printk has only the record",
                name,
                help=(f"write __entry->{name.name}",) if is_plain else ("record it in a field",),
                fix=context.fix(f"print the recorded {name.name}", [name.first], f"__entry->{name.name}")
                if is_plain
                else None,
                event=view.event_name,
            )
