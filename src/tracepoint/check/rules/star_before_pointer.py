"""A `*` in the print format makes the kernel check the wrong argument for a later `%s` or `%p`.

## What it does

Finds a `*` for a width or precision, as in `%*d`, `%-*s` or `%*.*s`, before a `%s` or a `%p` that follows
pointers, where the kernel counts one argument too few and so mistakes a number or a plain field for the
pointer. `%*pbl`, `%*s` and `%.*s` are counted correctly.

## Why it is bad

When an event is registered, the kernel checks whether what `%s` and `%pI4` follow is in the record
(`test_event_printk()` in `kernel/trace/trace_events.c`). It counts the arguments itself, but not those of
every `*`. For a `%p` it then warns at boot about an unsafe dereference that does not exist. For a `%s` it
takes the number in the other field as the address of a string, and shows `HAS UNSAFE POINTER FIELD` instead
of the event (`ignore_event()` in 6.12's `kernel/trace/trace.c`).

## Example

```c
TRACE_EVENT(dialled,
    TP_PROTO(int width, int port, const u8 *peer),
    TP_ARGS(width, port, peer),
    TP_STRUCT__entry(__field(int, width) __field(int, port) __array(u8, peer, 4)),
    TP_fast_assign(
        __entry->width = width;
        __entry->port = port;
        memcpy(__entry->peer, peer, 4);
    ),
    TP_printk("port=%*d peer=%pI4", /* error: TP323 */
        __entry->width, __entry->port, __entry->peer)
);
```

## Use instead

Put conversions with a `*` after the pointers, or do without the width.

```c
TRACE_EVENT(dialled,
    TP_PROTO(int width, int port, const u8 *peer),
    TP_ARGS(width, port, peer),
    TP_STRUCT__entry(__field(int, width) __field(int, port) __array(u8, peer, 4)),
    TP_fast_assign(
        __entry->width = width;
        __entry->port = port;
        memcpy(__entry->peer, peer, 4);
    ),
    TP_printk("peer=%pI4 port=%*d",
        __entry->peer, __entry->width, __entry->port)
);
```

## Fix safety

None is offered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tracepoint.check.context import CheckContext, PrintView
from tracepoint.check.finding import Finding
from tracepoint.check.syntax import RECORD_NAMES
from tracepoint.model.field import ArrayField, ScalarField
from tracepoint.printk.conversion import Conversion
from tracepoint.source.ast import Cast, Member, Name, Node, Number

# The letters after %p for which test_event_printk() knows that the pointer is followed.
_FOLLOWED = frozenset("BRrbMmIiEUVNadDgtCOf")
_COUNTED = re.compile(r"[0-9.*]*")


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield print formats for which the kernel checks another argument than the one that is followed."""
    for view in context.prints:
        if view.format is None or not any("*" in c.text for c in view.conversions):
            continue
        if sum(c.n_arguments for c in view.conversions) != len(view.arguments):
            continue
        for conversion, taken in _mistaken(view):
            if _is_plain_number(view, view.arguments[taken]):
                yield Finding(
                    f"the kernel takes argument {taken + 1} for that of {conversion.text}, "
                    "because of a * before it",
                    view.format,
                    help=("put conversions with a * after the pointers, or do without the width",),
                    event=view.event_name,
                )
                break


def _mistaken(view: PrintView) -> Iterator[tuple[Conversion, int]]:
    """Yield conversions that follow a pointer, with the argument that the kernel checks if that differs."""
    true = counted = 0
    for conversion in view.conversions:
        if conversion.conversion == "%":
            continue
        stars, is_followed = _as_the_kernel_counts(conversion)
        true += conversion.n_arguments
        if is_followed and counted + stars != true - 1:
            yield conversion, counted + stars
        counted += stars + 1


def _as_the_kernel_counts(conversion: Conversion) -> tuple[int, bool]:
    """Return how many arguments of `*` the kernel counts, and whether it takes the pointer as followed."""
    text = conversion.text[1:]
    text += conversion.letters if text.endswith("p") else ""
    star_first = text.startswith("*p")
    if text.startswith("p") or star_first:
        following = text[star_first + 1 : star_first + 2]
        return int(star_first), following in _FOLLOWED
    head = _COUNTED.match(text)
    end = head.end() if head else 0
    is_string = text[end : end + 1] == "s"
    return int(is_string and "*" in text[:end]), is_string


def _is_plain_number(view: PrintView, node: Node) -> bool:
    """Return whether an argument is a number, or just a field of the record that is not an array."""
    while isinstance(node, Cast):
        node = node.operand
    match node:
        case Number():
            return True
        case Member(base=Name(name=name), name=field) if name in RECORD_NAMES:
            found = view.view.fields.get(field)
            return isinstance(found, ScalarField) and not isinstance(found, ArrayField)
    return False
