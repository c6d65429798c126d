"""The string that is measured is not the string that is copied.

## What it does

Compares the source in `__string(name, source)` with that in `__assign_str(name, source)`, both
after macro expansion.

## Why it is bad

`__string` measures its source and reserves that many bytes; `__assign_str` copies its own source into them
without looking at the length. When the second string is longer, the copy
overwrites what follows in the ring buffer. Since 6.10 `__assign_str` takes one argument and copies
what `__string` measured, so the record then holds a different string than the author intended.

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

Unsafe: the fix makes `__string` measure the source that is copied, which changes the length of the record; if
the measured source is guarded as in `x ? ... : ...`, the fix copies that one instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracepoint.check.context import CheckContext, ClassView
from tracepoint.check.finding import Finding
from tracepoint.check.syntax import calls_in, meaning
from tracepoint.diagnostics import Fix
from tracepoint.model.field import StringField
from tracepoint.source.lexer import Kind, Token
from tracepoint.source.macros import spell

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
            if not measured or _same(measured, arguments[1]) or _is_other_spelling(view, arguments[1]):
                continue
            yield Finding(
                f"string {field.name} is measured as {field.source} but copied from {spell(arguments[1])}",
                (arguments[1][0], arguments[1][-1]),
                label="may be longer than the space reserved for it",
                notes=((field.origin, "the length is taken from here"),),
                fix=_fix(context, field, arguments[1]),
                event=view.event_name,
            )


def _fix(context: CheckContext, field: StringField, copied: Sequence[Token]) -> Fix | None:
    """Make both the same: the one that is guarded as in `x ? ... : ...`, else the one that is copied."""
    measured = list(field.source.tokens)
    if any(t.text == "?" for t in measured):
        return context.fix("copy what is measured", copied, str(field.source))
    return context.fix("measure what is copied", measured, spell(copied))


def _is_other_spelling(view: ClassView, copied: Sequence[Token]) -> bool:
    """Return whether the copy uses a local variable, or a condition that `__string` has as `?:`.

    Then the two may well be the same string, and nothing is reported.
    """
    texts = {t.text for t in view.assign}
    if texts & {"if", "switch"}:
        return True
    params = view.event_class.proto.names
    names = [
        t.text
        for index, t in enumerate(copied)
        if t.kind is Kind.NAME and not (index and copied[index - 1].text in {"->", "."})
    ]
    return any(name in _declared(view.assign) and name not in params for name in names)


def _declared(tokens: Sequence[Token]) -> set[str]:
    """Return the names before a plain `=` and after a name or a star: locals being declared."""
    return {
        t.text
        for before, t, after in zip(tokens, tokens[1:], tokens[2:], strict=False)
        if t.kind is Kind.NAME
        and after.text in {"=", ";", ","}
        and (before.kind is Kind.NAME or before.text == "*")
    }


def _same(one: Sequence[Token], other: Sequence[Token]) -> bool:
    return _plain(one) == _plain(other)


def _plain(tokens: Sequence[Token]) -> list[str]:
    """Return the texts without parentheses and other tokens that change no value."""
    return [t for t in meaning(tokens) if t not in {"(", ")", "const", "char"}]
