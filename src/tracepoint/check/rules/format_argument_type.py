"""A conversion gets a value of the wrong type.

## What it does

Types each argument as C does, with the usual promotions and conversions, and compares it with its
conversion: pointers for `%d`, numbers for `%s` and `%p`, structs, 64-bit values for `%d` and `%x`,
32-bit values for `%ld` and `%llx`. Arguments whose type the header does not show are skipped.

## Why it is bad

The value is cut off, or garbage is read beside it, or a number is followed as an address and the kernel
crashes when the trace is read.

## Example

```c
TRACE_EVENT(sector,
    TP_PROTO(u64 sector),
    TP_ARGS(sector),
    TP_STRUCT__entry(__field(u64, sector)),
    TP_fast_assign(__entry->sector = sector;),
    TP_printk("sector=%d", __entry->sector) /* error: TP304 */
);
```

## Use instead

```c
TRACE_EVENT(sector,
    TP_PROTO(u64 sector),
    TP_ARGS(sector),
    TP_STRUCT__entry(__field(u64, sector)),
    TP_fast_assign(__entry->sector = sector;),
    TP_printk("sector=%llu", __entry->sector)
);
```

## Fix safety

None is offered: changing the conversion, changing the field or adding a cast is the author's choice.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracepoint.check.context import CheckContext, PrintView
from tracepoint.check.expressions import ExprType, ValueClass, expression_type
from tracepoint.check.finding import Finding
from tracepoint.printk.conversion import Conversion, conversion_type
from tracepoint.source.ast import Node
from tracepoint.source.cvalue import promote
from tracepoint.source.cwrite import write_expression

INTEGERS = frozenset("diuoxX")


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield arguments of another type than their conversion takes."""
    for view in context.prints:
        for conversion, argument in view.printed:
            kind = expression_type(argument, view.view.fields, 8)
            problem = _problem(conversion, kind) if kind is not None else ""
            if problem:
                yield Finding(
                    f"{conversion.text} {problem}: {write_expression(argument)}",
                    argument,
                    notes=((view.format, "the format"),) if _is_far(view, argument) else (),
                    event=view.event_name,
                )


def _is_far(view: PrintView, argument: Node) -> bool:
    text = view.format
    return (
        text is not None
        and text.first is not None
        and argument.first is not None
        and text.first.root.span.line != argument.first.root.span.line
    )


def _problem(conversion: Conversion, kind: ExprType) -> str:
    if kind.shape is ValueClass.STRUCT:
        return f"is given a whole {kind.name or 'struct'}"
    if conversion.conversion in INTEGERS or conversion.conversion == "c":
        if kind.integer is None:
            return f"is given {kind.shape.value}"
        return width_problem(conversion, kind, 8)
    if conversion.conversion in {"s", "p"} and kind.shape is ValueClass.INTEGER:
        return f"is given {_named(kind)}"
    return ""


def width_problem(conversion: Conversion, kind: ExprType, long_size: int) -> str:
    """Return what is wrong with the width of an integer argument, empty when nothing is."""
    if kind.integer is None:
        return ""
    taken = max(conversion_type(conversion, long_size).size, 4)
    given = promote(kind.integer).size
    if taken == given:
        return ""
    loss = "the upper half is lost" if taken < given else "garbage is read beside it"
    return f"takes {taken} bytes, but is given {_named(kind)} of {given}; {loss}"


def _named(kind: ExprType) -> str:
    if kind.name:
        return f"{'an' if kind.name[0] in 'aeiou' else 'a'} {kind.name}"
    return kind.shape.value
