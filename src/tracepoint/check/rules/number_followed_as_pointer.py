"""A number that is too narrow for an address is cast to a pointer and followed.

## What it does

Finds `((struct s *)x)->member`, `*(type *)x` and `((type *)x)[i]` where `x` is a parameter or a field of an
integer type narrower than `unsigned long`: a pid, an index, an error code.

## Why it is bad

It is not an address. The kernel reads whatever is at a low address, which is a page fault, and only while the
event is enabled.

## Example

```c
TRACE_EVENT(woken,
    TP_PROTO(pid_t pid),
    TP_ARGS(pid),
    TP_STRUCT__entry(__field(int, prio)),
    TP_fast_assign(__entry->prio = ((struct task_struct *)pid)->prio;), /* error: TP219 */
    TP_printk("prio=%d", __entry->prio)
);
```

## Use instead

```c
TRACE_EVENT(woken,
    TP_PROTO(struct task_struct *task),
    TP_ARGS(task),
    TP_STRUCT__entry(__field(int, prio)),
    TP_fast_assign(__entry->prio = task->prio;),
    TP_printk("prio=%d", __entry->prio)
);
```

## Fix safety

None is offered: the object has to come from the caller.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise

from tracepoint.check.context import CheckContext, ClassView
from tracepoint.check.expressions import ValueClass, expression_type
from tracepoint.check.finding import Finding
from tracepoint.check.syntax import strip_casts
from tracepoint.errors import TracepointError
from tracepoint.source.ast import Cast, Index, Member, Name, Node, StatementExpression, Unary, walk
from tracepoint.source.ctype import parse_ctype
from tracepoint.source.cvalue import int_type_of
from tracepoint.source.cwrite import write_expression
from tracepoint.source.statements import statements_of


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield reads through numbers."""
    for view in context.classes:
        nodes = [(node, view.event_name) for node in _assigned_nodes(view)]
        nodes += [(node, shown.event_name) for shown in view.prints for node in shown.all_nodes]
        for node, event in nodes:
            cast = _followed(node)
            if cast is not None and _is_narrow(context, view, strip_casts(cast.operand)):
                number = write_expression(strip_casts(cast.operand))
                yield Finding(
                    f"{number} is not a pointer: {write_expression(node)}",
                    node,
                    label="narrower than an address",
                    event=event,
                )


def _assigned_nodes(view: ClassView) -> Iterator[Node]:
    """Yield every node of an assignment that casts to a pointer, those in statement expressions too."""
    tokens = view.assign
    if not any(one.text == "*" and after.text == ")" for one, after in pairwise(tokens)):
        return
    pending: list[Node] = []
    try:
        pending += view.event_class.assign.statements().body
    except TracepointError:
        return
    while pending:
        for node in walk(pending.pop()):
            yield node
            if isinstance(node, StatementExpression):
                with suppress(TracepointError):
                    pending += statements_of(node)


def _followed(node: Node) -> Cast | None:
    """Return the cast to a pointer that a node reads through, if it does."""
    match node:
        case (
            Member(base=Cast() as cast, is_arrow=True)
            | Index(base=Cast() as cast)
            | Unary(op="*", operand=Cast() as cast)
        ) if cast.ctype.is_pointer:
            return cast
    return None


def _is_narrow(context: CheckContext, view: ClassView, node: Node) -> bool:
    """Return whether a value is an integer that is narrower than an address on a 64-bit machine."""
    if isinstance(node, Name):
        ctype = next((p.ctype for p in view.event_class.proto.params if p.name == node.name), "")
        if not ctype or "*" in ctype:
            return False
        try:
            known = int_type_of(parse_ctype(ctype))
            return (known.size if known is not None else context.sizes.of(ctype).size) < 8
        except TracepointError:
            return False
    found = expression_type(node, view.fields, 8)
    return (
        found is not None
        and found.shape is ValueClass.INTEGER
        and found.integer is not None
        and found.integer.size < 8
    )
