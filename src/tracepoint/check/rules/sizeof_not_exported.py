"""A print format uses `sizeof` of a type that readers do not know.

## What it does

Finds `sizeof` of a struct, union or private type in `TP_printk` when no `TRACE_DEFINE_SIZEOF` exports it.

## Why it is bad

The text `sizeof(struct foo)` stays in `print fmt:`; readers of raw records know only the sizes of C's own
types.

## Example

```c
TRACE_EVENT(blocks,
    TP_PROTO(int bytes),
    TP_ARGS(bytes),
    TP_STRUCT__entry(__field(int, bytes)),
    TP_fast_assign(__entry->bytes = bytes;),
    TP_printk("n=%zu", __entry->bytes / sizeof(struct block)) /* error: TP320 */
);
```

## Use instead

```c
TRACE_DEFINE_SIZEOF(struct block);

TRACE_EVENT(blocks,
    TP_PROTO(int bytes),
    TP_ARGS(bytes),
    TP_STRUCT__entry(__field(int, bytes)),
    TP_fast_assign(__entry->bytes = bytes;),
    TP_printk("n=%zu", __entry->bytes / sizeof(struct block))
);
```

## Fix safety

None is offered: computing the value in `TP_fast_assign` is often better.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tracepoint.check.across import Across
from tracepoint.check.context import CheckContext
from tracepoint.check.finding import Finding, locate
from tracepoint.source.ast import SizeOf
from tracepoint.source.cvalue import int_type_of
from tracepoint.source.cwrite import write_expression


@dataclass(frozen=True, slots=True)
class Candidate:
    """The size of a type, with the finding to report if no header exports it."""

    system: str
    ctype: str
    finding: Finding


def candidates(context: CheckContext) -> Iterator[Candidate]:
    """Yield sizes of types that the header itself does not export."""
    for view in context.prints:
        for node in view.all_nodes:
            if not isinstance(node, SizeOf) or node.ctype is None or node.ctype.pointers:
                continue
            ctype = str(node.ctype)
            if int_type_of(node.ctype) is not None or ctype in context.exported:
                continue
            finding = Finding(
                f"{write_expression(node)} is not known to readers",
                locate(node),
                help=(f"TRACE_DEFINE_SIZEOF({ctype});",),
                event=view.event_name,
            )
            yield Candidate(context.header.system, ctype, finding)


def decide(sizes: Iterable[Candidate], across: Across) -> Iterator[Finding]:
    """Yield sizes of types that no header exports."""
    for size in sizes:
        if not across.exports(size.system, size.ctype):
            yield size.finding
