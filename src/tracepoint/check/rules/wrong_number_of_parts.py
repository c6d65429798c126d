"""A declaring macro has too many or too few arguments.

## What it does

Counts the arguments of `TRACE_EVENT`, `DEFINE_EVENT` and similar macros. This finds extra commas
and forgotten parentheses around a part.

## Why it is bad

The header does not compile, and the compiler points into the kernel's macros.

## Example

```c
TRACE_EVENT(tick, /* error: TP002 */
    TP_PROTO(int n),
    TP_ARGS(n),
    TP_STRUCT__entry(__field(int, n)),
    TP_printk("n=%d", n)
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
