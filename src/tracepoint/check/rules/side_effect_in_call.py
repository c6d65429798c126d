"""An argument of a tracepoint call in Python has a side effect.

## What it does

Finds calls of tracepoints in Python files whose arguments remove something, store something, wait or assign:
`pop()`, `next()`, `write()`, `:=`, `await`, and functions of the same file that change more than their own
variables. Tracepoints are the functions and classes that the file declares as events, and `trace_x(...)`
where the file imports this package or that name. Calls guarded by `if event:` are skipped: the guard says
that the argument is only needed while the event is enabled. Give `tracepoint check` the names of Python
files.

## Why it is bad

With static keys (`tracepoint.static_keys()`, `@tracepoint.sites`) the arguments are not evaluated while the
tracepoint is off. The program then behaves differently when it is traced. The kernel has the same
rule for code guarded by `trace_x_enabled()`.

## Example

```python
import tracepoint as tp


@tp.trace_event(system="shop", printk='"item=%s", item')
def sold(item: str) -> None: ...


def sell(queue):
    sold(queue.pop())  # error: TP401
```

## Use instead

```python
import tracepoint as tp


@tp.trace_event(system="shop", printk='"item=%s", item')
def sold(item: str) -> None: ...


def sell(queue):
    item = queue.pop()
    sold(item)
```

## Fix safety

None is offered.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tracepoint.check.finding import Finding
from tracepoint.check.python_effects import Effects
from tracepoint.check.python_source import PythonFile, last_name

_MAX_SHOWN = 60


def check_python(file: PythonFile) -> Iterator[Finding]:
    """Yield arguments that have side effects."""
    effects = Effects(file.tree)
    for call in file.statements():
        for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
            found = next(effects.in_expression(argument), None)
            if found is None:
                continue
            part, what = found
            text = " ".join(ast.unparse(part).split())
            shown = text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 3] + "..."
            yield Finding(
                f"the argument `{shown}` {what}, but not while the tracepoint is off",
                file.span(part),
                help=("do it in a statement before the call",),
                event=last_name(call.func),
            )
