"""A print format shows one field twice and never shows another one with a similar name.

## What it does

Finds a field that two conversions of a format print, while no print format of the class shows another field
of the same type whose name has a word in common.

## Why it is bad

Most often the argument was copied and its name not changed: the text shows one value under two names, and
never the other value, although every record holds it. The rule looks at names alone, so the finding is a
note.

## Example

```c
TRACE_EVENT(copied,
    TP_PROTO(u64 src_id, u64 target_id),
    TP_ARGS(src_id, target_id),
    TP_STRUCT__entry(__field(u64, src_id) __field(u64, target_id)),
    TP_fast_assign(
        __entry->src_id = src_id;
        __entry->target_id = target_id;
    ),
    TP_printk("source=%llu target=%llu", __entry->target_id, __entry->target_id) /* error: TP324 */
);
```

## Use instead

```c
TRACE_EVENT(copied,
    TP_PROTO(u64 src_id, u64 target_id),
    TP_ARGS(src_id, target_id),
    TP_STRUCT__entry(__field(u64, src_id) __field(u64, target_id)),
    TP_fast_assign(
        __entry->src_id = src_id;
        __entry->target_id = target_id;
    ),
    TP_printk("source=%llu target=%llu", __entry->src_id, __entry->target_id)
);
```

## Fix safety

None is offered: only the author knows which of the two should show the other field.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracepoint.check.context import CheckContext, ClassView, PrintView
from tracepoint.check.finding import Finding
from tracepoint.check.labels import words_of
from tracepoint.check.syntax import entry_field, strip_casts
from tracepoint.model.field import Field
from tracepoint.source.ast import Node


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield fields that are shown twice, with the one that is omitted."""
    for view in context.classes:
        if not view.is_recorded:
            continue
        for shown in view.prints:
            for name, nodes in _repeated(shown):
                sibling = _left_out(view, name)
                if sibling is not None:
                    yield Finding(
                        f"{name} is shown twice, {sibling.name} never",
                        nodes[0],
                        label=f"was {sibling.name} meant, here or the other time?",
                        notes=((sibling.origin, "recorded, but not shown"),),
                        event=shown.event_name,
                    )


def _repeated(shown: PrintView) -> Iterator[tuple[str, list[Node]]]:
    """Yield the fields that more than one conversion prints as they are."""
    places: dict[str, list[Node]] = {}
    for _, argument in shown.printed:
        name = entry_field(strip_casts(argument))
        if name:
            places.setdefault(name, []).append(argument)
    yield from ((name, nodes) for name, nodes in places.items() if len(nodes) > 1)


def _left_out(view: ClassView, name: str) -> Field | None:
    """Return a field of similar name and the same type that no format of the class mentions."""
    one = view.fields.get(name)
    names = frozenset().union(*(shown.names for shown in view.prints))
    for other in view.event_class.fields:
        if one is None or other.name in names or (other.kind, other.ctype) != (one.kind, one.ctype):
            continue
        if set(words_of(other.name)) & set(words_of(name)):
            return other
    return None
