"""Static keys: call sites of tracepoints that are off are jumped over, arguments and all.

`static_keys()` is the one line that turns it on; `sites` does it for one function or class.  Where the
interpreter has another byte code than those tried, or the self-test fails, both change nothing and
the calls stay what they are.  The idea is the kernel's jump label (include/linux/jump_label.h).
"""

from __future__ import annotations

import opcode
import os
import platform
import subprocess
import sys
import sysconfig
import weakref
from dataclasses import dataclass, field
from functools import cache
from importlib.util import MAGIC_NUMBER
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from tracepoint.runtime.fire import mechanism
from tracepoint.runtime.fire.locks import make_process_lock
from tracepoint.runtime.fire.probes import switch_listeners
from tracepoint.runtime.static_keys.imports import Finder, is_wanted
from tracepoint.runtime.static_keys.sites import find_places, nested_codes
from tracepoint.runtime.static_keys.targets import codes_of, members_of

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping

    from tracepoint.runtime.static_keys.sites import KeySite

# The numbers of the byte code of CPython's releases that can be changed: no patch release changes them.
TRIED_BYTE_CODES = {(3, 11): 3495, (3, 12): 3531, (3, 13): 3571}
# Versions on which tests/runtime/test_static_keys.py was run: others pass the self-test in a process of its
# own first, which alone ends if the interpreter does not bear it.
TRIED_VERSIONS = ((3, 11, 2), (3, 11, 7), (3, 12, 1), (3, 13, 0))
# The tables of line events, which tools use, changed after it.
_NEWEST_TRIED = (3, 13, 0)
_SELF_TEST_S = 30  # a new interpreter on a busy machine
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
        core = mechanism.DEFAULT.compiled
        if core is None:
            return False
        if is_on:
            load = opcodes.load_in(code)
            done = core.poke(code, self.index, opcodes.jumps, load, self.oparg, opcodes.n_caches)
        else:
            done = core.poke(code, self.index, opcodes.loads, opcodes.jump, self.n_skipped, opcodes.n_caches)
        if done:
            self.is_on = is_on
        return done


class _SameCode(weakref.ref[CodeType]):
    """A key for one code object: codes that are equal are not the same."""

    __slots__ = ("_number",)
    _number: int

    def __new__(cls, code: CodeType, ended: Callable[[weakref.ref[CodeType]], None]) -> Self:
        """Make the key; `ended` is called with it when the code is gone."""
        made = super().__new__(cls, code, ended)
        made._number = object.__hash__(code)
        return made

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        mine = self()
        return self is other or (isinstance(other, _SameCode) and mine is not None and mine is other())


@dataclass(slots=True)
class _Registry:
    sites: dict[str, list[_Site]] = field(default_factory=dict)
    # Which code units of which code are sites.
    seen: dict[_SameCode, set[int]] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=make_process_lock)

    def known_in(self, code: CodeType) -> set[int]:
        """Return the code units of a code that are sites already, to be added to."""
        return self.seen.setdefault(_SameCode(code, self._forget), set())

    def _forget(self, ended: weakref.ref[CodeType]) -> None:
        self.seen.pop(cast("_SameCode", ended), None)


_registry = _Registry()


def why_not() -> str:
    """Return why call sites are not changed here, or an empty text."""
    if mechanism.DEFAULT.compiled is None:
        return "the C core is not there"
    has_lock: Callable[[], bool] = getattr(sys, "_is_gil_enabled", lambda: True)
    if platform.python_implementation() != "CPython" or not has_lock():
        return "not a CPython with its global lock"
    byte_code = int.from_bytes(MAGIC_NUMBER[:2], "little")
    if TRIED_BYTE_CODES.get(sys.version_info[:2]) != byte_code or sys.version_info.releaselevel != "final":
        return f"the byte code of Python {platform.python_version()} was not tried"
    if sys.version_info[:3] > _NEWEST_TRIED:
        return f"Python {platform.python_version()} keeps the events of tools in tables that are not known"
    try:
        options = str(sysconfig.get_config_var("CONFIG_ARGS"))
    except OSError as error:
        # The program has no file descriptor left: it goes on with plain calls.
        return f"how this Python was built is unknown: {error}"
    if "experimental-jit" in options:
        return "a Python with a just-in-time compiler keeps copies of the code"
    if sys.version_info[:3] not in TRIED_VERSIONS and not _passes_elsewhere(sys.executable):
        return "the self-test failed in a process of its own"
    return "" if passes_self_test() else "the self-test failed"


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
def passes_self_test() -> bool:
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


@cache
def _passes_elsewhere(executable: str) -> bool:
    """Return whether the self-test passes in a new process of this interpreter."""
    text = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        f"from {__name__} import passes_self_test\n"
        "sys.exit(not passes_self_test())\n"
    )
    # No settings of ours: the new process must not record, nor listen.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TRACEPOINT_")}
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter and text
            [executable, "-I", "-c", text],
            env=inherited,
            capture_output=True,
            check=False,
            timeout=_SELF_TEST_S,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _site_of(place: KeySite) -> _Site:
    return _Site(weakref.ref(place.code), place.index, place.oparg, place.n_skipped)


def sites(thing: T) -> T:
    """Make the calls of tracepoints in a function or class static keys; returns what it was given.

    Statements that are nothing but such a call are changed, where the tracepoint is a global or an
    attribute of one.  While it is off, arguments are not evaluated.  Also takes classes, and the
    wrappers of functools around either.
    """
    patch(thing)
    return thing


def patch(thing: object) -> int:
    """Change the call sites of a function, class, module or wrapper of these; returns how many are new."""
    if why_not():
        return 0
    _listen()
    return sum(_patch_code(code, names) for outer, names in codes_of(thing) for code in nested_codes(outer))


def _patch_code(code: CodeType, names: Mapping[str, Any]) -> int:
    resolver = _Resolver(names)
    if not resolver.may_be_in(code):
        return 0
    with _registry.lock:
        known = _registry.known_in(code)
        try:
            places = [place for place in find_places(code, resolver.resolve) if place.index not in known]
        except Exception:  # noqa: BLE001 - code that no compiler wrote, which dis cannot read: calls stay calls
            return 0
        for place in places:
            known.add(place.index)
            site = _site_of(place)
            _registry.sites.setdefault(place.name, []).append(site)
            site.switch(_opcodes(), is_on=bool(resolver.found[place.name]))
    return len(places)


class _Resolver:
    """Finds tracepoints among the globals of a function, and among the attributes of those."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names
        self.found: dict[str, Any] = {}

    def may_be_in(self, code: CodeType) -> bool:
        """Return whether the code names a tracepoint at all: most does not, and need not be read."""
        named = [self._names[name] for name in code.co_names if name in self._names]
        return any(
            mechanism.is_tracepoint(value)
            or any(mechanism.is_tracepoint(members_of(value).get(name)) for name in code.co_names)
            for value in named
        )

    def resolve(self, name: str, attribute: str) -> str | None:
        """Return the name of the tracepoint that `name`, or `name.attribute`, is."""
        found: Any = self._names.get(name)
        if attribute:
            found = members_of(found).get(attribute)
        if not mechanism.is_tracepoint(found):
            return None
        self.found[found.name] = found
        return str(found.name)


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


def static_keys(*packages: str) -> bool:
    """Turn static keys on: for modules that are imported now and for those that will be.

    `packages` limits it to modules of these names and below them.  Returns False, having done
    nothing, where this Python is not one of those tried; see `why_not`.
    """
    if why_not():
        return False
    for name, module in list(sys.modules.items()):
        is_ours = name == "tracepoint" or name.startswith("tracepoint.")
        if not is_ours and issubclass(type(module), ModuleType) and is_wanted(name, packages):
            patch(module)
    sys.meta_path.insert(0, Finder(packages, patch))
    return True


def turn_off() -> None:
    """Undo `static_keys()` and `sites`: every call site is a call again."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, Finder)]
    with _registry.lock:
        for found in _registry.sites.values():
            for site in found:
                site.switch(_opcodes(), is_on=True)
        _registry.sites.clear()
        _registry.seen.clear()
