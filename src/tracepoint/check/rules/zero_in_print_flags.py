"""A list of `__print_flags` has an entry whose value is zero.

## What it does

Evaluates the values of the list of `__print_flags`, and finds zeros. Values that are zero only when a
configuration option is off are ignored, and so is an end of the list without a name.

## Why it is bad

Zero is contained in every set of flags: as soon as another bit is set, the name of zero is printed with it
("NONE|READ"). And when no bit is set, the list is not searched, so it is *not* printed then.
(trace_print_flags_seq() in kernel/trace/trace_output.c.)

## Example

```c
TRACE_EVENT(opened,
    TP_PROTO(int mode),
    TP_ARGS(mode),
    TP_STRUCT__entry(__field(int, mode)),
    TP_fast_assign(__entry->mode = mode;),
    TP_printk("mode=%s", __print_flags(__entry->mode, "|",
        { 0, "NONE" }, /* error: TP314 */
        { 1, "READ" },
        { 2, "WRITE" }))
);
```

## Use instead

```c
TRACE_EVENT(opened,
    TP_PROTO(int mode),
    TP_ARGS(mode),
    TP_STRUCT__entry(__field(int, mode)),
    TP_fast_assign(__entry->mode = mode;),
    TP_printk("mode=%s", __entry->mode ? __print_flags(__entry->mode, "|",
        { 1, "READ" },
        { 2, "WRITE" }) : "NONE")
);
```

## Fix safety

None is offered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tracepoint.check.context import CheckContext
from tracepoint.check.finding import Finding
from tracepoint.check.lists import value_lists
from tracepoint.source.ast import Name, Node, walk
from tracepoint.source.lexer import Kind


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield flags that are zero."""
    for view in context.prints:
        for call, items in value_lists(context, view):
            if "flags" not in call.name:
                continue
            for item in items:
                # Without a literal name it is the end of a list, or named by a wrapper of the list.
                if item.value == 0 and item.name is not None and not _is_configured(context, item.node):
                    named = f'{item.text} ("{item.name}")'
                    yield Finding(
                        f"{named} is zero: it is printed with every other flag, but never alone",
                        item.node,
                        event=view.event_name,
                    )


def _is_configured(context: CheckContext, node: Node) -> bool:
    """Return whether a value is zero only if an option is off: its macro has another definition nearby."""
    todo = [part.name for part in walk(node) if isinstance(part, Name)]
    seen: set[str] = set()
    while todo:
        name = todo.pop()
        macro = context.macro(name) if name not in seen else None
        seen.add(name)
        if macro is None or macro.definition is None:
            continue
        defines = re.compile(rf"^[ \t]*#[ \t]*define[ \t]+{re.escape(name)}\b", re.MULTILINE)
        if len(defines.findall(macro.definition.file.text)) > 1:
            return True
        todo += [token.text for token in macro.body if token.kind is Kind.NAME]
    return False
