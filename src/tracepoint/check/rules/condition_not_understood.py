"""The condition of an `#if` cannot be evaluated; it is treated as false.

## What it does

Reports `#if` expressions with functions or syntax that the preprocessor of this program does not know.

## Why it is bad

Events in the branch that was not read are not checked.

## Example

```c
#if 1 + /* error: TP005 */
#endif
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
#if defined(CONFIG_TICKS) && CONFIG_HZ > 100
#endif
TRACE_EVENT(tick,
    TP_PROTO(int n),
    TP_ARGS(n),
    TP_STRUCT__entry(__field(int, n)),
    TP_fast_assign(__entry->n = n;),
    TP_printk("n=%d", __entry->n)
);
```

## Fix safety

None is offered.
"""
