"""A string of the record is never assigned, so readers see what was in the buffer before.

## What it does

Finds `__string`, `__string_len` and `__vstring` fields (and their `__rel_` forms) that
`TP_fast_assign` does not mention.

## Why it is bad

`__string` only reserves space. The ring buffer is not cleared, so without `__assign_str()` the event shows
the bytes of an older record, up to the next zero byte, possibly past the end of this one.

## Example

```c
TRACE_EVENT(disk_attach,
    TP_PROTO(const char *disk, int n),
    TP_ARGS(disk, n),
    TP_STRUCT__entry(
        __string(disk, disk) /* error: TP201 */
        __field(int, n)
    ),
    TP_fast_assign(__entry->n = n;),
    TP_printk("disk=%s n=%d", __get_str(disk), __entry->n)
);
```

## Use instead

```c
TRACE_EVENT(disk_attach,
    TP_PROTO(const char *disk, int n),
    TP_ARGS(disk, n),
    TP_STRUCT__entry(
        __string(disk, disk)
        __field(int, n)
    ),
    TP_fast_assign(
        __assign_str(disk, disk);
        __entry->n = n;
    ),
    TP_printk("disk=%s n=%d", __get_str(disk), __entry->n)
);
```

## Fix safety

Unsafe: the contents of the record change. The fix adds the assignment with as many arguments as
the header's other strings, or the tree, use.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracepoint.check.context import CheckContext, origin_of
from tracepoint.check.finding import Finding
from tracepoint.check.rules.field_never_assigned import add_statement, can_claim
from tracepoint.model.field import StringField


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield the strings that nothing assigns."""
    for view in context.classes:
        for field in view.event_class.fields:
            place = origin_of(field, view.event_class)
            if not isinstance(field, StringField) or field.name in view.assigned or place is None:
                continue
            if not can_claim(view):
                continue
            shown = any(field.name in view_print.names for view_print in view.prints)
            what = "is shown but never assigned" if shown else "is never assigned"
            yield Finding(
                f"string {field.name} {what}",
                place,
                label="space is reserved for it, but nothing is copied there",
                notes=((origin_of(view.event_class), "the class whose TP_fast_assign omits it"),),
                help=(f"add {_assignment(context, field)} to TP_fast_assign",),
                fix=add_statement(context, view, _assignment(context, field), f"assign {field.name}"),
                event=view.event_name,
            )


def _assignment(context: CheckContext, field: StringField) -> str:
    if field.va_list is not None:
        return f"__assign_vstr({field.name}, {field.source}, {field.va_list});"
    stem = "__assign_rel_str" if field.is_relative else "__assign_str"
    if field.length is not None and context.facts.assign_str_arity != 1:
        return f"{stem}_len({field.name}, {field.source}, {field.length});"
    arity = context.facts.assign_str_arity or context.assign_str_arity_here or 2
    return f"{stem}({field.name});" if arity == 1 else f"{stem}({field.name}, {field.source});"
