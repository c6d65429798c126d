"""TP_STRUCT__entry contains something that is not a field.

## What it does

Reports operators, numbers and strings between the field macros. Commas and semicolons are ignored.

## Why it is bad

It becomes part of a struct, and of several tables, and does not compile.

## Example

```c
TRACE_EVENT(tick,
    TP_PROTO(int n),
    TP_ARGS(n),
    TP_STRUCT__entry(__field(int, n) + ), /* error: TP008 */
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
