"""A part of a declaration is not wrapped in its macro.

## What it does

Reports a part without a macro, or in the macro of another part, such as `TP_ARGS` where `TP_PROTO` belongs.

## Why it is bad

Some of these compile, because the macros pass their text on unchanged. They no longer compile when the text
contains a comma, and tools that look for the macro's name do not find the part.

## Example

```c
TRACE_EVENT(tick,
    TP_ARGS(int n), /* error: TP006 */
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
    TP_printk("n=%d", __entry->n)
);
```

## Fix safety

None is offered.
"""
