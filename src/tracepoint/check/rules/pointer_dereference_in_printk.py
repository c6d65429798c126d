"""TP_printk reads memory through a pointer that the record only stores.

## What it does

Finds `__entry->p->x`, `*__entry->p`, `__entry->p[i]`, and functions that get a stored pointer, where
`p` is a pointer field. Pointers into the record itself (`&__entry->addr`, arrays, `__get_dynamic_array()`)
are fine.

## Why it is bad

The record holds the pointer, not what it points to. The trace is read seconds or hours later; by then the
object may be freed, and the kernel reads freed memory or crashes. Programs that read the raw record cannot
follow the pointer at all. (The kernel's own test, test_double_dereference() in
kernel/trace/trace_events.c, is new in 7.2 and sees only direct `->`.)

## Example

```c
TRACE_EVENT(dev_seen,
    TP_PROTO(struct net_device *dev),
    TP_ARGS(dev),
    TP_STRUCT__entry(__field(struct net_device *, dev)),
    TP_fast_assign(__entry->dev = dev;),
    TP_printk("mtu=%u", __entry->dev->mtu) /* error: TP301 */
);
```

## Use instead

When the event fires, copy what will be shown.

```c
TRACE_EVENT(dev_seen,
    TP_PROTO(struct net_device *dev),
    TP_ARGS(dev),
    TP_STRUCT__entry(__field(unsigned int, mtu)),
    TP_fast_assign(__entry->mtu = dev->mtu;),
    TP_printk("mtu=%u", __entry->mtu)
);
```

## Fix safety

None is offered: the header does not show the type of the new field.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracepoint.check.context import CheckContext, PrintView
from tracepoint.check.finding import Finding
from tracepoint.check.syntax import entry_field, strip_casts
from tracepoint.model.field import Field, ScalarField
from tracepoint.model.vocabulary import PRINT_HELPERS
from tracepoint.source.ast import Call, Index, Member, Node, Unary
from tracepoint.source.cwrite import write_expression

#: They use only the number: symbol names, error codes.
_TAKES_NUMBER = frozenset({"IS_ERR", "PTR_ERR", "IS_ERR_OR_NULL", "PTR_ERR_OR_ZERO", "virt_to_phys", "__pa"})


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield reads through pointer fields."""
    for view in context.prints:
        for node in view.all_nodes:
            field = _through(view, node)
            if field is not None:
                yield Finding(
                    f"pointer dereferenced in TP_printk: {write_expression(node)}",
                    node,
                    label="read when the trace is read; the object may be gone",
                    notes=((field.origin, "the record keeps only this pointer"),),
                    help=("copy the value into a field of its own when the event fires",),
                    event=view.event_name,
                )
            yield from _handed_on(view, node)


def _through(view: PrintView, node: Node) -> Field | None:
    """Return the pointer field that a node reads through, if it does."""
    match node:
        case Member(base=base, is_arrow=True) | Index(base=base) | Unary(op="*", operand=base):
            return _pointer_field(view, base)
    return None


def _pointer_field(view: PrintView, node: Node) -> Field | None:
    field = view.view.fields.get(entry_field(strip_casts(node)))
    if isinstance(field, ScalarField) and field.ctype.rstrip().endswith("*"):
        return field
    return None


def _handed_on(view: PrintView, node: Node) -> Iterator[Finding]:
    if not isinstance(node, Call) or not node.name or node.name in PRINT_HELPERS | _TAKES_NUMBER:
        return
    for argument in node.arguments:
        field = _pointer_field(view, argument)
        if field is not None:
            yield Finding(
                f"{node.name}() is given the stored pointer {write_expression(argument)} in TP_printk",
                node,
                label="runs when the trace is read; the object may be gone",
                notes=((field.origin, "the record keeps only this pointer"),),
                help=("call it when the event fires and record what it returns",),
                event=view.event_name,
            )
