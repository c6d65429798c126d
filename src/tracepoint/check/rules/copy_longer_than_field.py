"""A copy into the record is longer than the field that it fills.

## What it does

Compares the length of `memcpy` and `memmove` with the size of the array they fill: by value where both are
constants, by their factors where they are not (`num * len` bytes into `__dynamic_array(u8, buf, len)`), and
finds whole structs that are copied into an array of `char` that is printed as text.

## Why it is bad

The copy overwrites the fields after it, or what the ring buffer holds after the record.

## Example

```c
TRACE_EVENT(message,
    TP_PROTO(const u8 *data, int num, int len),
    TP_ARGS(data, num, len),
    TP_STRUCT__entry(__dynamic_array(u8, data, len)),
    TP_fast_assign(memcpy(__get_dynamic_array(data), data, num * len);), /* error: TP215 */
    TP_printk("%s", __print_hex(__get_dynamic_array(data), __get_dynamic_array_len(data)))
);
```

## Use instead

```c
TRACE_EVENT(message,
    TP_PROTO(const u8 *data, int num, int len),
    TP_ARGS(data, num, len),
    TP_STRUCT__entry(__dynamic_array(u8, data, num * len)),
    TP_fast_assign(memcpy(__get_dynamic_array(data), data, num * len);),
    TP_printk("%s", __print_hex(__get_dynamic_array(data), __get_dynamic_array_len(data)))
);
```

## Fix safety

None is offered: the field may be too short, or the copy too long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tracepoint.check.context import CheckContext, ClassView
from tracepoint.check.finding import Finding
from tracepoint.check.syntax import (
    calls_in,
    copied_array,
    entry_field,
    meaning,
    pointer_parameters,
    sizeof_operand,
    without_parentheses,
)
from tracepoint.errors import TracepointError
from tracepoint.model.field import ArrayField, DynamicArrayField
from tracepoint.source.brackets import outside, split_arguments
from tracepoint.source.lexer import Token
from tracepoint.source.macros import spell

_COPIES = frozenset({"memcpy", "memmove"})
_NOT_A_PRODUCT = frozenset({"+", "-", "/", "%", "?", ":", "<<", ">>", "&", "|", "<", ">"})


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield copies that do not fit."""
    for view in context.classes:
        for name, arguments in calls_in(view.assign):
            if name.text not in _COPIES or len(arguments) != 3 or not arguments[2]:
                continue
            field = copied_array(view.fields, arguments[0])
            why = _excess(context, view, field, arguments[2]) if field is not None else ""
            if field is not None and why:
                yield Finding(
                    f"{name.text} copies {why}",
                    (arguments[2][0], arguments[2][-1]),
                    notes=((field.origin, "the array"),),
                    event=view.event_name,
                )


def _excess(
    context: CheckContext, view: ClassView, field: ArrayField | DynamicArrayField, length: Sequence[Token]
) -> str:
    """Say what is copied and how much room there is; empty when it fits or is not known."""
    try:
        element = context.sizes.of(field.ctype).size
    except TracepointError:
        return ""
    pointee = _pointee(view, length)
    copied = _size_of(context, pointee) if pointee else context.sizes.evaluate(length)
    room = context.sizes.evaluate(field.length)
    if copied is not None and room is not None:
        return f"{copied} bytes, {field.name} has {room * element}" if copied > room * element else ""
    if copied is None and pointee.startswith("struct ") and _is_shown_as_text(view, field):
        return f"a whole {pointee} into {field.name}, which is text of {field.length} bytes"
    if not pointee and element == 1 and _is_longer(field.length.tokens, length):
        return f"{spell(length)} bytes, {field.name} has {field.length}"
    return ""


def _pointee(view: ClassView, length: Sequence[Token]) -> str:
    """Return the type of `*p` in `sizeof(*p)`, where `p` is a parameter."""
    operand = sizeof_operand(length)
    if len(operand) != 2 or operand[0] != "*":
        return ""
    return pointer_parameters(view.event_class.proto.params).get(operand[1], "").removeprefix("const ")


def _size_of(context: CheckContext, ctype: str) -> int | None:
    try:
        return context.sizes.of(ctype).size
    except TracepointError:
        return None


def _is_shown_as_text(view: ClassView, field: ArrayField | DynamicArrayField) -> bool:
    return (
        isinstance(field, ArrayField)
        and field.ctype == "char"
        and any(
            conversion.conversion == "s" and entry_field(argument) == field.name
            for shown in view.prints
            for conversion, argument in shown.printed
        )
    )


def _is_longer(room: Sequence[Token], length: Sequence[Token]) -> bool:
    """Return whether a length is that of the array times something, or plus a number."""
    has, needs = meaning(room), meaning(length)
    if not has or has == needs:
        return False
    if needs[: len(has)] == has and needs[len(has) : len(has) + 1] == ("+",) and len(needs) == len(has) + 2:
        return needs[-1].isdigit() and needs[-1] != "0"
    more = Counter(_factors(length)) - Counter(_factors(room))
    missing = Counter(_factors(room)) - Counter(_factors(length))
    return bool(more) and not missing and not any(factor[:1] == ("sizeof",) for factor in more)


def _factors(tokens: Sequence[Token]) -> list[tuple[str, ...]]:
    """Return what a product multiplies; one factor when it is not a plain product."""
    tokens = without_parentheses(tokens)
    parts = split_arguments(tokens, "*")
    if next(outside(tokens, _NOT_A_PRODUCT), None) is not None or not all(parts):
        parts = [tokens]
    return [tuple(token.text for token in part) for part in parts]
