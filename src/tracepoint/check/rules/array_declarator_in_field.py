"""An array is declared with `__field` and brackets in the name.

## What it does

Finds `__field(type, name[length])`.

## Why it is bad

The record gets the bytes, but `format` says `field:int a[3]` with the type of one element: readers mistake
the size for that of a scalar, and one well-known importer failed on it. Since 6.1 the kernel refuses to
build it (`_test_no_array_` in include/trace/stages/stage5_get_offsets.h).

## Example

```c
TRACE_EVENT(axes,
    TP_PROTO(const int *a),
    TP_ARGS(a),
    TP_STRUCT__entry(__field(int, axis[3])), /* error: TP105 */
    TP_fast_assign(memcpy(__entry->axis, a, 12);),
    TP_printk("x=%d", __entry->axis[0])
);
```

## Use instead

```c
TRACE_EVENT(axes,
    TP_PROTO(const int *a),
    TP_ARGS(a),
    TP_STRUCT__entry(__array(int, axis, 3)),
    TP_fast_assign(memcpy(__entry->axis, a, 12);),
    TP_printk("x=%d", __entry->axis[0])
);
```

## Fix safety

Unsafe: the record stays the same, but `format` then calls the field an array.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracepoint.check.context import CheckContext, origin_of
from tracepoint.check.finding import Finding
from tracepoint.diagnostics import Edit, Fix, Safety
from tracepoint.model.field import Field, ScalarField, StructField


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield scalar fields whose name carries an array declarator."""
    for view in context.classes:
        for field in view.event_class.fields:
            place = origin_of(field, view.event_class)
            if isinstance(field, (ScalarField, StructField)) and "[" in field.name and place is not None:
                name, _, length = field.name.partition("[")
                array = f"__array({field.ctype}, {name.strip()}, {length.rstrip(']').strip()})"
                yield Finding(
                    f"{field.name} declares an array with {field.macro}",
                    place,
                    help=(f"use {array}",),
                    fix=_fix(context, field, array),
                    event=view.event_name,
                )


def _fix(context: CheckContext, field: Field, replacement: str) -> Fix | None:
    source, origin = context.header.source, field.origin
    if source is None or origin is None or origin.chain or field.name.count("[") != 1:
        return None
    span = origin.span
    if not source.text[span.start : span.end].endswith(")"):
        return None
    return Fix(
        "declare it as an array", (Edit(source.path, span.start, span.end, replacement),), Safety.UNSAFE
    )
