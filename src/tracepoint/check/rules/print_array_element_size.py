"""`__print_array` has an element size that it cannot print.

## What it does

Evaluates the third argument of `__print_array` and of `__print_dynamic_array`.

## Why it is bad

Elements can be 1, 2, 4 or 8 bytes. Anything else stops the build (`BUILD_BUG_ON` in
include/trace/stages/stage3_trace_output.h), with a message that names neither the event nor the argument. Any
other size than that of the field's elements prints wrong numbers.

## Example

```c
TRACE_EVENT(rgb,
    TP_PROTO(const u8 *rgb),
    TP_ARGS(rgb),
    TP_STRUCT__entry(__array(u8, rgb, 6)),
    TP_fast_assign(memcpy(__entry->rgb, rgb, 6);),
    TP_printk("%s", __print_array(__entry->rgb, 2, 3)) /* error: TP310 */
);
```

## Use instead

```c
TRACE_EVENT(rgb,
    TP_PROTO(const u8 *rgb),
    TP_ARGS(rgb),
    TP_STRUCT__entry(__array(u8, rgb, 6)),
    TP_fast_assign(memcpy(__entry->rgb, rgb, 6);),
    TP_printk("%s", __print_array(__entry->rgb, 6, 1))
);
```

## Fix safety

None is offered.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracepoint.check.context import CheckContext
from tracepoint.check.finding import Finding
from tracepoint.check.syntax import entry_field, helper_field
from tracepoint.model.field import ArrayField, DynamicArrayField
from tracepoint.source.ast import Call, Name
from tracepoint.source.cvalue import int_type_of

_SIZE_AT = {"__print_array": 2, "__print_dynamic_array": 1}


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield element sizes that are impossible, or that are not those of the field."""
    for view in context.prints:
        for call in view.calls:
            at = _SIZE_AT.get(call.name, 99)
            if len(call.arguments) <= at:
                continue
            size = context.constant(call.arguments[at])
            if size is None:
                continue
            if size not in {1, 2, 4, 8}:
                yield Finding(
                    f"{call.name} prints elements of 1, 2, 4 or 8 bytes, not {size}",
                    call.arguments[at],
                    event=view.event_name,
                )
                continue
            field = view.view.fields.get(_array_name(call))
            element = int_type_of(field.ctype) if isinstance(field, (ArrayField, DynamicArrayField)) else None
            if element is not None and element.size != size and field is not None:
                yield Finding(
                    f"{field.name} has elements of {element.size} bytes, printed as of {size}",
                    call.arguments[at],
                    notes=((field.origin, "the field"),),
                    event=view.event_name,
                )


def _array_name(call: Call) -> str:
    first = call.arguments[0]
    if call.name == "__print_dynamic_array" and isinstance(first, Name):
        return first.name
    return entry_field(first) or helper_field(first)
