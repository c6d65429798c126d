"""An argument of a tracepoint's call in Python changes something.

## What it does

Finds calls of tracepoints in Python files whose arguments take something away, store something, wait or
assign: `pop()`, `next()`, `write()`, `:=`, `await`, and functions of the same file that change what is not
their own. Tracepoints are the functions and classes that the file declares as events, and `trace_x(...)`
where the file imports this package or that name. Calls behind `if event:` are passed over: there it is
said that the argument is only wanted when somebody listens. `tracepoint check` takes Python files by
name.

## Why it is bad

With static keys (`tracepoint.static_keys()`, `@tracepoint.sites`) the arguments are not evaluated while the
tracepoint is off. The program then does something else when it is traced than when it is not. The kernel has
the same rule for what stands behind `trace_x_enabled()`.

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
from typing import TYPE_CHECKING

from tracepoint.check.finding import Finding
from tracepoint.check.python_effects import Effects
from tracepoint.check.python_source import last_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.check.python_source import PythonFile

_MAX_SHOWN = 60


def check_python(file: PythonFile) -> Iterator[Finding]:
    """Yield arguments that change something."""
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
                f"the argument `{shown}` {what}, which it does not while the tracepoint is off",
                file.span(part),
                help=("do it in a statement before the call",),
                event=last_name(call.func),
            )
