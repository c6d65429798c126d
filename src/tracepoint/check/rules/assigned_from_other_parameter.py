"""A field named after one parameter is assigned from another one.

## What it does

Finds `__entry->prev_pid = next->pid` where both `prev` and `next` are parameters, and `__entry->from = to`
where both are parameters and fields.

## Why it is bad

Most often the line was copied from the one above: the record holds the same value twice, under two names. The
rule looks at names alone, so the finding is a note.

## Example

```c
TRACE_EVENT(changed,
    TP_PROTO(struct task_struct *prev, struct task_struct *next),
    TP_ARGS(prev, next),
    TP_STRUCT__entry(__field(pid_t, prev_pid) __field(pid_t, next_pid)),
    TP_fast_assign(
        __entry->prev_pid = next->pid; /* error: TP218 */
        __entry->next_pid = next->pid;
    ),
    TP_printk("prev=%d next=%d", __entry->prev_pid, __entry->next_pid)
);
```

## Use instead

```c
TRACE_EVENT(changed,
    TP_PROTO(struct task_struct *prev, struct task_struct *next),
    TP_ARGS(prev, next),
    TP_STRUCT__entry(__field(pid_t, prev_pid) __field(pid_t, next_pid)),
    TP_fast_assign(
        __entry->prev_pid = prev->pid;
        __entry->next_pid = next->pid;
    ),
    TP_printk("prev=%d next=%d", __entry->prev_pid, __entry->next_pid)
);
```

## Fix safety

Unsafe: the record then holds a different value. The fix uses the parameter that the field is named after.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tracepoint.check.context import CheckContext
from tracepoint.check.finding import Finding
from tracepoint.check.syntax import stores
from tracepoint.model.field import Field
from tracepoint.source.lexer import Kind, Token


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield stores whose two sides name different parameters."""
    for view in context.classes:
        types = {p.name: p.ctype for p in view.event_class.proto.params if p.name}
        for name, value in stores(view.assign) if len(types) > 1 else ():
            used = [
                token
                for index, token in enumerate(value)
                if token.kind is Kind.NAME
                and token.text in types
                and (not index or value[index - 1].text not in {"->", "."})
            ]
            if len({token.text for token in used}) != 1:
                continue
            meant = _meant(name.text, value, used[0].text, view.fields)
            if types.get(meant) == types[used[0].text]:
                yield Finding(
                    f"field {name.text} is assigned from {used[0].text}, not from {meant}",
                    used[0],
                    label=f"was {meant} meant?",
                    fix=context.fix(f"use {meant}", [used[0]], meant) if len(used) == 1 else None,
                    event=view.event_name,
                )


def _meant(name: str, value: Sequence[Token], used: str, fields: Mapping[str, Field]) -> str:
    """Return the parameter that a field is named after, empty when that is the one used or there is none."""
    if len(value) == 1:
        return name if name != used and used in fields else ""
    member = value[-1].text
    if value[-1].kind is not Kind.NAME or not name.endswith(f"_{member}"):
        return ""
    meant = name.removesuffix(f"_{member}")
    return meant if meant != used and f"{used}_{member}" in fields else ""
