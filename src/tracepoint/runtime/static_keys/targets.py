"""The functions that a function, class, module or wrapper is made of, without running any code of theirs.

Programs keep odd things in their modules: proxies that raise outside of a request, modules that load
themselves when they are looked at, classes that hold themselves.  So only types that are known are
looked into, past whatever they do on attribute access.
"""

from __future__ import annotations

import functools
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_CACHED = type(functools.lru_cache(lambda: None))


def codes_of(thing: object) -> Iterator[tuple[CodeType, Mapping[str, Any]]]:
    """Yield every code object of a function, class, module or wrapper with the globals that it sees.

    Of a module come the functions and classes that were made in it, of a class its own methods and
    the classes nested in it; wrappers are those of the standard library, and functions that have
    `__wrapped__`.  Code nested in code is not given.
    """
    home = members_of(thing) if issubclass(type(thing), ModuleType) else None
    seen: set[int] = set()
    waiting = [thing] if home is None else list(home.values())
    while waiting:
        found = waiting.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        if type(found) is FunctionType:
            waiting.append(members_of(found).get("__wrapped__"))
            if home is None or found.__globals__ is home:
                yield found.__code__, found.__globals__
        elif issubclass(type(found), type):
            if home is None or _was_made_in(found, home):
                waiting += _members_of_class(found)
        else:
            waiting += _behind(found)


def members_of(thing: object) -> Mapping[str, Any]:
    """Return the attributes that an object or class itself has; nothing where they cannot be had."""
    is_class = issubclass(type(thing), type)
    try:
        found = (type if is_class else object).__getattribute__(thing, "__dict__")
    except Exception:  # noqa: BLE001 - __dict__ may be a property that raises anything
        return {}
    return {**found} if is_class else found if type(found) is dict else {}


def _was_made_in(cls: object, home: Mapping[str, Any]) -> bool:
    return members_of(cls).get("__module__") == home.get("__name__")


def _members_of_class(cls: object) -> list[object]:
    """Its members but for the classes that only have a name here, such as the model of a form."""
    members = members_of(cls)
    prefix = f"{type.__getattribute__(cls, '__qualname__')}."
    return [
        value
        for value in members.values()
        if not issubclass(type(value), type)
        or (
            members_of(value).get("__module__") == members.get("__module__")
            and type.__getattribute__(value, "__qualname__").startswith(prefix)
        )
    ]


def _behind(value: object) -> tuple[object, ...]:
    """What a wrapper of the standard library calls."""
    kind = type(value)
    if kind in (classmethod, staticmethod, MethodType):
        return (value.__func__,)  # type: ignore[attr-defined]
    if kind is property:
        return (value.fget, value.fset, value.fdel)  # type: ignore[attr-defined]
    if kind is _CACHED:
        return (members_of(value).get("__wrapped__"),)
    if kind in (
        functools.partial,
        functools.partialmethod,
        functools.cached_property,
        functools.singledispatchmethod,
    ):
        return (value.func,)  # type: ignore[attr-defined]
    return ()
