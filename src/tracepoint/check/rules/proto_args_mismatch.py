"""TP_ARGS does not name the parameters of TP_PROTO in the same order.

## What it does

Compares the names in `TP_ARGS` with those of `TP_PROTO`, also for each `DEFINE_EVENT`, and the parameters of
an instance with those of its class: their number, struct tags and pointers, size and sign of integers.

## Why it is bad

`trace_x()` passes `TP_ARGS` to probes that take `TP_PROTO`. A missing or unknown name does not compile.
Two names in the wrong order do compile when their types convert: every record then holds one value under
the name of the other.

## Example

```c
TRACE_EVENT(moved,
    TP_PROTO(int from, int to),
    TP_ARGS(to, from), /* error: TP101 */
    TP_STRUCT__entry(__field(int, from) __field(int, to)),
    TP_fast_assign(__entry->from = from; __entry->to = to;),
    TP_printk("from=%d to=%d", __entry->from, __entry->to)
);
```

## Use instead

```c
TRACE_EVENT(moved,
    TP_PROTO(int from, int to),
    TP_ARGS(from, to),
    TP_STRUCT__entry(__field(int, from) __field(int, to)),
    TP_fast_assign(__entry->from = from; __entry->to = to;),
    TP_printk("from=%d to=%d", __entry->from, __entry->to)
);
```

## Fix safety

Unsafe: when the order was wrong, the fix changes what is recorded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tracepoint.check.context import CheckContext, origin_of
from tracepoint.check.finding import Finding
from tracepoint.errors import TracepointError
from tracepoint.model.event import Event, Proto

#: Perf's marks around an argument: they evaluate to the argument (include/trace/perf.h).
_PERF = re.compile(r"^__perf_(?:task|count|addr)\s*\(\s*(\w+)\s*\)$")


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield declarations whose arguments are not their parameters."""
    for view in context.classes:
        cls = view.event_class
        if cls.fields or cls.assign:
            yield from _compare(context, cls.proto, cls.args, cls, view.event_name)
    for point in context.header.tracepoints:
        yield from _compare(context, point.proto, point.args, point, point.name)
    for event in context.header.events:
        if event.proto_override is not None:
            yield from _compare(context, event.proto_override, event.args_override, event, event.full_name)
            yield from _against_class(context, event)


def _compare(
    context: CheckContext, proto: Proto, args: tuple[str, ...], owner: object, event: str
) -> Iterator[Finding]:
    names = proto.names
    args = tuple(_PERF.sub(r"\1", a) for a in args)
    if names == args or not all(names):
        return
    place = context.args_place(owner) or origin_of(owner, proto)
    if place is None:
        return
    if len(names) != len(args):
        message = f"TP_PROTO has {len(names)} parameters, TP_ARGS names {len(args)}"
    elif sorted(names) == sorted(args):
        message = f"TP_ARGS({', '.join(args)}) is in another order than TP_PROTO({proto})"
    else:
        unknown = [a for a in args if a not in names]
        message = f"TP_ARGS names {', '.join(unknown)}, which TP_PROTO({proto}) does not declare"
    yield Finding(message, place, help=(f"TP_ARGS({', '.join(names)})",), event=event)


def _against_class(context: CheckContext, event: Event) -> Iterator[Finding]:
    own, base = event.proto_override, event.event_class.proto
    place = origin_of(own, event)
    if own is None or place is None or not event.event_class.fields:
        return
    if len(own.params) != len(base.params):
        yield Finding(
            f"has {len(own.params)} parameters, its class {event.event_class.name} has {len(base.params)}",
            place,
            notes=((origin_of(event.event_class), "the class"),),
            event=event.full_name,
        )
        return
    for mine, theirs in zip(own.params, base.params, strict=True):
        if _differ(context, mine.ctype, theirs.ctype):
            yield Finding(
                f"{mine.name} is {mine.ctype}, in class {event.event_class.name} it is {theirs.ctype}",
                origin_of(mine, own, event) or place,
                notes=((origin_of(event.event_class), "the class"),),
                event=event.full_name,
            )


def _differ(context: CheckContext, mine: str, theirs: str) -> bool:
    """Return whether two types certainly differ: in struct tag, in pointers, or as integers."""
    if _tag(mine) != _tag(theirs):
        return True
    kinds = [_integer(context, ctype) for ctype in (mine, theirs)]
    return None not in kinds and kinds[0] != kinds[1]


def _integer(context: CheckContext, ctype: str) -> tuple[int, bool] | None:
    """Return the size and sign of an integer type, None for enums and unknown types."""
    if "*" in ctype or re.search(r"\b(?:struct|union|enum)\b", ctype):
        return None
    try:
        size = context.sizes.of(ctype)
    except TracepointError:
        return None
    return size.size, size.is_signed


def _tag(ctype: str) -> tuple[str, int]:
    """Return what certainly differs between types that differ: struct tag and pointers."""
    words = ctype.replace("*", " ").split()
    tag = next((words[i + 1] for i, w in enumerate(words[:-1]) if w in {"struct", "union"}), "")
    return tag, ctype.count("*") if tag else 0
