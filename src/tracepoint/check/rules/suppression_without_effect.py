r"""A suppression comment silences nothing.

## What it does

Reports `tracepoint: ignore` comments that no finding matched.

## Why it is bad

The fault was fixed, or the comment is on the wrong line, or its code is misspelled: it hides nothing today,
and may hide something else tomorrow.

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
    /* tracepoint: ignore[TP305] old scripts rely on the empty line */
    TP_printk("n=%d\n", __entry->n)
);
```

## Fix safety

None is offered.
"""
