"""Events by name, for pickles: `shop:order_placed` is looked up in the process that loads one.

The tracepoint objects of the core say that they live here.  Code that makes one loads this module too, for
there are picklers that look only at modules that are loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_finders: list[Callable[[str], Any]] = []


def offer(find: Callable[[str], Any]) -> None:
    """Let a function find tracepoints too: it returns the one of a name, or raises KeyError."""
    _finders.append(find)


def __getattr__(name: str) -> Any:
    for find in _finders:
        try:
            return find(name)
        except KeyError:
            continue
    raise AttributeError(f"event {name!r} is not declared in this process")
