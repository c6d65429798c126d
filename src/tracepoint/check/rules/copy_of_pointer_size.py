"""A copy into the record uses the size of a pointer instead of the size of what it points to.

## What it does

Finds `memcpy`, `memmove`, `strscpy` and `strncpy` into the record whose length is `sizeof(p)`, where `p` is
a parameter that is a pointer or an array.

## Why it is bad

`sizeof(p)` is 8 (4 on 32-bit machines), whatever `p` points to: the field is filled only in part, and the
rest holds bytes of an older record. When the field is smaller, the copy overwrites what comes after it.

## Example

```c
TRACE_EVENT(address,
    TP_PROTO(const u8 *addr),
    TP_ARGS(addr),
    TP_STRUCT__entry(__array(u8, addr, 6)),
    TP_fast_assign(memcpy(__entry->addr, addr, sizeof(addr));), /* error: TP214 */
    TP_printk("%pM", __entry->addr)
);
```

## Use instead

```c
TRACE_EVENT(address,
    TP_PROTO(const u8 *addr),
    TP_ARGS(addr),
    TP_STRUCT__entry(__array(u8, addr, 6)),
    TP_fast_assign(memcpy(__entry->addr, addr, sizeof(__entry->addr));),
    TP_printk("%pM", __entry->addr)
);
```

## Fix safety

Unsafe: the contents of the record change. The fix uses the size of the field, if that is an array.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracepoint.check.context import CheckContext
from tracepoint.check.finding import Finding
from tracepoint.check.syntax import RECORD_NAMES, calls_in, meaning, pointer_parameters, sizeof_operand
from tracepoint.model.field import ArrayField
from tracepoint.source.macros import spell

_COPIES = frozenset({"memcpy", "memmove", "strscpy", "strncpy", "strlcpy"})


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield copies whose length is the size of a pointer."""
    for view in context.classes:
        pointers = pointer_parameters(view.event_class.proto.params)
        for name, arguments in calls_in(view.assign) if pointers else ():
            if name.text not in _COPIES or len(arguments) != 3:
                continue
            target, source, length = arguments
            operand = sizeof_operand(length)
            # memcpy(__entry->p, &p, sizeof(p)) records the pointer itself.
            if len(operand) != 1 or operand[0] not in pointers or "&" in meaning(source)[:1]:
                continue
            is_array = len(target) == 3 and target[0].text in RECORD_NAMES
            field = view.fields.get(target[2].text) if is_array else None
            size = f"sizeof({spell(target)})" if isinstance(field, ArrayField) else f"sizeof(*{operand[0]})"
            fix = context.fix(f"use {size}", length, size) if isinstance(field, ArrayField) else None
            yield Finding(
                f"{name.text} copies sizeof({operand[0]}) bytes: {operand[0]} is a pointer",
                (length[0], length[-1]),
                label="the size of the pointer, not of what it points to",
                help=(f"use {size}",),
                fix=fix,
                event=view.event_name,
            )
