"""A 64-bit value is stored in a narrower field.

## What it does

Finds `__entry->x = y` where the parameter `y` has a type of 64 bits on every machine (`u64`, `s64`, `loff_t`,
`unsigned long long`, ...) and the field is a narrower integer. Fields whose type has a name of its own are
skipped: `ext4_lblk_t` or `pid_t` says which values it holds, however wide the parameter is.

## Why it is bad

C silently drops the upper half: an offset of 4 GiB is recorded as 0.

## Example

```c
TRACE_EVENT(write_done,
    TP_PROTO(u64 offset),
    TP_ARGS(offset),
    TP_STRUCT__entry(__field(int, offset)),
    TP_fast_assign(__entry->offset = offset;), /* error: TP217 */
    TP_printk("offset=%d", __entry->offset)
);
```

## Use instead

```c
TRACE_EVENT(write_done,
    TP_PROTO(u64 offset),
    TP_ARGS(offset),
    TP_STRUCT__entry(__field(u64, offset)),
    TP_fast_assign(__entry->offset = offset;),
    TP_printk("offset=%llu", __entry->offset)
);
```

When the value is known to be small, a cast says so: `__entry->offset = (int)offset;`.

## Fix safety

None is offered: the print format changes with the field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tracepoint.check.context import CheckContext
from tracepoint.check.finding import Finding
from tracepoint.check.syntax import stores
from tracepoint.errors import TracepointError
from tracepoint.model.field import ScalarField

_PLAIN = re.compile(
    r"(?:(?:const|volatile|unsigned|signed|int|short|char|uint|ushort|(?:__)?[us](?:8|16|32)|u?int(?:8|16|32)_t)\s*)+"
)
_LONG = frozenset({"long", "unsigned long"})


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield stores that drop the upper half of a value."""
    for view in context.classes:
        params = {p.name: p.ctype for p in view.event_class.proto.params}
        for name, value in stores(view.assign):
            field = view.fields.get(name.text)
            ctype = params.get(value[0].text, "") if len(value) == 1 else ""
            if not ctype or not isinstance(field, ScalarField) or not _PLAIN.fullmatch(field.ctype):
                continue
            wide, narrow = _size(context, ctype), _size(context, field.ctype)
            if wide == 8 and 0 < narrow < 8:
                yield Finding(
                    f"{value[0].text} is {ctype}, field {name.text} keeps {narrow} of its 8 bytes",
                    value[0],
                    notes=((field.origin, "the field"),),
                    help=(f"make the field {ctype}, or cast the value if it is known to fit",),
                    event=view.event_name,
                )


def _size(context: CheckContext, ctype: str) -> int:
    """Return the size of an integer type that is the same in every ABI, else 0."""
    if "*" in ctype or ctype.startswith(("struct ", "union ")) or ctype in _LONG:
        return 0
    try:
        sizes = {context.sizes.of(ctype).size, context.narrow_sizes.of(ctype).size}
    except TracepointError:
        return 0
    return sizes.pop() if len(sizes) == 1 else 0
