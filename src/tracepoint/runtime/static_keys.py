"""Static keys: call sites of tracepoints that are off are jumped over, arguments and all.

`static_keys()` is the one line that turns it on; `sites` does it for one function or class.  Where the
interpreter is not one of those tried, or the self-test fails, both change nothing and the calls
stay what they are.  The idea is the kernel's jump label (include/linux/jump_label.h).
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import opcode
import platform
import sys
import threading
import weakref
from dataclasses import dataclass, field
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from tracepoint.runtime import core
from tracepoint.runtime.probes import switch_listeners
from tracepoint.runtime.sites import find_places

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tracepoint.runtime.sites import Place

# CPython versions on which tests/runtime/test_static_keys.py was run.
TRIED_VERSIONS = ((3, 11, 2), (3, 11, 7), (3, 12, 1), (3, 13, 0))
T = TypeVar("T")


@dataclass(slots=True)
class _Opcodes:
    """The numbers of this interpreter's instructions."""

    load: int = opcode.opmap["LOAD_GLOBAL"]
    jump: int = opcode.opmap["JUMP_FORWARD"]
    n_caches: int = 0
    loads: bytes = b""
    jumps: bytes = b""

    def __post_init__(self) -> None:
        caches: Any = getattr(opcode, "_inline_cache_entries", ())
        self.n_caches = caches["LOAD_GLOBAL"] if isinstance(caches, dict) else caches[self.load]
        # The specialised forms are in tables that the library keeps for itself.
        known: Mapping[str, int] = {**opcode.opmap, **_specialised()}
        self.loads = bytes(number for name, number in known.items() if name.startswith("LOAD_GLOBAL"))
        self.jumps = bytes(
            number for name, number in known.items() if name in ("JUMP_FORWARD", "INSTRUMENTED_JUMP_FORWARD")
        )

    def load_in(self, code: CodeType) -> int:
        """LOAD_GLOBAL in the form that learns: 3.11 makes it of the plain one once, when code is warm."""
        known = _specialised()
        adaptive, warm = known.get("LOAD_GLOBAL_ADAPTIVE"), known.get("RESUME_QUICK")
        if adaptive is None or warm is None:
            return self.load
        units: bytes = getattr(code, "_co_code_adaptive", b"")
        return adaptive if warm in units[:64:2] else self.load


@cache
def _specialised() -> dict[str, int]:
    dis_names: dict[str, int] = getattr(sys.modules["dis"], "_all_opmap", {})
    later: dict[str, int] = getattr(opcode, "_specialized_opmap", {})
    return {**dis_names, **later}


@dataclass(slots=True)
class _Site:
    """A place, without keeping its code alive; `is_on` is what the code says."""

    code: weakref.ref[CodeType]
    index: int
    oparg: int
    n_skipped: int
    is_on: bool = True

    def switch(self, opcodes: _Opcodes, *, is_on: bool) -> bool:
        """Change the code; False when a tool keeps the instruction."""
        code = self.code()
        if code is None or self.is_on == is_on:
            return True
        if is_on:
            load = opcodes.load_in(code)
            done: bool = core.poke(code, self.index, opcodes.jumps, load, self.oparg, opcodes.n_caches)
        else:
            done = core.poke(code, self.index, opcodes.loads, opcodes.jump, self.n_skipped, opcodes.n_caches)
        if done:
            self.is_on = is_on
        return done


@dataclass(slots=True)
class _Registry:
    sites: dict[str, list[_Site]] = field(default_factory=dict)
    seen: dict[int, weakref.ref[CodeType]] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)


_registry = _Registry()


def why_not() -> str:
    """Return why call sites are not changed here, or an empty text."""
    if core.IS_PURE:
        return "the C core is not there"
    has_lock: Callable[[], bool] = getattr(sys, "_is_gil_enabled", lambda: True)
    if platform.python_implementation() != "CPython" or not has_lock():
        return "not a CPython with its global lock"
    if sys.version_info[:3] not in TRIED_VERSIONS or sys.version_info.releaselevel != "final":
        return f"Python {platform.python_version()} was not tried"
    return "" if _passes_self_test() else "the self-test failed"


@cache
def _opcodes() -> _Opcodes:
    return _Opcodes()


SELF_TEST = """
def run(seen):
    for i in (1, 2):
        event(seen.append(i), i if i else 0)
    return seen
"""


@cache
def _passes_self_test() -> bool:
    """Switch a site of a function made for it off and on, and look at what it does."""
    calls: list[object] = []
    names: dict[str, Any] = {"event": lambda *args: calls.append(args)}
    exec(compile(SELF_TEST, "<tracepoint self-test>", "exec"), names)  # noqa: S102 - a text of ours
    run = names["run"]
    places = list(find_places(run.__code__, lambda name, _: name if name == "event" else None))
    if len(places) != 1 or run([]) != [1, 2]:
        return False
    site = _site_of(places[0])
    for expected, is_on in (([], False), ([1, 2], True), ([], False), ([1, 2], True)):
        for _ in range(30):
            if not site.switch(_opcodes(), is_on=is_on) or run([]) != expected:
                return False
    return len(calls) == 2 + 2 * 60


def _site_of(place: Place) -> _Site:
    return _Site(weakref.ref(place.code), place.index, place.oparg, place.n_skipped)


def sites(thing: T) -> T:
    """Make the calls of tracepoints in a function or class static keys; returns what it was given.

    Statements that are nothing but such a call are changed, where the tracepoint is a global or an
    attribute of one.  While it is off, arguments are not evaluated.
    """
    patch(thing)
    return thing


def patch(thing: object) -> int:
    """Change the call sites of a function, class, module or code; returns how many there are."""
    if why_not():
        return 0
    _listen()
    return sum(_patch_code(code, names) for code, names in _codes_of(thing))


def _patch_code(code: CodeType, names: Mapping[str, Any]) -> int:
    def resolve(name: str, attribute: str) -> str | None:
        found = names.get(name)
        if attribute:
            found = getattr(found, "__dict__", {}).get(attribute)
        if isinstance(found, core.Tracepoint):
            found_here[found.name] = found
            return str(found.name)
        return None

    found_here: dict[str, Any] = {}
    with _registry.lock:
        known = _registry.seen.get(id(code))
        if known is not None and known() is code:
            return 0
        places = list(find_places(code, resolve))
        _registry.seen[id(code)] = weakref.ref(code)
        for place in places:
            site = _site_of(place)
            _registry.sites.setdefault(place.name, []).append(site)
            site.switch(_opcodes(), is_on=bool(found_here[place.name]))
    return len(places)


def _codes_of(thing: object) -> Iterator[tuple[CodeType, Mapping[str, Any]]]:
    """Every code object of a function, class or module, with the globals that it sees."""
    match thing:
        case FunctionType():
            yield thing.__code__, thing.__globals__
            if hasattr(thing, "__wrapped__"):
                yield from _codes_of(thing.__wrapped__)
        case ModuleType():
            for value in list(vars(thing).values()):
                if getattr(value, "__module__", None) == thing.__name__:
                    yield from _codes_of(value)
        case type() if not isinstance(thing, core.Tracepoint):
            for value in list(vars(thing).values()):
                for part in _functions_of(value):
                    yield from _codes_of(part)


def _functions_of(value: object) -> tuple[object, ...]:
    """What a member of a class calls."""
    match value:
        case classmethod() | staticmethod():
            return (value.__func__,)
        case property():
            return (value.fget, value.fset, value.fdel)
    return (value,)


def _switch(name: str, is_on: bool) -> None:
    """Bring all sites of a tracepoint to its state; those that a tool keeps are tried at the next change."""
    with _registry.lock:
        alive = [site for site in _registry.sites.get(name, ()) if site.code() is not None]
        if alive:
            _registry.sites[name] = alive
        for site in alive:
            site.switch(_opcodes(), is_on=is_on)


def _listen() -> None:
    if _switch not in switch_listeners:
        switch_listeners.append(_switch)


class _Finder(importlib.abc.MetaPathFinder):
    """Changes modules as they are imported: asks the other finders and wraps their loader's end."""

    def __init__(self, wanted: tuple[str, ...]) -> None:
        self.wanted = wanted

    def find_spec(
        self, fullname: str, path: Any, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not _is_wanted(fullname, self.wanted):
            return None
        for finder in sys.meta_path:
            if isinstance(finder, _Finder):
                continue
            find: Callable[..., Any] | None = getattr(finder, "find_spec", None)
            spec = find(fullname, path, target) if find is not None else None
            if spec is not None:
                _wrap_loader(spec)
                return spec  # type: ignore[no-any-return]
        return None


def _wrap_loader(spec: Any) -> None:
    loader = spec.loader
    execute = getattr(loader, "exec_module", None)
    if execute is None or not isinstance(loader, importlib.machinery.SourceFileLoader):
        return

    def exec_module(module: ModuleType) -> None:
        execute(module)
        patch(module)

    loader.exec_module = exec_module  # type: ignore[method-assign]


def _is_wanted(name: str, wanted: tuple[str, ...]) -> bool:
    return not wanted or any(name == w or name.startswith(w + ".") for w in wanted)


def static_keys(*packages: str) -> bool:
    """Turn static keys on: for modules that are imported now and for those that will be.

    `packages` limits it to modules of these names and below them.  Returns False, having done
    nothing, where this Python is not one of those tried; see `why_not`.
    """
    if why_not():
        return False
    for name, module in list(sys.modules.items()):
        is_ours = name == "tracepoint" or name.startswith("tracepoint.")
        if not is_ours and isinstance(module, ModuleType) and _is_wanted(name, packages):
            patch(module)
    sys.meta_path.insert(0, _Finder(packages))
    return True


def turn_off() -> None:
    """Undo `static_keys()` and `sites`: every call site is a call again."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Finder)]
    with _registry.lock:
        for found in _registry.sites.values():
            for site in found:
                site.switch(_opcodes(), is_on=True)
        _registry.sites.clear()
        _registry.seen.clear()
