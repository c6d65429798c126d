"""Two events, or two fields of one record, have the same name.

## What it does

Finds event names that are declared twice in one header or in two headers of the run, and field names that are
declared twice in one record. Two headers below `arch/` may share names, since only one of them is built; so
may two that Kconfig makes alternatives (`depends on !OTHER`, one `choice`), such as the C and Rust binder.

## Why it is bad

Tracepoint names are global to the kernel: `trace_x()`, `__tracepoint_x` and `btf_trace_x` exist once,
whatever the system is called. Two in one image do not link; with two in different modules, users of
`raw_tracepoint` and `fprobe` attach to whichever is found first.

## Example

```c
TRACE_EVENT(done,
    TP_PROTO(int n),
    TP_ARGS(n),
    TP_STRUCT__entry(__field(int, n)),
    TP_fast_assign(__entry->n = n;),
    TP_printk("n=%d", __entry->n)
);
TRACE_EVENT(done, /* error: TP103 */
    TP_PROTO(int m),
    TP_ARGS(m),
    TP_STRUCT__entry(__field(int, m)),
    TP_fast_assign(__entry->m = m;),
    TP_printk("m=%d", __entry->m)
);
```

## Use instead

Begin the name with that of the driver or subsystem.

```c
TRACE_EVENT(mydev_done,
    TP_PROTO(int n),
    TP_ARGS(n),
    TP_STRUCT__entry(__field(int, n)),
    TP_fast_assign(__entry->n = n;),
    TP_printk("n=%d", __entry->n)
);
```

## Fix safety

None is offered: the call sites use the name too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tracepoint.check.across import Across
from tracepoint.check.context import CheckContext, origin_of
from tracepoint.check.finding import Finding, Located, located_origin
from tracepoint.model.event import Event
from tracepoint.model.field import Field

_ARCH = re.compile(r"(?:^|/)arch/[^/]+/")


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield second declarations in the same header."""
    yield from _fields(context)
    seen: dict[str, Event] = {}
    for event in context.header.events:
        first = seen.setdefault(event.name, event)
        place = origin_of(event)
        if first is not event and place is not None:
            yield Finding(
                "declared twice in this file",
                place,
                notes=((origin_of(first), "first declared here"),),
                event=event.full_name,
            )


@dataclass(frozen=True, slots=True)
class Candidate:
    """An event as it is declared first in its header."""

    path: str
    name: str
    full_name: str
    place: Located


def candidates(context: CheckContext) -> Iterator[Candidate]:
    """Yield the first event of each name."""
    for event in {event.name: event for event in reversed(context.header.events)}.values():
        place = located_origin(event)
        if place is not None:
            yield Candidate(context.header.path, event.name, event.full_name, place)


def decide(events: Iterable[Candidate], across: Across) -> Iterator[Finding]:
    """Yield events that a header before this one declares too."""
    for event in events:
        for path, other in across.declared_elsewhere(event.name, event.path):
            if path >= event.path or _exclude_each_other(path, event.path):
                continue
            if across.are_alternatives(path, event.path):
                continue
            yield Finding(
                f"also declared in {path}",
                event.place,
                notes=((other, "first declared here"),),
                help=("tracepoint names are global to the kernel, whatever the system",),
                event=event.full_name,
            )


def _exclude_each_other(one: str, other: str) -> bool:
    """Return whether two headers belong to architectures, or one is a sample or a tool."""
    first, second = _ARCH.search(one), _ARCH.search(other)
    if first and second:
        return True
    return any(re.search(r"(?:^|/)(?:samples|tools|Documentation)/", path) for path in (one, other))


def _fields(context: CheckContext) -> Iterator[Finding]:
    for view in context.classes:
        seen: dict[str, Field] = {}
        for field in view.event_class.fields:
            first = seen.setdefault(field.name, field)
            place = origin_of(field, view.event_class)
            if first is not field and field.name and place is not None:
                yield Finding(
                    f"field {field.name} is declared twice",
                    place,
                    notes=((origin_of(first), "first declared here"),),
                    event=view.event_name,
                )
