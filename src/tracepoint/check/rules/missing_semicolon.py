"""A statement of TP_fast_assign does not end with a semicolon.

## What it does

Finds an assignment, or a call that fills a field, after which the next statement begins without a `;`.

## Why it is bad

The header does not compile, and the compiler's message points into the kernel's macros.

## Example

```c
TRACE_EVENT(moved,
    TP_PROTO(int from, int to),
    TP_ARGS(from, to),
    TP_STRUCT__entry(__field(int, from) __field(int, to)),
    TP_fast_assign(
        __entry->from = from /* error: TP216 */
        __entry->to = to;
    ),
    TP_printk("from=%d to=%d", __entry->from, __entry->to)
);
```

## Use instead

```c
TRACE_EVENT(moved,
    TP_PROTO(int from, int to),
    TP_ARGS(from, to),
    TP_STRUCT__entry(__field(int, from) __field(int, to)),
    TP_fast_assign(
        __entry->from = from;
        __entry->to = to;
    ),
    TP_printk("from=%d to=%d", __entry->from, __entry->to)
);
```

## Fix safety

Safe: the fix adds the semicolon, without which nothing compiles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracepoint.check.context import CheckContext
from tracepoint.check.finding import Finding
from tracepoint.check.syntax import closing
from tracepoint.diagnostics import Safety
from tracepoint.source.lexer import Kind, Token

_NO_OPERANDS = frozenset({"sizeof", "return", "else", "do", "case", "goto", "typeof", "__typeof__"})
_TAGS = frozenset({"struct", "union", "enum"})
_FILLS = frozenset({"memcpy", "memmove", "memset", "strscpy", "strncpy", "strcpy", "strlcpy"})
_OPERANDS = frozenset({Kind.NAME, Kind.NUMBER, Kind.CHAR})


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield the ends of statements without a semicolon."""
    for view in context.classes:
        for last in _unended(view.assign):
            yield Finding(
                "a semicolon is missing in TP_fast_assign",
                last,
                label="the statement ends here",
                fix=context.fix("add the semicolon", [last], f"{last.text};", Safety.SAFE),
                event=view.event_name,
            )


def _unended(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield the last token of every statement that another one follows without a semicolon."""
    at = 0
    is_value = False
    while at < len(tokens) - 1:
        token = tokens[at]
        end = closing(tokens, at) if token.text in {"(", "["} else at
        if token.text in {";", "{", "}", "="}:
            is_value = token.text == "="
        elif (
            end < len(tokens) - 1 and tokens[end + 1].kind is Kind.NAME and _is_operand(tokens, at, is_value)
        ):
            yield tokens[end]
            is_value = False
        at = end + 1


def _is_operand(tokens: Sequence[Token], at: int, is_value: bool) -> bool:
    """Return whether a value, or a call that is a statement of its own, may end with what begins here."""
    token = tokens[at]
    before = tokens[at - 1] if at else None
    if token.text == "(":
        if before is None or before.kind is not Kind.NAME or before.text in _NO_OPERANDS:
            return False
        return is_value or before.text in _FILLS or before.text.startswith("__assign_")
    if not is_value or (before is not None and before.text in _TAGS):
        return False
    return token.text == "[" or (token.kind in _OPERANDS and token.text not in _NO_OPERANDS | _TAGS)
