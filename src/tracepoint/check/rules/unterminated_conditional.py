"""An `#if` has no `#endif`, or the other way round.

## What it does

Pairs the conditional directives of the header.

## Why it is bad

The header does not compile, and the events after it may seem to be missing.

## Example

```c
#ifdef CONFIG_TICKS /* error: TP003 */
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
#ifdef CONFIG_TICKS
TRACE_EVENT(tick,
    TP_PROTO(int n),
    TP_ARGS(n),
    TP_STRUCT__entry(__field(int, n)),
    TP_fast_assign(__entry->n = n;),
    TP_printk("n=%d", __entry->n)
);
#endif
```

## Fix safety

None is offered.
"""
