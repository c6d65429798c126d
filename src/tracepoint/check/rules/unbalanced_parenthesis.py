"""The parenthesis of a declaring macro never closes.

## What it does

Reports `TRACE_EVENT(` and similar macros when the text ends before the matching `)`.

## Why it is bad

Neither this program nor the compiler can read anything after it.

## Example

```c
TRACE_EVENT(tick, /* error: TP001 */
    TP_PROTO(int n),
    TP_ARGS(n),
    TP_STRUCT__entry(__field(int, n),
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
    TP_printk("n=%d", __entry->n)
);
```

## Fix safety

None is offered.
"""
