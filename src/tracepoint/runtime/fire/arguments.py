"""The arguments of a call in their places: the twin of bind() in `csrc/module_fire.c`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def bind(
    names: tuple[str, ...], defaults: Mapping[str, object], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[Any, ...]:
    """Put keyword arguments and defaults in their places; raises TypeError."""
    if len(args) > len(names):
        raise TypeError(f"takes {len(names)} arguments, {len(args)} were given")
    given = dict(zip(names, args, strict=False))
    for name, value in kwargs.items():
        if name not in names or name in given:
            raise TypeError(f"argument {name} is unknown or given twice")
        given[name] = value
    for name in names:
        if name in given:
            continue
        if name not in defaults:
            raise TypeError(f"argument {name} is missing")
        found = defaults[name]
        # One that can be called is called when the event fires.
        given[name] = found() if callable(found) else found
    return tuple(given[name] for name in names)
