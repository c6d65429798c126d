"""TP_fast_assign calls something that may sleep or allocate.

## What it does

Finds calls of functions that take a mutex, allocate with a sleeping flag, touch user memory or wait.

## Why it is bad

Probes run at the tracepoint, with preemption disabled, often in interrupts and under spinlocks. A sleeping
call there is a deadlock or a `BUG: scheduling while atomic`, and only while the event is enabled.

## Example

```c
TRACE_EVENT(name_read,
    TP_PROTO(const char __user *where),
    TP_ARGS(where),
    TP_STRUCT__entry(__array(char, name, 16)),
    TP_fast_assign(
        if (copy_from_user(__entry->name, where, 16)) /* error: TP209 */
            __entry->name[0] = 0;
    ),
    TP_printk("name=%s", __entry->name)
);
```

## Use instead

Fetch the value before the tracepoint and pass it as a parameter, or use the variant that fails instead of
sleeping (`copy_from_user_nofault`, `GFP_NOWAIT`).

```c
TRACE_EVENT(name_read,
    TP_PROTO(const char *name),
    TP_ARGS(name),
    TP_STRUCT__entry(__string(name, name)),
    TP_fast_assign(__assign_str(name, name);),
    TP_printk("name=%s", __get_str(name))
);
```

## Fix safety

None is offered.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracepoint.check.context import CheckContext
from tracepoint.check.finding import Finding
from tracepoint.check.syntax import calls_in
from tracepoint.source.macros import spell

_SLEEPS = frozenset(
    [
        "mutex_lock",
        "mutex_lock_interruptible",
        "down",
        "down_read",
        "down_write",
        "msleep",
        "usleep_range",
        "schedule",
        "copy_from_user",
        "copy_to_user",
        "get_user",
        "put_user",
        "strncpy_from_user",
        "might_sleep",
        "wait_event",
        "wait_for_completion",
        "synchronize_rcu",
        "vmalloc",
        "vzalloc",
        "cond_resched",
        "rtnl_lock",
    ]
)
_ALLOCATES = frozenset(
    ["kmalloc", "kzalloc", "kcalloc", "kstrdup", "kmemdup", "kasprintf", "krealloc", "kvmalloc"]
)


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield calls that may sleep."""
    for view in context.classes:
        if view.event_class.macro.endswith("_SYSCALL_CLASS") or any(e.is_syscall for e in view.events):
            continue  # these run where faults are allowed
        for name, arguments in calls_in(view.assign):
            flags = spell(arguments[-1]) if arguments else ""
            if name.text in _SLEEPS or (name.text in _ALLOCATES and "GFP_KERNEL" in flags):
                yield Finding(
                    f"{name.text}() may sleep, but probes run with preemption disabled",
                    name,
                    help=("fetch the value before the tracepoint and pass it in",),
                    event=view.event_name,
                )
