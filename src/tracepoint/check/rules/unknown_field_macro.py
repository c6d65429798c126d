"""TP_STRUCT__entry uses an unknown macro.

## What it does

Reports names in `TP_STRUCT__entry` that are not field macros and that no file that was read defines.

## Why it is bad

Plain C (`int n;`) does not compile there. If the macro is from a header that was not found, the record
is not known, and its size cannot be checked.

## Example

```c
TRACE_EVENT(tick,
    TP_PROTO(int n),
    TP_ARGS(n),
    TP_STRUCT__entry(__feild(int, n)), /* error: TP009 */
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
