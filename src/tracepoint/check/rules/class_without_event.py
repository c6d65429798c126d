"""An event class is declared, but no event uses it.

## What it does

Finds `DECLARE_EVENT_CLASS` without a `DEFINE_EVENT` in any header of the run.

## Why it is bad

The class costs code and data in the kernel, and cannot be enabled. Usually its last event was removed
and the class was forgotten.

## Example

```c
DECLARE_EVENT_CLASS(forgotten, /* error: TP110 */
    TP_PROTO(int tag),
    TP_ARGS(tag),
    TP_STRUCT__entry(__field(int, tag)),
    TP_fast_assign(__entry->tag = tag;),
    TP_printk("tag=%d", __entry->tag)
);
```

## Use instead

```c
DECLARE_EVENT_CLASS(kept,
    TP_PROTO(int tag),
    TP_ARGS(tag),
    TP_STRUCT__entry(__field(int, tag)),
    TP_fast_assign(__entry->tag = tag;),
    TP_printk("tag=%d", __entry->tag)
);
DEFINE_EVENT(kept, kept_begin, TP_PROTO(int tag), TP_ARGS(tag));
```

## Fix safety

None is offered: the class may be waiting for its events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tracepoint.check.across import Across
from tracepoint.check.context import CheckContext
from tracepoint.check.finding import Finding, Located, located_origin


@dataclass(frozen=True, slots=True)
class Candidate:
    """A class that no event of its own header uses."""

    name: str
    place: Located


def candidates(context: CheckContext) -> Iterator[Candidate]:
    """Yield the classes that no event of their own header uses."""
    for view in context.classes:
        cls = view.event_class
        place = located_origin(cls)
        if not view.events and place is not None and not cls.macro.endswith("_NOP"):
            yield Candidate(cls.name, place)


def decide(unused: Iterable[Candidate], across: Across) -> Iterator[Finding]:
    """Yield classes that no event of any header uses."""
    for cls in unused:
        if cls.name not in across.used_classes:
            yield Finding("no event uses this class", cls.place, event=cls.name)
