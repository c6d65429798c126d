"""An argument of TP_printk has a side effect.

## What it does

Finds assignments, `++` and `--` in the arguments of `TP_printk`.

## Why it is bad

The output function runs for each reader, each time the trace is read, possibly on a copy of the record.
Changes are lost, or happen twice. Readers of raw records do not evaluate them at all.

## Example

```c
TRACE_EVENT(counted,
    TP_PROTO(int n),
    TP_ARGS(n),
    TP_STRUCT__entry(__field(int, n)),
    TP_fast_assign(__entry->n = n;),
    TP_printk("n=%d", __entry->n++) /* error: TP313 */
);
```

## Use instead

```c
TRACE_EVENT(counted,
    TP_PROTO(int n),
    TP_ARGS(n),
    TP_STRUCT__entry(__field(int, n)),
    TP_fast_assign(__entry->n = n;),
    TP_printk("n=%d", __entry->n)
);
```

## Fix safety

None is offered.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracepoint.check.context import CheckContext, PrintView
from tracepoint.check.finding import Finding
from tracepoint.source.ast import Assign, InitList, Node, Unary, walk
from tracepoint.source.cwrite import write_expression


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield expressions that store."""
    for view in context.prints:
        designators = {id(item) for item in _designators(view)}
        for node in view.all_nodes:
            match node:
                case Unary(op="++" | "--" | "p++" | "p--"):
                    pass
                case Assign() if id(node) not in designators:
                    pass
                case _:
                    continue
            yield Finding(f"TP_printk changes a value: {write_expression(node)}", node, event=view.event_name)


def _designators(view: PrintView) -> list[Node]:
    """Return the `.name = value` items of lists, which are not assignments."""
    lists = (n for argument in view.arguments for n in walk(argument) if isinstance(n, InitList))
    return [item for found in lists for item in found.items if isinstance(item, Assign)]
