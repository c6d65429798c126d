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

from collections.abc import Iterator, Sequence

from tracepoint.check.context import CheckContext, ClassView
from tracepoint.check.expressions import Shape, expression_type
from tracepoint.check.finding import Finding
from tracepoint.check.syntax import strip_casts
from tracepoint.errors import TracepointError
from tracepoint.source.ast import Cast, Index, Member, Name, Node, Unary, walk
from tracepoint.source.cexpr import parse_expression
from tracepoint.source.ctype import parse_ctype
from tracepoint.source.cvalue import int_type_of
from tracepoint.source.cwrite import write_expression
from tracepoint.source.lexer import Token


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield reads through numbers."""
    for view in context.classes:
        nodes = [(node, view.event_name) for node in _cast_expressions(view.assign)]
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


def _cast_expressions(tokens: Sequence[Token]) -> Iterator[Node]:
    """Yield every node of the bracketed expressions that end in a cast to a pointer and are followed."""
    for index in range(len(tokens) - 2):
        if tokens[index].text != "*" or tokens[index + 1].text != ")":
            continue
        begin, end = _around(tokens, index)
        try:
            node = parse_expression(tokens[begin:end])
        except TracepointError:
            continue
        yield from walk(node)


def _around(tokens: Sequence[Token], at: int) -> tuple[int, int]:
    """Return the place of the expression statement, or right side of the assignment, around a token."""
    ends = {";", "{", "}", "="}
    begin = next((i + 1 for i in range(at, -1, -1) if tokens[i].text in ends), 0)
    end = next((i for i in range(at, len(tokens)) if tokens[i].text in ends), len(tokens))
    return begin, end


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
        and found.shape is Shape.INTEGER
        and found.integer is not None
        and found.integer.size < 8
    )
