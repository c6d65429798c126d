"""Events depend on a macro that no file defines, and the C file that could define it was not found.

## What it does

Reports `#ifdef NAME` and `#if defined(NAME)` around events when neither the header nor what it includes
defines `NAME`, and the C file that defines `CREATE_TRACE_POINTS` for the header is not found. In a kernel
tree, that C file and what it includes are read too, and they decide.

## Why it is bad

Such events are not read, so no other rule checks them.

## Example

```c
#ifdef DEMO_HAS_TICKS /* error: TP019 */
TRACE_EVENT(tick,
    TP_PROTO(int n),
    TP_ARGS(n),
    TP_STRUCT__entry(__field(int, n)),
    TP_fast_assign(__entry->n = n;),
    TP_printk("n=%d", __entry->n)
);
#endif
```

## Use instead

Define the macro (`-D DEMO_HAS_TICKS`), check the header inside its tree, or make it a configuration option:

```c
#ifdef CONFIG_DEMO_TICKS
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
