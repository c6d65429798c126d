"""`__assign_str` has a different number of arguments than this kernel tree expects.

## What it does

Compares each `__assign_str` and `__assign_rel_str` with the tree at hand (two arguments up to 6.9, one from
6.10 on). Without a tree it compares the uses in one header with each other.

## Why it is bad

The header does not compile: 'macro "__assign_str" passed 2 arguments, but takes just 1'.

## Example

```c
TRACE_EVENT(named,
    TP_PROTO(const char *name, const char *kind),
    TP_ARGS(name, kind),
    TP_STRUCT__entry(
        __string(name, name)
        __string(kind, kind)
    ),
    TP_fast_assign(
        __assign_str(name);
        __assign_str(kind, kind); /* error: TP501 */
    ),
    TP_printk("name=%s kind=%s", __get_str(name), __get_str(kind))
);
```

## Use instead

```c
TRACE_EVENT(named,
    TP_PROTO(const char *name, const char *kind),
    TP_ARGS(name, kind),
    TP_STRUCT__entry(
        __string(name, name)
        __string(kind, kind)
    ),
    TP_fast_assign(
        __assign_str(name);
        __assign_str(kind);
    ),
    TP_printk("name=%s kind=%s", __get_str(name), __get_str(kind))
);
```

## Fix safety

Safe when the tree is known: `__string` measures the same string that is copied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracepoint.check.context import CheckContext, ClassView
from tracepoint.check.finding import Finding
from tracepoint.check.syntax import calls_in, meaning
from tracepoint.diagnostics import Fix, Safety
from tracepoint.model.field import StringField
from tracepoint.source.lexer import Token

_MACROS = frozenset({"__assign_str", "__assign_rel_str"})


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield assignments with the wrong number of arguments."""
    wanted = context.facts.assign_str_arity
    for view in context.classes:
        for name, arguments in calls_in(view.assign):
            if name.text not in _MACROS or not arguments[0]:
                continue
            given = len(arguments)
            wanted = wanted or given  # without a tree the first use decides
            if given == wanted:
                continue
            of = "this tree's" if context.facts.assign_str_arity else "the one before takes"
            how = f"{of} {name.text} takes {wanted}" if context.facts.assign_str_arity else f"{of} {wanted}"
            yield Finding(
                f"{name.text} is given {given} argument{'s' * (given != 1)}, {how}",
                name,
                fix=_fix(context, view, arguments) if context.facts.assign_str_arity else None,
                event=view.event_name,
            )


def _fix(context: CheckContext, view: ClassView, arguments: Sequence[Sequence[Token]]) -> Fix | None:
    field = view.fields.get(arguments[0][0].text)
    if not isinstance(field, StringField):
        return None
    if context.facts.assign_str_arity == 2:
        return context.fix("name the source", arguments[0], f"{field.name}, {field.source}", Safety.SAFE)
    is_same = meaning(field.source.tokens) == meaning(arguments[-1])
    safety = Safety.SAFE if is_same else Safety.UNSAFE
    return context.fix("leave the source out", [*arguments[0], *arguments[-1]], field.name, safety)
