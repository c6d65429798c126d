"""The order of the fields leaves unused bytes in every record.

## What it does

Lays out the record and compares it with the same fields in order of alignment. Reports records that would be
at least eight bytes smaller.

## Why it is bad

The bytes are written into the ring buffer with every event: less history fits, and copying takes longer.
They hold what was there before, so old data leaks to every reader of the trace.

## Example

```c
TRACE_EVENT(loose,
    TP_PROTO(u64 a, u64 b, u8 x, u8 y),
    TP_ARGS(a, b, x, y),
    TP_STRUCT__entry(
        __field(u8, x)
        __field(u64, a) /* error: TP204 */
        __field(u8, y)
        __field(u64, b)
    ),
    TP_fast_assign(__entry->x = x; __entry->a = a; __entry->y = y; __entry->b = b;),
    TP_printk("%u %llu %u %llu", __entry->x, __entry->a, __entry->y, __entry->b)
);
```

## Use instead

```c
TRACE_EVENT(tight,
    TP_PROTO(u64 a, u64 b, u8 x, u8 y),
    TP_ARGS(a, b, x, y),
    TP_STRUCT__entry(
        __field(u64, a)
        __field(u64, b)
        __field(u8, x)
        __field(u8, y)
    ),
    TP_fast_assign(__entry->x = x; __entry->a = a; __entry->y = y; __entry->b = b;),
    TP_printk("%u %llu %u %llu", __entry->x, __entry->a, __entry->y, __entry->b)
);
```

## Fix safety

Unsafe: offsets change. Readers that take them from `format` are unaffected; those with hard-coded offsets
break.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracepoint.check.context import CheckContext, origin_of
from tracepoint.check.finding import Finding
from tracepoint.check.members import RecordLayout
from tracepoint.check.record_layout import best_order, is_bound, lay_out
from tracepoint.diagnostics import Edit, Fix, Safety
from tracepoint.model.field import Field

_WORTH_BYTES = 8


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield records that would be smaller in another order."""
    for view in context.classes:
        if not view.is_recorded or len(view.event_class.fields) < 3:
            continue
        layout = lay_out(context, view)
        if layout is None or layout.hole_bytes < _WORTH_BYTES or is_bound(context, view):
            continue
        best = best_order(layout)
        saved = layout.size_bytes - best.size_bytes
        first = max(layout.members, key=lambda m: m.hole_before)
        place = origin_of(first.field, view.event_class)
        if saved < _WORTH_BYTES or place is None:
            continue
        yield Finding(
            f"holes in the record: {layout.size_bytes} bytes, {best.size_bytes} in another order",
            place,
            label=f"{first.hole_before} unused bytes before it",
            help=("better order: " + ", ".join(m.field.name for m in best.members),),
            fix=_fix(context, layout, best),
            event=view.event_name,
        )


def _fix(context: CheckContext, layout: RecordLayout, best: RecordLayout) -> Fix | None:
    """Swap the texts of the fields and keep what is between them."""
    source = context.header.source
    if source is None:
        return None
    texts = {}
    for member in layout.members:
        text = _text(source.text, member.field)
        if text is None:
            return None
        texts[member.field.name] = text
    origins = [m.field.origin for m in layout.members if m.field.origin is not None]
    between = source.text[origins[0].span.start : origins[-1].span.end]
    if "#" in between or "/*" in between or len(texts) != len(layout.members):
        return None
    edits = tuple(
        Edit(source.path, origin.span.start, origin.span.end, texts[new.field.name])
        for origin, old, new in zip(origins, layout.members, best.members, strict=True)
        if old.field.name != new.field.name
    )
    return Fix("put the fields in this order", edits, Safety.UNSAFE)


def _text(text: str, field: Field) -> str | None:
    """Return how the field is written, None when a macro wrote it."""
    origin = field.origin
    if origin is None or origin.chain or origin.span.start < 0:
        return None
    written = text[origin.span.start : origin.span.end]
    return written if written.startswith("__") and written.endswith(")") else None
