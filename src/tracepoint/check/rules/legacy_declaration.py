"""A tracepoint is declared with the syntax of 2008.

## What it does

Reports `DEFINE_TRACE(name, TPPROTO(...), TPARGS(...))`, and shows today's syntax.

## Why it is bad

No kernel since 2.6.30 has these macros. The first documentation of tracepoints, and articles copied from it,
still use them.

## Example

```c
DEFINE_TRACE(tick, TPPROTO(int n), TPARGS(n)); /* error: TP150 */
```

## Use instead

```c
DECLARE_TRACE(tick, TP_PROTO(int n), TP_ARGS(n));
```

## Fix safety

None is offered here; `tracepoint show FILE --as header` writes today's syntax.
"""
