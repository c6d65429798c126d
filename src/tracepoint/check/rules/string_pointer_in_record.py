"""`%s` shows a string through a pointer that the record stores.

## What it does

Finds `char *` fields that `TP_printk` shows with `%s`.

## Why it is bad

The record keeps the address of the string. By the time the trace is read, the string may be gone: the memory
of a module that was unloaded, a name that was freed. `perf`, `trace-cmd` and eBPF only see a number. The
kernel checks such fields while printing (trace_check_vprintf() in kernel/trace/trace.c) and prints a warning
with a stack trace for a string that is not in its own read-only data.

## Example

```c
TRACE_EVENT(stage,
    TP_PROTO(const char *name),
    TP_ARGS(name),
    TP_STRUCT__entry(__field(const char *, name)),
    TP_fast_assign(__entry->name = name;),
    TP_printk("name=%s", __entry->name) /* error: TP302 */
);
```

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

A pointer to a string that never goes away may stay if every caller passes it through `tracepoint_string()`,
which exports the text to readers. Say so with a suppression comment.

## Fix safety

None is offered: the record changes, and so does the assignment.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracepoint.check.context import CheckContext, PrintView
from tracepoint.check.finding import Finding
from tracepoint.check.syntax import entry_field, strip_casts
from tracepoint.model.field import Field, ScalarField
from tracepoint.source.ast import Node, Ternary


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield string pointers that are shown as text."""
    for view in context.prints:
        for field, node in shown_pointers(view):
            yield Finding(
                f"%s shows the string at the stored pointer {field.name}",
                node,
                label="the string may be gone when the trace is read",
                notes=((field.origin, "the record keeps only the address"),),
                help=(f"__string({field.name}, ...) copies the text into the record",),
                event=view.event_name,
            )


def shown_pointers(view: PrintView) -> Iterator[tuple[Field, Node]]:
    """Yield the pointer fields that `%s` shows, each with its place."""
    for conversion, argument in view.printed:
        if conversion.conversion != "s":
            continue
        for node in _alternatives(argument):
            field = view.view.fields.get(entry_field(strip_casts(node)))
            if isinstance(field, ScalarField) and field.ctype.rstrip().endswith("*"):
                yield field, node


def _alternatives(node: Node) -> Iterator[Node]:
    """Yield the values that an expression may have: the arms of `?:`."""
    inner = strip_casts(node)
    if isinstance(inner, Ternary):
        for arm in (inner.then, inner.otherwise):
            if arm is not None:
                yield from _alternatives(arm)
    else:
        yield inner
