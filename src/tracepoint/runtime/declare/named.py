"""Events by name, for pickles: an event is looked up in the process that loads one.

As a function is, by its module and qualified name; where that is not it, by its name: `shop:order_placed`.
Events that no function or class declares say that they live here.
"""

from __future__ import annotations

import sys
from functools import reduce
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_finders: list[Callable[[str], Any]] = []


def offer(find: Callable[[str], Any]) -> None:
    """Let a function find tracepoints too: it returns the one of a name, or raises KeyError."""
    _finders.append(find)


def event_by_name(name: str) -> Any:
    """Return the event of that name in this process; raises AttributeError.

    >>> event_by_name("shop:nothing")
    Traceback (most recent call last):
    AttributeError: event 'shop:nothing' is not declared in this process
    """
    for find in _finders:
        try:
            return find(name)
        except KeyError:
            continue
    raise AttributeError(f"event {name!r} is not declared in this process")


def reduced(event: Any) -> str | tuple[Callable[[str], Any], tuple[str]]:
    """Return what `__reduce__` of an event gives: its qualified name, or else how to find it."""
    qualified = str(event.__qualname__)
    try:
        found = reduce(getattr, qualified.split("."), sys.modules[event.__module__])
    except (KeyError, AttributeError):
        found = None
    return qualified if found is event else (event_by_name, (event.name,))
