"""A parameter has a name that the kernel's own macros use in the same function.

## What it does

Finds parameters of `TP_PROTO` with the name of a local variable of the functions
that `include/trace/trace_events.h` and `include/trace/perf.h` generate from the declaration.

## Why it is bad

`TP_PROTO` becomes the parameter list of those functions, so the header does not compile: "'entry' redeclared
as different kind of symbol". For the names of perf.h the error appears only with
`CONFIG_PERF_EVENTS`.

## Example

```c
TRACE_EVENT(slot_used,
    TP_PROTO(int entry), /* error: TP102 */
    TP_ARGS(entry),
    TP_STRUCT__entry(__field(int, slot)),
    TP_fast_assign(__entry->slot = entry;),
    TP_printk("slot=%d", __entry->slot)
);
```

## Use instead

```c
TRACE_EVENT(slot_used,
    TP_PROTO(int slot),
    TP_ARGS(slot),
    TP_STRUCT__entry(__field(int, slot)),
    TP_fast_assign(__entry->slot = slot;),
    TP_printk("slot=%d", __entry->slot)
);
```

## Fix safety

None is offered: `TP_ARGS` and the statements use the name too.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracepoint.check.context import CheckContext, origin_of
from tracepoint.check.finding import Finding

#: Locals of trace_event_raw_event_x() and trace_event_get_offsets_x() (include/trace/trace_events.h).
_TRACE_LOCALS = frozenset(
    [
        "entry",
        "__data",
        "__data_offsets",
        "__data_size",
        "trace_file",
        "fbuffer",
        "event_call",
        "__item_length",
    ]
)
#: Locals of perf_trace_x() (include/trace/perf.h).
_PERF_LOCALS = frozenset(["head", "rctx", "__entry_size", "__count", "__task", "__regs"])


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield parameters with a reserved name."""
    for view in context.classes:
        cls = view.event_class
        for param in cls.proto.params:
            place = origin_of(param, cls.proto, cls)
            if place is None or param.name not in _TRACE_LOCALS | _PERF_LOCALS:
                continue
            where = "with CONFIG_PERF_EVENTS " if param.name in _PERF_LOCALS else ""
            yield Finding(
                f"a parameter must not be called {param.name}: {where}the kernel's macros declare one too",
                place,
                help=("rename it in TP_PROTO, TP_ARGS and the statements",),
                event=view.event_name,
            )
