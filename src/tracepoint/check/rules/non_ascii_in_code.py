"""The code contains a character beyond ASCII, which C does not allow there.

## What it does

Finds no-break spaces, typographic quotes and other characters beyond ASCII outside comments and strings. Code
that was pasted from web pages often has them. While a header has one, fixes of other findings do not count as
safe.

## Why it is bad

The compiler rejects them ("stray '\\302' in program"), and most editors show a no-break space as a space.

## Example

```c
TRACE_EVENT(tick,
    TP_PROTO(int n),
    TP_ARGS(n),
    TP_STRUCT__entry(__field(int, n)),
    TP_fast_assign(__entry->n =\xa0n;), /* error: TP020 */
    TP_printk("n=%d", __entry->n)
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

Safe: a no-break or other space becomes a plain space. No fix is offered for other characters.
"""  # noqa: D301 - the page shows such a character

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from tracepoint.check.context import CheckContext
from tracepoint.check.finding import Finding
from tracepoint.diagnostics import Safety
from tracepoint.errors import SourceError
from tracepoint.source.lexer import Kind, lex


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield the characters that are not C."""
    source = context.header.source
    if source is None or source.text.isascii():
        return
    try:
        tokens = lex(source)
    except SourceError:
        return
    for token in tokens:
        if token.kind is Kind.BAD and len(token.text) == 1 and not token.text.isascii():
            name = unicodedata.name(token.text, "a byte that is not UTF-8").lower()
            is_space = token.text.isspace()
            yield Finding(
                f"{name} (U+{ord(token.text):04X}) in the code",
                token,
                fix=context.fix("put a space there", [token], " ", Safety.SAFE) if is_space else None,
            )
