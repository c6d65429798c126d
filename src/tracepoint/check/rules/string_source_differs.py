"""The string that is measured is not the string that is copied.

## What it does

Compares the source given to `__string(name, source)` with that given to `__assign_str(name, source)`, both
after macro expansion.

## Why it is bad

`__string` measures its source and reserves that many bytes; `__assign_str` copies its own source into them
without looking at the length. When the second string is longer, it overwrites what follows in the ring
buffer; when the two can differ at all, it may. Since 6.10 `__assign_str` takes one argument and copies
what `__string` measured, so the record then holds another string than the author meant.

## Example

```c
TRACE_EVENT(link_up,
    TP_PROTO(const char *name, const char *alias),
    TP_ARGS(name, alias),
    TP_STRUCT__entry(__string(name, name)),
    TP_fast_assign(__assign_str(name, alias);), /* error: TP211 */
    TP_printk("name=%s", __get_str(name))
);
```

## Use instead

```c
TRACE_EVENT(link_up,
    TP_PROTO(const char *name, const char *alias),
    TP_ARGS(name, alias),
    TP_STRUCT__entry(__string(name, alias)),
    TP_fast_assign(__assign_str(name, alias);),
    TP_printk("name=%s", __get_str(name))
);
```

## Fix safety

Unsafe: the fix gives `__string` the source that is copied, which changes the length of the record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.check.finding import Finding
from tracepoint.check.syntax import calls_in, meaning, spell
from tracepoint.model.field import StringField

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracepoint.check.context import CheckContext
    from tracepoint.source.lexer import Token

_COPIES = frozenset({"__assign_str", "__assign_rel_str"})


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield copies whose source is not the measured one."""
    for view in context.classes:
        for name, arguments in calls_in(view.assign):
            if name.text not in _COPIES or len(arguments) != 2 or not arguments[0] or not arguments[1]:
                continue
            field = view.fields.get(arguments[0][0].text)
            if not isinstance(field, StringField) or field.length is not None or field.va_list is not None:
                continue
            measured = field.source.tokens
            if not measured or _same(measured, arguments[1]):
                continue
            yield Finding(
                f"string {field.name} is measured as {field.source} but copied from {spell(arguments[1])}",
                arguments[1][0],
                label="may be longer than the room that was made",
                notes=((field.origin, "the length is taken from here"),),
                fix=context.fix("measure what is copied", list(measured), spell(arguments[1])),
                event=view.event_name,
            )


def _same(one: Sequence[Token], other: Sequence[Token]) -> bool:
    return _plain(one) == _plain(other)


def _plain(tokens: Sequence[Token]) -> list[str]:
    """Return the texts without parentheses and without what changes no value."""
    return [t for t in meaning(tokens) if t not in {"(", ")", "const", "char"}]
