r"""The print format ends in a newline.

## What it does

Finds `\n` at the end of the format string of `TP_printk`.

## Why it is bad

The kernel ends the line itself, so the trace gets an empty line after each event. In tracefs the newline
is unescaped inside `print fmt:`, and readers that parse `format` files line by line stop there.

## Example

```c
TRACE_EVENT(tick,
    TP_PROTO(int n),
    TP_ARGS(n),
    TP_STRUCT__entry(__field(int, n)),
    TP_fast_assign(__entry->n = n;),
    TP_printk("n=%d\n", __entry->n) /* error: TP305 */
);
```

## Use instead

```c
TRACE_EVENT(tick,
    TP_PROTO(int n),
    TP_ARGS(n),
    TP_STRUCT__entry(__field(int, n)),
    TP_fast_assign(__entry->n = n;),
    TP_printk("n=%d", __entry->n)
);
```

## Fix safety

Unsafe: the trace text changes, since the empty lines go away.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracepoint.check.context import CheckContext, PrintView
from tracepoint.check.finding import Finding
from tracepoint.source.lexer import Kind, Token


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield formats that end in a newline."""
    for view in context.prints:
        text = view.format
        if text is None or not text.value.endswith("\n"):
            continue
        token = last_literal(view)
        fix = None
        if token is not None and token.text.endswith('\\n"'):
            fix = context.fix("remove the newline", [token], token.text[: token.text.rindex("\\n")] + '"')
        yield Finding(
            "the print format ends in a newline",
            token or text,
            label="the kernel adds its own",
            fix=fix,
            event=view.event_name,
        )


def last_literal(view: PrintView) -> Token | None:
    """Return the last string literal of the format."""
    found = None
    for token in view.tokens:
        if token.text == "," and token.kind is Kind.PUNCT:
            break
        if token.kind is Kind.STRING:
            found = token
    return found
