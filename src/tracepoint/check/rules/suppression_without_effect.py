"""A suppression comment silences nothing.

## What it does

Reports `tracepoint: ignore` comments that no finding matched.

## Why it is bad

The fault was mended, or the comment stands on the wrong line, or its code is mistyped: then it hides
nothing today and something else tomorrow.

## Example

```c
/* tracepoint: ignore[TP301] */ /* error: TP090 */
TRACE_EVENT(tick,
    TP_PROTO(int n),
    TP_ARGS(n),
    TP_STRUCT__entry(__field(int, n)),
    TP_fast_assign(__entry->n = n;),
    TP_printk("n=%d", __entry->n)
);
```

## Use instead

```c
TRACE_EVENT(tick,
    TP_PROTO(const char *s),
    TP_ARGS(s),
    TP_STRUCT__entry(__field(const char *, s)),
    TP_fast_assign(__entry->s = s;),
    /* tracepoint: ignore[TP302] every caller uses tracepoint_string() */
    TP_printk("s=%s", __entry->s)
);
```

## Fix safety

None is offered.
"""
