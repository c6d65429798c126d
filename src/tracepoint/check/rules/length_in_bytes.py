"""A length in bytes is used where the number of elements is expected.

## What it does

Finds `__print_array(x, __get_dynamic_array_len(x), size)` where the elements of `x` are larger than a byte.

## Why it is bad

`__get_dynamic_array_len()` is in bytes, `__print_array()` counts elements: the output shows two, four or
eight times as many elements as there are, read from whatever follows the record.

## Example

```c
TRACE_EVENT(slots,
    TP_PROTO(const u32 *slots, int n),
    TP_ARGS(slots, n),
    TP_STRUCT__entry(__dynamic_array(u32, slots, n)),
    TP_fast_assign(memcpy(__get_dynamic_array(slots), slots, n * 4);),
    TP_printk("%s", __print_array(__get_dynamic_array(slots),
        __get_dynamic_array_len(slots), 4)) /* error: TP309 */
);
```

## Use instead

```c
TRACE_EVENT(slots,
    TP_PROTO(const u32 *slots, int n),
    TP_ARGS(slots, n),
    TP_STRUCT__entry(__dynamic_array(u32, slots, n)),
    TP_fast_assign(memcpy(__get_dynamic_array(slots), slots, n * 4);),
    TP_printk("%s", __print_array(__get_dynamic_array(slots),
        __get_dynamic_array_len(slots) / 4, 4))
);
```

## Fix safety

Unsafe: the trace text changes, to what was intended.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracepoint.check.context import CheckContext
from tracepoint.check.finding import Finding
from tracepoint.check.syntax import strip_casts
from tracepoint.diagnostics import Fix
from tracepoint.model.field import DynamicArrayField
from tracepoint.source.ast import Call
from tracepoint.source.cvalue import int_type_of
from tracepoint.source.cwrite import write_expression

_LENGTHS = frozenset({"__get_dynamic_array_len", "__get_rel_dynamic_array_len"})


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield byte lengths that are used as counts."""
    for view in context.prints:
        for call in view.calls:
            if call.name != "__print_array" or len(call.arguments) != 3:
                continue
            count = strip_casts(call.arguments[1])
            if not isinstance(count, Call) or count.name not in _LENGTHS or not count.arguments:
                continue
            field = view.view.fields.get(write_expression(count.arguments[0]))
            size = context.constant(call.arguments[2])
            if not isinstance(field, DynamicArrayField):
                continue
            element = int_type_of(field.ctype)
            size = size if size is not None else (element.size if element else None)
            if size is None or size == 1:
                continue
            yield Finding(
                f"{write_expression(count)} is a length in bytes, __print_array takes the number of elements",
                count,
                help=(f"divide it by {size}",),
                fix=_fix(context, count, size),
                event=view.event_name,
            )


def _fix(context: CheckContext, count: Call, size: int) -> Fix | None:
    if count.first is None or count.last is None:
        return None
    text = f"{write_expression(count)} / {size}"
    return context.fix("count elements", [count.first, count.last], text)
