"""`__print_hex` gets an array whose elements are not bytes.

## What it does

Finds `__print_hex` and `__print_hex_str` of an array field whose elements are wider than a byte, without a
cast.

## Why it is bad

The helper takes `const unsigned char *`: the kernel does not build ("incompatible pointer types"). With a
cast it prints the bytes in the machine's byte order.

## Example

```c
TRACE_EVENT(trio,
    TP_PROTO(const u16 *trio),
    TP_ARGS(trio),
    TP_STRUCT__entry(__array(u16, trio, 3)),
    TP_fast_assign(memcpy(__entry->trio, trio, 6);),
    TP_printk("%s", __print_hex(__entry->trio, 6)) /* error: TP318 */
);
```

## Use instead

```c
TRACE_EVENT(trio,
    TP_PROTO(const u16 *trio),
    TP_ARGS(trio),
    TP_STRUCT__entry(__array(u16, trio, 3)),
    TP_fast_assign(memcpy(__entry->trio, trio, 6);),
    TP_printk("%s", __print_array(__entry->trio, 3, 2))
);
```

## Fix safety

None is offered.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracepoint.check.context import CheckContext
from tracepoint.check.finding import Finding
from tracepoint.check.syntax import entry_field
from tracepoint.model.field import ArrayField
from tracepoint.source.cvalue import int_type_of


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield arrays of wide elements that are printed as bytes."""
    for view in context.prints:
        for call in view.calls:
            if call.name not in {"__print_hex", "__print_hex_str"} or not call.arguments:
                continue
            field = view.view.fields.get(entry_field(call.arguments[0]))
            element = int_type_of(field.ctype) if isinstance(field, ArrayField) else None
            if element is not None and element.size > 1 and field is not None:
                yield Finding(
                    f"{call.name} takes bytes, {field.name} has elements of {element.size}",
                    call.arguments[0],
                    notes=((field.origin, "the field"),),
                    help=(f"__print_array(__entry->{field.name}, count, {element.size})",),
                    event=view.event_name,
                )
