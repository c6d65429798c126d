"""An event uses a class that is not declared before it.

## What it does

Reports `DEFINE_EVENT` and its variants whose first argument is not a class of this header.

## Why it is bad

It does not compile, and the event's record cannot be checked.

## Example

```c
DEFINE_EVENT(ticks, tick, /* error: TP007 */
    TP_PROTO(int n), TP_ARGS(n));
```

## Use instead

```c
DECLARE_EVENT_CLASS(ticks,
    TP_PROTO(int n),
    TP_ARGS(n),
    TP_STRUCT__entry(__field(int, n)),
    TP_fast_assign(__entry->n = n;),
    TP_printk("n=%d", __entry->n)
);
DEFINE_EVENT(ticks, tick, TP_PROTO(int n), TP_ARGS(n));
```

## Fix safety

None is offered.
"""
