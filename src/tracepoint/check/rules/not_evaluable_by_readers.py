"""A print format calls kernel functions or reads kernel variables.

## What it does

Finds calls of functions other than the `__print_*` and `__get_*` helpers, statement expressions, and
variables such as `jiffies` or tables of names, in the arguments of `TP_printk`. A `show_x()` is assumed to be
a macro, by convention, even if its definition was not found. Headers of architectures other than x86 are
skipped.

## Why it is bad

The kernel can evaluate them when `trace` is read. `perf`, `trace-cmd` and other readers of the raw record
cannot: they reject the event or print it without its fields. A variable is also read too late: its value is
from when the trace is read, not from when the event fired.

## Example

```c
TRACE_EVENT(age,
    TP_PROTO(unsigned long since),
    TP_ARGS(since),
    TP_STRUCT__entry(__field(unsigned long, since)),
    TP_fast_assign(__entry->since = since;),
    TP_printk("age=%lu", jiffies - __entry->since) /* error: TP308 */
);
```

## Use instead

```c
TRACE_EVENT(age,
    TP_PROTO(unsigned long since),
    TP_ARGS(since),
    TP_STRUCT__entry(__field(unsigned long, age)),
    TP_fast_assign(__entry->age = jiffies - since;),
    TP_printk("age=%lu", __entry->age)
);
```

To show names of values, use `__print_symbolic()` and `__print_flags()`.

## Fix safety

None is offered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tracepoint.check.context import CheckContext, PrintView
from tracepoint.check.finding import Finding
from tracepoint.model.vocabulary import PRINT_HELPERS
from tracepoint.source.ast import Call, Name, StatementExpression
from tracepoint.source.lexer import Kind

#: Byte order and arithmetic macros of linux/ headers that become plain C when nothing is swapped,
#: and words that are operators although they look like calls.
_PLAIN = re.compile(
    r"^(?:le(?:16|32|64)_to_cpup?|cpu_to_le(?:16|32|64)|__le\d+_to_cpu|BIT|BIT_ULL|GENMASK|GENMASK_ULL|MAJOR|MINOR"
    r"|MKDEV|min|max|min_t|max_t|offsetof|ARRAY_SIZE|__builtin_constant_p|__builtin_choose_expr|upper_32_bits"
    r"|lower_32_bits|abs|likely|unlikely|__force|FIELD_GET|typeof|__typeof__|__builtin_offsetof)$"
)
#: The include paths are those of x86: on other architectures a name may be a macro of asm/.
_OTHER_ARCH = re.compile(r"(?:^|/)arch/(?!x86/)[^/]+/")
#: What libtraceevent's own function handlers know (its plugins).
_PLUGINS = frozenset(
    [
        "jiffies_to_msecs",
        "scsi_trace_parse_cdb",
        "xen_hypercall_name",
        "kvm_emulate_insn",
        "kvm_mmu_print_role",
        "blk_fill_rwbs",
        "__trace_sched_switch_state",
        "sys_read",
        "sys_write",
    ]
)


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield print formats that only the kernel can evaluate."""
    if _OTHER_ARCH.search(context.header.path):
        return  # the macros of its asm/ headers are not visible
    for view in context.prints:
        names = _functions(context, view)
        if names:
            first = next(iter(names.values()))
            yield Finding(
                f"TP_printk calls {', '.join(f'{n}()' for n in names)}, which only the kernel can",
                first,
                help=("record the result when the event fires, or use __print_symbolic/__print_flags",),
                event=view.event_name,
            )
        variables = _variables(context, view)
        if variables:
            yield Finding(
                f"TP_printk reads the kernel's {', '.join(variables)}",
                next(iter(variables.values())),
                label="readers of raw records do not have it, and the kernel shows its value at reading time",
                help=("record the value when the event fires",),
                event=view.event_name,
            )
        for node in view.all_nodes:
            if isinstance(node, StatementExpression):
                yield Finding(
                    "TP_printk holds a statement expression, which readers of raw records cannot evaluate",
                    node,
                    help=("compute the value in TP_fast_assign",),
                    event=view.event_name,
                )
                break


def _functions(context: CheckContext, view: PrintView) -> dict[str, Call]:
    found: dict[str, Call] = {}
    for call in view.calls:
        name = call.name
        if not name or name in PRINT_HELPERS or name in _PLUGINS or name in found:
            continue
        if name.startswith("__print_") or _PLAIN.match(name) or not _is_function(context, name):
            continue
        found[name] = call
    return found


def _is_function(context: CheckContext, name: str) -> bool:
    """Return whether a called name is a function: not a known macro, and not named like one."""
    if name.isupper() or name.startswith("show_"):
        return False
    macro = context.macro(name)
    if macro is None:
        return True
    calls = {
        t.text
        for t, after in zip(macro.body, macro.body[1:], strict=False)
        if t.kind is Kind.NAME and after.text == "("
    }
    return name in calls  # a macro that only renames the function of the same name


def _variables(context: CheckContext, view: PrintView) -> dict[str, Name]:
    found: dict[str, Name] = {}
    params = view.view.event_class.proto.names
    locals_ = {
        t.text
        for node in view.all_nodes
        if isinstance(node, StatementExpression)
        for t in node.tokens
        if t.kind is Kind.NAME
    }
    for name in view.free_names:
        text = name.name
        if text in params or text in locals_ or text in view.view.fields or text in found:
            continue
        if not text.islower() or text in {"p", "s", "iter", "true", "false", "current", "ret", "flags"}:
            continue
        if context.macro(text) is None and not context.is_enumerator(text):
            found[text] = name
    return found
