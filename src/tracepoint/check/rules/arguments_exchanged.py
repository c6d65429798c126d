"""Two arguments of a print format are swapped.

## What it does

Compares the words before each conversion with the name of the field that it prints, and finds two fields that
each fit the other's words better than their own.

## Why it is bad

The text shows each value under the other's name. It compiles, and readers of the trace cannot see the
mistake. The rule looks at names alone, so the finding is a note.

## Example

```c
TRACE_EVENT(resized,
    TP_PROTO(int old_size, int new_size),
    TP_ARGS(old_size, new_size),
    TP_STRUCT__entry(__field(int, old_size) __field(int, new_size)),
    TP_fast_assign(
        __entry->old_size = old_size;
        __entry->new_size = new_size;
    ),
    TP_printk("old_size=%d new_size=%d", __entry->new_size, __entry->old_size) /* error: TP325 */
);
```

## Use instead

```c
TRACE_EVENT(resized,
    TP_PROTO(int old_size, int new_size),
    TP_ARGS(old_size, new_size),
    TP_STRUCT__entry(__field(int, old_size) __field(int, new_size)),
    TP_fast_assign(
        __entry->old_size = old_size;
        __entry->new_size = new_size;
    ),
    TP_printk("old_size=%d new_size=%d", __entry->old_size, __entry->new_size)
);
```

## Fix safety

None is offered: the words may be what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from tracepoint.check.context import CheckContext
from tracepoint.check.finding import Finding
from tracepoint.check.labels import fit, labelled_fields


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield pairs of arguments that fit better the other way round."""
    for shown in context.prints:
        for one, other in combinations(labelled_fields(shown), 2):
            if one.name == other.name:
                continue
            fits_one = fit(one.words, other.name) > fit(one.words, one.name)
            if fits_one and fit(other.words, one.name) > fit(other.words, other.name):
                yield Finding(
                    f'{one.name} is shown as "{" ".join(one.words)}", '
                    f'{other.name} as "{" ".join(other.words)}"',
                    one.node,
                    label="are the two swapped?",
                    notes=((other.node, "the other one"),),
                    event=shown.event_name,
                )
