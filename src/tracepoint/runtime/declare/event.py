"""Events of this process: declared as functions, classes or models, and what can be done with one.

A declared event is the core's tracepoint object: calling it fires.  Everything else that it offers
(`register`, `enable`, `filter`, ...) is answered by its `EventControl`.
"""

from __future__ import annotations

import inspect
import os
import sys
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, Protocol, cast

from tracepoint.errors import TracepointError
from tracepoint.model.python.types import event_from_class, event_from_function
from tracepoint.record.extension import is_main_interpreter
from tracepoint.runtime.declare.control import make_tracepoint
from tracepoint.runtime.declare.event_help import identity_of
from tracepoint.runtime.fire.mechanism import is_event
from tracepoint.runtime.fire.probes import DEFAULT_PRIORITY, Registration
from tracepoint.runtime.hierarchy import tracing

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.runtime.hierarchy import Instance, Tracing

# Programs that declare events by hand import this module for all of it: it listens when it is imported.
__all__ = [
    "DeclaredEvent",
    "EventMethods",
    "HookMethods",
    "LoadedEvent",
    "TraceEvent",
    "make_tracepoint",
    "trace_event",
    "tracing",
]

P = ParamSpec("P")


class HookMethods(Protocol):
    """What every tracepoint offers, as type checkers see it."""

    def __bool__(self) -> bool:
        """Return whether anything listens, for skipping costly arguments."""

    def register(
        self, probe: Callable[..., object], *, data: object = ..., prio: int = DEFAULT_PRIORITY
    ) -> Registration:
        """Call a probe whenever it fires; see `Probes.register`."""


class EventMethods(HookMethods, Protocol):
    """What a tracepoint with a record offers."""

    def enable(self, instance: Instance | None = None) -> None:
        """Record it in an instance, or in the top one."""

    def disable(self, instance: Instance | None = None) -> None:
        """Stop recording it there."""

    def set_filter(self, text: str, instance: Instance) -> None:
        """Record in an instance only what passes; raises FilterError."""

    @property
    def enabled(self) -> bool:
        """Whether the top instance records it."""

    @property
    def full_name(self) -> str:
        """`system:name`."""

    @property
    def n_faults(self) -> int:
        """How often a value, a condition or a probe failed, or no ring could be made."""

    @property
    def n_nested(self) -> int:
        """How often it fired too deep in itself and was dropped."""

    @property
    def filter(self) -> str:
        """What the `filter` file shows."""

    @filter.setter  # noqa: A003 - tracefs's word
    def filter(self, text: str) -> None: ...

    @property
    def format(self) -> str:
        """What the `format` file shows."""


class LoadedEvent(EventMethods, Protocol):
    """What `load()` gives for an event; `tracepoint generate stubs` writes the exact parameters."""

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Fire: next to free while nothing listens; never raises."""


class DeclaredEvent(EventMethods, Protocol[P]):
    """What a declaration gives: callable with the declared parameters."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Fire: next to free while nothing listens; never raises."""


def trace_event(
    *,
    system: str,
    printk: str,
    name: str = "",
    condition: Callable[..., object] | None = None,
    reg: Callable[[], object] | None = None,
    unreg: Callable[[], object] | None = None,
    tracing: Tracing = tracing,
) -> Callable[[Callable[P, object]], DeclaredEvent[P]]:
    """Declare an event by a function's signature: every parameter is a field of its name.

    `printk` is the print format with the fields' names; `condition`, called with the same
    arguments, decides whether it fires; `reg` is called before the first listener comes and `unreg`
    after the last has gone; when `reg` raises, nothing listens and who enables or registers gets an
    EventError; `tracing` is the hierarchy that gets it.  Raises DeclarationTypeError for a parameter that
    cannot be recorded and EventError when the event exists.

    >>> from tracepoint.model.python.types import u64
    >>> @trace_event(system="shop", printk='"order=%llu by %s", order_id, customer')
    ... def order_seen(order_id: u64, customer: str) -> None: ...
    >>> order_seen(7, "ada")
    >>> bool(order_seen)
    False
    """

    def decorate(function: Callable[P, object]) -> DeclaredEvent[P]:
        event = event_from_function(function, system=system, printk=printk, name=name)
        identity = identity_of(function, event.full_name, event.proto.names)
        parameters = identity.signature.parameters.values()
        made = make_tracepoint(
            event,
            defaults={p.name: p.default for p in parameters if p.default is not p.empty},
            condition=condition,
            reg=reg,
            unreg=unreg,
            hints=_hints(function),
            where=_place_of(function),
            doc=inspect.getdoc(function) or "",
            identity=identity,
            tracing=tracing,
        )
        return cast("DeclaredEvent[P]", made)

    return decorate


class _Record:
    """What `assign` of a class stores to."""

    __slots__ = ("__dict__",)

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"assign has stored nothing in {name!r}")


if TYPE_CHECKING:
    from tracepoint.runtime.event_class import EventMaker
else:

    class EventMaker(type):
        """Turns the class statement of an event into its tracepoint object."""

        def __new__(
            mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], /, **options: Any
        ) -> Any:
            """Make the class, and the event of one that has a base."""
            cls = super().__new__(mcs, name, bases, namespace)
            return _event_of_class(cls, **options) if bases else cls

        def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], /, **_: Any) -> None:
            super().__init__(name, bases, namespace)

        def __instancecheck__(cls, thing: object) -> bool:
            """Answer `isinstance(event, TraceEvent)`: every event is one, also of a function or a header."""
            return is_event(thing)


def _event_of_class(cls: type, *, system: str = "", name: str = "", **functions: Any) -> Any:
    event = event_from_class(cls, system=system, name=name)
    method = cls.__dict__.get("assign")
    names = tuple(f.name for f in event.fields)
    assign = None
    if method is not None:

        def assign(*args: object) -> tuple[object, ...]:
            record = _Record()
            method(record, *args)
            return tuple(getattr(record, field) for field in names)

    hints = dict(getattr(method or cls, "__annotations__", {}))
    unknown = set(functions) - {"condition", "reg", "unreg", "tracing"}
    if unknown:
        raise TracepointError(f"class {cls.__name__}: {min(unknown)!r} is not an option of an event")
    where, doc = f"{cls.__module__}.{cls.__qualname__}", inspect.cleandoc(cls.__dict__.get("__doc__") or "")
    identity = identity_of(cls, event.full_name, event.proto.names, method)
    return make_tracepoint(
        event, assign=assign, hints=hints, where=where, doc=doc, identity=identity, **functions
    )


class TraceEvent(metaclass=EventMaker):
    """The base of events that are written as a class with the five parts.

    Annotations are the fields, `printk` the print format, the method `assign` fills the fields
    from its arguments; the class statement takes `system`, `name`, `condition`, `reg`, `unreg`
    and `tracing`, as `trace_event` does, and gives the tracepoint object.  `isinstance(thing, TraceEvent)`
    is true of every event of the process, however it is declared.
    """

    if TYPE_CHECKING:

        def __init__(self, *args: Any, **kwargs: Any) -> None: ...

        def __init_subclass__(
            cls,
            *,
            system: str = "",
            name: str = "",
            condition: Callable[..., object] | None = None,
            reg: Callable[[], object] | None = None,
            unreg: Callable[[], object] | None = None,
            tracing: Tracing = ...,
        ) -> None: ...

        def assign(self, *args: Any, **kwargs: Any) -> object:
            """Fill the fields from the arguments."""


def _hints(function: Callable[..., object]) -> dict[str, Any]:
    # Names that cannot be resolved were refused when the event was made.
    return inspect.get_annotations(function, eval_str=True)


def _place_of(function: Callable[..., object]) -> str:
    code = getattr(function, "__code__", None)
    if code is None:
        module = sys.modules.get(getattr(function, "__module__", ""))
        return getattr(module, "__file__", None) or "?"
    return f"{code.co_filename}:{code.co_firstlineno}"


def _listen_if_asked() -> None:
    """Let `tracepoint ps` and `tracepoint mount --pid` in, where the environment asks for it."""
    if os.environ.get("TRACEPOINT") != "1" or not is_main_interpreter():
        return
    from tracepoint.runtime.remote.server import listen  # noqa: PLC0415 - hardly ever wanted

    # A program must not fail because it cannot be traced, not even with -W error.
    try:
        listen()
    except TracepointError as error:
        with suppress(RuntimeWarning):
            words = f"TRACEPOINT=1, but this process cannot be traced from outside: {error}"
            warnings.warn(words, RuntimeWarning, stacklevel=2)


_listen_if_asked()
