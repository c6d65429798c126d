r"""A suppression comment silences nothing.

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
    TP_PROTO(int n),
    TP_ARGS(n),
    TP_STRUCT__entry(__field(int, n)),
    TP_fast_assign(__entry->n = n;),
    /* tracepoint: ignore[TP305] old scripts count on the empty line */
    TP_printk("n=%d\n", __entry->n)
);
```

## Fix safety

None is offered.
"""
