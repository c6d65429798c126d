"""The length of a memcpy into an array of the record is in elements instead of bytes.

## What it does

Compares the length of `memcpy` and `memmove` with the length that the array was declared with, when its
elements are wider than a byte.

## Why it is bad

Only the first part of the array is filled; the rest holds bytes of an older record.

## Example

```c
TRACE_EVENT(address,
    TP_PROTO(const u32 *address),
    TP_ARGS(address),
    TP_STRUCT__entry(__array(u32, address, 4)),
    TP_fast_assign(memcpy(__entry->address, address, 4);), /* error: TP207 */
    TP_printk("%s", __print_array(__entry->address, 4, 4))
);
```

## Use instead

```c
TRACE_EVENT(address,
    TP_PROTO(const u32 *address),
    TP_ARGS(address),
    TP_STRUCT__entry(__array(u32, address, 4)),
    TP_fast_assign(memcpy(__entry->address, address, sizeof(__entry->address));),
    TP_printk("%s", __print_array(__entry->address, 4, 4))
);
```

## Fix safety

Unsafe: the contents of the record change, to what was intended.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracepoint.check.context import CheckContext
from tracepoint.check.finding import Finding
from tracepoint.check.syntax import calls_in, copied_array, meaning
from tracepoint.errors import TracepointError
from tracepoint.model.field import ArrayField, DynamicArrayField
from tracepoint.source.lexer import Token
from tracepoint.source.macros import spell

_COPIES = frozenset({"memcpy", "memmove"})


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield copies of as many bytes as the array has elements."""
    for view in context.classes:
        for name, arguments in calls_in(view.assign):
            if name.text not in _COPIES or len(arguments) != 3 or not arguments[2]:
                continue
            field = copied_array(view.fields, arguments[0])
            if field is None or meaning(field.length.tokens) != meaning(arguments[2]):
                continue
            try:
                size = context.sizes.of(field.ctype).size
            except TracepointError:
                continue
            if size > 1:
                length = spell(arguments[2])
                yield Finding(
                    f"{name.text} copies {length} bytes, {field.name} has {length} elements of {size}",
                    (arguments[2][0], arguments[2][-1]),
                    notes=((field.origin, "the array"),),
                    fix=context.fix("copy all elements", arguments[2], _size_of(field, arguments[2])),
                    event=view.event_name,
                )


def _size_of(field: ArrayField | DynamicArrayField, length: Sequence[Token]) -> str:
    """Return the size of the whole array; `length` is how many elements the copy names."""
    if isinstance(field, ArrayField):
        return f"sizeof(__entry->{field.name})"
    text = spell(length)
    return f"{text if len(length) == 1 else f'({text})'} * sizeof({field.ctype})"
