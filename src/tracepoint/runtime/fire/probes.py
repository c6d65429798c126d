"""Probes: functions that run where a tracepoint fires, in order of priority.

Kernel: kernel/tracepoint.c, func_add() and func_remove().
"""

from __future__ import annotations

import errno
import inspect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from tracepoint.errors import TracepointError
from tracepoint.model.python.types import CArray, CScalar, CString
from tracepoint.runtime.fire.locks import make_process_lock
from tracepoint.wording import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DEFAULT_PRIORITY = 10
_NO_DATA: Any = object()
# Called with a tracepoint's name and whether anything listens to it now.
switch_listeners: list[Callable[[str, bool], None]] = []
# Held while the entries of a tracepoint change, and what goes with them.
changing = make_process_lock()
_FLOATS = ("float", "double")


class EventError(TracepointError):
    """An event, system or instance that is not there, is there already, or refuses; with the errno."""

    def __init__(self, message: str, number: int = errno.EINVAL) -> None:
        super().__init__(message)
        self.errno = number


class ProbeError(TracepointError):
    """A probe that cannot be registered or unregistered; `errno` is the kernel's number for it."""

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.errno = number


@dataclass(frozen=True, slots=True, eq=False)
class Registration:
    """One probe at one tracepoint; `unregister()` takes it away.

    `priority`: higher runs first, ties in the order of registration.
    """

    owner: Probes
    probe: Callable[..., object]
    data: Any
    priority: int

    def __repr__(self) -> str:
        return f"<Registration of {one_line(getattr(self.probe, '__qualname__', type(self.probe).__name__))}>"

    @property
    def entry(self) -> tuple[Any, ...]:
        """The form that the core takes."""
        return ("probe", self.probe) if self.data is _NO_DATA else ("probe", self.probe, self.data)

    def unregister(self) -> None:
        """Take the probe away; one that runs now finishes.  Raises ProbeError (ENOENT) when it is gone."""
        self.owner.remove(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.unregister()


@dataclass(slots=True)
class Probes:
    """The probes and records of one tracepoint, in the order in which they run.

    `parameters` are the prototype's names; `hints` its annotations as far as they are known;
    `apply` takes the new entries into use, as one step.  `reg` is called before the first entry comes, and
    when it raises nothing changes; `unreg` is called after the last has gone.
    """

    name: str
    parameters: tuple[str, ...]
    hints: Mapping[str, Any]
    apply: Callable[[tuple[tuple[Any, ...], ...]], None]
    reg: Callable[[], object] | None = None
    unreg: Callable[[], object] | None = None
    _items: list[tuple[int, Any, tuple[Any, ...]]] = field(default_factory=list)

    def register(
        self, probe: Callable[..., object], *, data: Any = _NO_DATA, prio: int = DEFAULT_PRIORITY
    ) -> Registration:
        """Call `probe` whenever the tracepoint fires, with `data` first when it is given.

        Raises ProbeError: EEXIST when this probe is there with this data, EINVAL when its
        parameters do not fit the prototype or `prio` is not an int.
        """
        if not isinstance(prio, int):
            raise ProbeError(f"{self.name}: prio is {prio!r}, not an int", errno.EINVAL)
        check_signature(self.name, probe, self.parameters, self.hints, has_data=data is not _NO_DATA)
        made = Registration(self, probe, data, prio)
        with changing:
            if any(self._is_same(key, made) for _, key, _ in self._items):
                raise ProbeError(f"{self.name}: this probe is registered with this data", errno.EEXIST)
            self.insert(prio, made, made.entry)
        return made

    @staticmethod
    def _is_same(key: object, other: Registration) -> bool:
        # Bound methods are created at every access, hence == for the probe.
        return isinstance(key, Registration) and key.probe == other.probe and key.data is other.data

    def remove(self, registration: object) -> None:
        """Take an entry away by its key; raises ProbeError (ENOENT)."""
        with changing:
            kept = [item for item in self._items if item[1] is not registration]
            if len(kept) == len(self._items):
                raise ProbeError(f"{self.name}: this probe is not registered", errno.ENOENT)
            self._use(kept)

    def insert(self, priority: int, key: object, entry: tuple[Any, ...]) -> None:
        """Put an entry after those of the same or a higher priority."""
        with changing:
            place = sum(1 for item in self._items if item[0] >= priority)
            self._use([*self._items[:place], (priority, key, entry), *self._items[place:]])

    def replace(self, key: object, entry: tuple[Any, ...]) -> None:
        """Change an entry in its place."""
        with changing:
            self._use([(p, k, entry if k is key else e) for p, k, e in self._items])

    def _use(self, items: list[tuple[int, Any, tuple[Any, ...]]]) -> None:
        if items and not self._items:
            self._run("reg", self.reg)
        is_last = bool(self._items) and not items
        self._items = items
        self.apply(tuple(entry for _, _, entry in items))
        for notify in switch_listeners:
            notify(self.name, bool(items))
        if is_last:
            self._run("unreg", self.unreg)

    def _run(self, what: str, function: Callable[[], object] | None) -> None:
        if function is None:
            return
        try:
            function()
        except Exception as error:
            number = error.errno if isinstance(error, (OSError, EventError)) else None
            text = f"{self.name}: {what} failed: {type(error).__name__}: {error}"
            raise EventError(text, number or errno.EINVAL) from error

    def __len__(self) -> int:
        return len(self._items)


def check_signature(
    name: str,
    probe: Callable[..., object],
    parameters: tuple[str, ...],
    hints: Mapping[str, Any],
    *,
    has_data: bool,
) -> None:
    """Raise ProbeError (EINVAL) when `probe` cannot be called with the prototype's arguments.

    Its parameters stand in the prototype's order and bear its names, unless they begin with an
    underscore; annotations must not contradict.  Functions without a signature are believed.
    """
    if not callable(probe):
        raise ProbeError(f"{name}: a probe is called; {probe!r} cannot be", errno.EINVAL)
    try:
        signature = inspect.signature(probe)
    except (ValueError, TypeError):
        return
    wanted = (["data"] if has_data else []) + list(parameters)
    try:
        signature.bind(*wanted)
    except TypeError as error:
        prototype = ", ".join(wanted)
        raise ProbeError(
            f"{name}: the probe {signature} does not take ({prototype}): {error}", errno.EINVAL
        ) from None
    positional = [
        p for p in signature.parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    for own, given in list(zip(positional, wanted, strict=False))[has_data:]:
        # A positional-only parameter has a name that no caller uses.
        is_named = own.kind is own.POSITIONAL_OR_KEYWORD and not own.name.startswith("_")
        if is_named and own.name != given:
            raise ProbeError(
                f"{name}: the probe calls {own.name!r} what the prototype calls {given!r}", errno.EINVAL
            )
        _check_annotation(name, own, hints.get(given))


_PLAIN_TYPES = {"int": int, "float": float, "str": str, "bytes": bytes, "bool": bool}


def _check_annotation(name: str, own: inspect.Parameter, hint: Any) -> None:
    """Compare what can be compared: marked types with marked types, and Python's own."""
    theirs = own.annotation
    theirs = _PLAIN_TYPES.get(theirs, theirs) if isinstance(theirs, str) else theirs
    if hint is None or theirs is own.empty or isinstance(theirs, str):
        return
    mine, other = _marker(hint), _marker(theirs)
    if mine is not None and other is not None:
        is_same = mine == other
    elif theirs in (int, float, str, bytes, bool):
        is_same = theirs in _python_types(mine, hint)
    else:
        return
    if not is_same:
        raise ProbeError(
            f"{name}: the probe takes {own.name!r} as {own.annotation}, the prototype gives another type",
            errno.EINVAL,
        )


def _marker(hint: Any) -> CScalar | CString | CArray | None:
    marks = (m for m in getattr(hint, "__metadata__", ()) if isinstance(m, (CScalar, CString, CArray)))
    return next(marks, None)


def _python_types(marker: CScalar | CString | CArray | None, hint: Any) -> tuple[type, ...]:
    match marker:
        case CScalar(ctype):
            return (float,) if ctype in _FLOATS else (int, bool)
        case CString() | CArray():
            return (str, bytes)
        case _:
            return {bool: (bool, int), int: (int,), float: (float,), str: (str, bytes)}.get(
                hint, (int, float, str, bytes, bool)
            )
