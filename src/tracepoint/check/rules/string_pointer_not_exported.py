"""`%s` shows a stored pointer, and no caller passes a string that is exported to readers.

## What it does

Finds `char *` fields that `TP_printk` shows with `%s` (as TP302 does) where no file that calls the event, and
no header beside such a file, uses `tracepoint_string()`. The callers come from the index of the tree: without
`tracepoint index TREE`, or when the tree has changed since, nothing is found.

## Why it is bad

The record keeps only the address. `trace-cmd`, `perf` and eBPF show a number, since the text is not in
`printk_formats`; the kernel reads the memory when the trace is printed, and by then the module or
the buffer that held the string may be gone.

## Example

```c
TRACE_EVENT(stage,
    TP_PROTO(const char *name),
    TP_ARGS(name),
    TP_STRUCT__entry(__field(const char *, name)),
    TP_fast_assign(__entry->name = name;),
    TP_printk("name=%s", __entry->name) /* error: TP326 */
);
```

This is a fault when every caller is like `trace_stage("first")`.

## Use instead

```c
TRACE_EVENT(stage,
    TP_PROTO(const char *name),
    TP_ARGS(name),
    TP_STRUCT__entry(__string(name, name)),
    TP_fast_assign(__assign_str(name, name);),
    TP_printk("name=%s", __get_str(name))
);
```

Or `trace_stage(tracepoint_string("first"))` in every caller.

## Fix safety

None is offered: the record changes, and so does the assignment.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracepoint.check.context import CheckContext
from tracepoint.check.finding import Finding
from tracepoint.check.rules.string_pointer_in_record import shown_pointers


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield string pointers that no caller exports."""
    known = context.facts.string_callers
    for view in context.prints if known else ():
        answers = {known[e.full_name] for e in view.view.events if e.full_name in known}
        if answers != {False}:
            continue
        for field, node in shown_pointers(view):
            yield Finding(
                f"%s shows the stored pointer {field.name}, and no caller passes a tracepoint_string()",
                node,
                label="readers of the record see a number",
                notes=((field.origin, "the record keeps only the address"),),
                help=(f"__string({field.name}, ...) copies the text into the record",),
                event=view.event_name,
            )
