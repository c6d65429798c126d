"""The mechanism: the C core where it was built, else its twin in Python.

`TRACEPOINT_PURE=1` in the environment chooses the twin.  A hierarchy is made over one of them (`Mechanism`);
everything else in this room reaches it through its hierarchy.  The protocols below are the border: type
checkers hold both sides against them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from tracepoint.record.core import CORE
from tracepoint.runtime.fire import twin

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import CodeType

    from tracepoint.filter.program import FilterProgram

Counts = dict[str, int]
Fault = tuple[str, str, str]
#: What runs when a tracepoint fires: ("probe", FUNCTION[, DATA]) or ("record", BUFFER, NUMBER, FILTER).
Entry = tuple[Any, ...]


class RingBuffer(Protocol):
    """What an instance records into: a ring for every thread."""

    is_on: bool
    overwrite: bool
    clock: str

    @property
    def n_pages(self) -> int:
        """The size of each ring."""

    def rings(self) -> list[tuple[int, int, bool, bytes, Counts]]:
        """Return (serial, tid, is_ended, comm, counts) of every ring, youngest first."""

    def read(self, serial: int, /) -> bytes | None:
        """Take the oldest unread events of a ring as one page, or None; raises KeyError."""

    def peek(self, serial: int, /) -> list[bytes]:
        """Return all pages of a ring without taking them; raises KeyError."""

    def clear(self) -> None:
        """Take everything out and reset the counts."""

    def stats(self) -> Counts:
        """Return the counts of all rings together."""

    def now(self) -> int:
        """Return the clock's time."""

    def write(self, record: bytes, /) -> bool:
        """Record bytes as they are; return whether there was room."""


class Hook(Protocol):
    """A tracepoint as the runtime sees it: what `Core.Tracepoint` makes."""

    control: Any

    @property
    def name(self) -> str:
        """Its name, `system:name` of an event."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of its parameters."""

    @property
    def n_faults(self) -> int:
        """How often something of it failed."""

    @property
    def n_nested(self) -> int:
        """How often it fired too deep in itself."""

    def set_entries(self, entries: tuple[Entry, ...], /) -> None:
        """Replace what runs when it fires."""

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Fire."""

    def __bool__(self) -> bool:
        """Return whether anything runs when it fires."""


class MakeBuffer(Protocol):
    """How a buffer is made."""

    def __call__(
        self, n_pages: int, overwrite: bool = ..., clock: str = ..., directory: str | None = ...
    ) -> RingBuffer:
        """Make a buffer; raises ValueError for an argument out of range, OSError for its directory."""


class MakeTracepoint(Protocol):
    """How a tracepoint is made."""

    def __call__(
        self,
        name: str,
        parameters: tuple[str, ...],
        fields: tuple[tuple[str, int, int, int, int, int, int], ...],
        size: int = ...,
        dynamic: int = ...,
        *,
        defaults: Mapping[str, object] | None = ...,
        assign: Callable[..., Any] | None = ...,
        condition: Callable[..., Any] | None = ...,
        control: object = ...,
    ) -> Hook:
        """Make a tracepoint that nothing listens to."""


class Core(Protocol):
    """The module on either side of the border."""

    @property
    def MAX_DEPTH(self) -> int:  # noqa: N802 - a constant of the module
        """How deep tracepoints fire in probes of others."""

    @property
    def Buffer(self) -> MakeBuffer:  # noqa: N802 - a class of the module
        """The class of buffers."""

    @property
    def Tracepoint(self) -> MakeTracepoint:  # noqa: N802 - a class of the module
        """The class of tracepoints."""

    def synchronize(self) -> None:
        """Wait until no tracepoint that fires now still runs its probes."""

    def faults(self) -> tuple[int, list[Fault]]:
        """Return how many faults there were, and the last 64."""

    def clear_faults(self) -> None:
        """Forget all faults."""

    def set_fault_hook(self, hook: Callable[[str, str, str], object] | None, /) -> None:
        """Call a function at the first fault of each event; None for no more."""


class AttachedRing(Protocol):
    """A ring in a mapped file, as another process left it."""

    def peek(self) -> list[bytes]:
        """Return all its pages."""

    def stats(self) -> Counts:
        """Return its counts."""

    def owner(self) -> dict[str, Any]:
        """Return the thread that it belongs to."""


class AttachRing(Protocol):
    """The class of rings, as far as it reads files."""

    def attach(self, memory: Any, /) -> AttachedRing:
        """Read the ring in mapped memory; raises ValueError for other bytes."""


class CompiledCore(Core, Protocol):
    """The C core: what only it can do."""

    @property
    def Filter(self) -> Callable[[bytes], object]:  # noqa: N802 - a class of the module
        """The class of filters."""

    @property
    def Ring(self) -> AttachRing:  # noqa: N802 - a class of the module
        """The class of rings."""

    def poke(  # noqa: PLR0917 - as C has it
        self, code: CodeType, index: int, expected: bytes, opcode: int, oparg: int, n_caches: int, /
    ) -> bool:
        """Change an instruction of a function; False when another than the expected ones is there."""


@dataclass(frozen=True, slots=True)
class Mechanism:
    """What the events of a hierarchy run on; `compiled` is the C core, None where it is the twin."""

    core: Core
    compiled: CompiledCore | None

    def make_filter(self, program: FilterProgram) -> object:
        """Return the filter in the form that the core runs."""
        return program if self.compiled is None else self.compiled.Filter(program.pack())


PURE = Mechanism(twin, None)


def over(core: CompiledCore) -> Mechanism:
    """Return the mechanism of the C core."""
    return Mechanism(core, core)


#: What the hierarchy of the process runs on.
DEFAULT = PURE if CORE is None else over(cast("CompiledCore", CORE))
IS_PURE = DEFAULT.compiled is None


def is_event(thing: object) -> bool:
    """Return whether an object is a tracepoint with a record, of whatever mechanism."""
    return isinstance(thing, (twin.Tracepoint, cast("type", DEFAULT.core.Tracepoint))) and hasattr(
        thing, "enable"
    )


def is_tracepoint(thing: object) -> bool:
    """Return whether an object is a tracepoint of the process's mechanism itself, not one that acts as if."""
    kind: object = DEFAULT.core.Tracepoint
    return type(thing) is kind
