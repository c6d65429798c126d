"""The mechanism in plain Python: the twin of `csrc/module_event.c` and `csrc/thread.c`.

Chosen by `TRACEPOINT_PURE=1` and where the extension was not built.  It does the same, slowly.
"""

from __future__ import annotations

import importlib
import os
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

from tracepoint.filter.context import RecordContext
from tracepoint.runtime.declare.plan import FieldKind, FieldPlan
from tracepoint.runtime.fire.arguments import bind
from tracepoint.runtime.fire.convert import make_record
from tracepoint.runtime.fire.faults import clear_faults, faults, keep_fault, set_fault_hook
from tracepoint.runtime.fire.locks import make_process_lock
from tracepoint.runtime.fire.this_thread import comm_of_thread, current_cpu, kernel_comm, name_of
from tracepoint.runtime.rings.ring import LAYOUT, MAX_PAGES, MAX_PAYLOAD, MIN_PAGES, Ring

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tracepoint.filter.program import FilterProgram

__all__ = [
    "MAX_DEPTH",
    "Buffer",
    "Tracepoint",
    "clear_faults",
    "comm_of_thread",
    "current_cpu",
    "faults",
    "make_filter",
    "set_fault_hook",
    "synchronize",
]

MAX_DEPTH = 4
# Whose bytes the rings of ended threads may have.
ENDED_RINGS = 64
COUNTS = ("entries", "overrun", "commit_overrun", "bytes", "dropped", "read", "nested", "oldest_stamp")

_CLOCK_IDS = {
    "local": time.CLOCK_MONOTONIC,
    "global": time.CLOCK_MONOTONIC,
    "perf": time.CLOCK_MONOTONIC,
    "mono": time.CLOCK_MONOTONIC,
    "mono_raw": time.CLOCK_MONOTONIC_RAW,
    "boot": time.CLOCK_BOOTTIME,
    "uptime": time.CLOCK_BOOTTIME,
    "tai": time.CLOCK_TAI,
}
CLOCKS = (*_CLOCK_IDS, "counter")


class _Local(threading.local):
    def __init__(self) -> None:
        self.depth = 0
        self.state = _Thread()
        with _lock:
            _threads[:] = [t for t in _threads if t.thread.is_alive()]
            _threads.append(self.state)


class _Thread:
    """What others see of a thread: the generation in which its outermost tracepoint began, or 0."""

    def __init__(self) -> None:
        self.thread = threading.current_thread()
        self.active = 0
        self.tid = threading.get_native_id()


_lock = make_process_lock()
_threads: list[_Thread] = []
_generation = 1
# Those of hierarchies and instances that are gone need nothing after a fork.
_buffers: weakref.WeakSet[Buffer] = weakref.WeakSet()
_local = _Local()


def _next_generation() -> int:
    global _generation  # noqa: PLW0603 - one process, one generation
    with _lock:
        _generation += 1
        return _generation


def synchronize() -> None:
    """Wait until no tracepoint that was firing when this was called still runs its probes.

    Raises RuntimeError in a probe, which would wait for itself.
    """
    if _local.depth:
        raise RuntimeError("synchronize() in a probe would wait for itself")
    wanted = _next_generation()
    pause = 0.00002
    while any(0 < t.active < wanted for t in list(_threads)):
        time.sleep(pause)
        pause = min(pause * 2, 0.002)


def make_filter(program: FilterProgram) -> FilterProgram:
    """Return a filter in the form that entries take."""
    return program


class _RingOf:
    def __init__(self, ring: Ring, serial: int, thread: _Thread) -> None:
        self.ring = ring
        self.serial = serial
        self.thread = thread
        self.comm = kernel_comm()
        # The C ring needs no lock: a page has one owner at any time.
        self.lock = threading.RLock()
        self.is_busy = False
        self.n_nested = 0

    def stats(self) -> dict[str, int]:
        with self.lock:
            return self.ring.stats() | {"nested": self.n_nested}

    def record(self, stamp: Callable[[], int], record: bytes) -> bool:
        with self.lock:
            if self.is_busy:
                # A finaliser or signal handler of this thread, in the middle of the lines below.
                self.n_nested += 1
                return False
            self.is_busy = True
            try:
                token = self.ring.reserve(stamp(), record, current_cpu())
                if token is not None:
                    self.ring.commit(token)
            finally:
                self.is_busy = False
        return token is not None

    @property
    def is_ended(self) -> bool:
        return not self.thread.thread.is_alive()


class Buffer:
    """What one trace instance records into: a ring of `n_pages` for every thread.

    Raises ValueError for a number of pages outside 2 to 65534, or an unknown clock.
    """

    def __init__(
        self, n_pages: int, overwrite: bool = True, clock: str = "local", directory: str | None = None
    ) -> None:
        if not MIN_PAGES <= n_pages <= MAX_PAGES:
            raise ValueError(f"a ring has {MIN_PAGES} to {MAX_PAGES} pages")
        if directory is not None:
            raise ValueError("rings in mapped files need the C core")
        self.n_pages = n_pages
        self.is_on = True
        self._overwrite = overwrite
        self._clock = _known_clock(clock)
        self._counter = 0
        self._serial = 0
        self._rings: list[_RingOf] = []
        self._mine = threading.local()
        self._retired = dict.fromkeys(COUNTS, 0)
        self._next_look = 0
        self._cleared = 0
        _buffers.add(self)
        # Not at the first event, which may be in a thread that a fork cuts off in the middle of it.
        current_cpu()

    @property
    def overwrite(self) -> bool:
        """Whether the oldest page makes room when a ring is full."""
        return self._overwrite

    @overwrite.setter
    def overwrite(self, value: bool) -> None:
        self._overwrite = value
        for item in self._rings:
            item.ring.overwrite = value

    @property
    def clock(self) -> str:
        """The trace clock's name; setting it clears the buffer."""
        return self._clock

    @clock.setter
    def clock(self, name: str) -> None:
        self._clock = _known_clock(name)
        self.clear()

    def now(self) -> int:
        """Return the clock's time, without counting the counter on."""
        return self._counter if self._clock == "counter" else self._stamp()

    def _stamp(self) -> int:
        if self._clock == "counter":
            self._counter += 1
            return self._counter
        now = time.clock_gettime_ns(_CLOCK_IDS[self._clock])
        return now // 10_000_000 if self._clock == "uptime" else now

    def _ring(self) -> _RingOf:
        mine: _RingOf | None = getattr(self._mine, "ring", None)
        if mine is None:
            with _lock:
                self._retire()
                mine = _RingOf(Ring(self.n_pages, self._overwrite), self._serial, _local.state)
                self._serial += 1
                self._rings.insert(0, mine)
                self._mine.ring = mine
        return mine

    def _retire(self) -> None:
        """Give up rings of ended threads: those that were read, and the oldest of too many bytes."""
        if self._serial < self._next_look:
            return
        kept, used, most = [], 0, ENDED_RINGS * self.n_pages * LAYOUT.page_size
        for item in self._rings:
            stats = item.stats()
            if item.is_ended and stats["entries"]:
                used += item.ring.n_bytes
            if not item.is_ended or (stats["entries"] and used <= most):
                kept.append(item)
                continue
            stats["overrun"] += stats["entries"]
            for name in ("overrun", "commit_overrun", "dropped", "read", "nested"):
                self._retired[name] += stats[name]
        self._rings = kept
        # Seldom where they are many, so that a thread costs the same with a thousand before it.
        self._next_look = self._serial + 1 + len(kept) // 16

    def write(self, record: bytes) -> bool:
        """Record bytes as they are, but for the thread's id at 4; return whether there was room."""
        return self.record(bytes(record), _generation)

    def record(self, record: bytes, begun: int) -> bool:
        """Write for an event that began in a generation; not when the buffer was cleared since."""
        if not self.is_on:
            return False
        tid = (_local.state.tid & 0xFFFFFFFF).to_bytes(4, "little")
        ring = self._ring()
        with ring.lock:
            return begun >= self._cleared and ring.record(self._stamp, record[:4] + tid + record[8:])

    def rings(self) -> list[tuple[int, int, bool, bytes, dict[str, int]]]:
        """Return (serial, tid, is_ended, comm, counts) of every ring, youngest first."""
        named = [(r, name_of(r.thread.thread, r.comm)) for r in self._rings]
        return [(r.serial, r.thread.tid, r.is_ended, name, r.stats()) for r, name in named]

    def _by_serial(self, serial: int) -> _RingOf:
        for item in self._rings:
            if item.serial == serial:
                return item
        raise KeyError(serial)

    def read(self, serial: int) -> bytes | None:
        """Take the oldest unread events of a ring as one page, or None; raises KeyError."""
        item = self._by_serial(serial)
        with item.lock:
            return item.ring.read()

    def peek(self, serial: int) -> list[bytes]:
        """Return all pages of a ring without taking them; raises KeyError."""
        item = self._by_serial(serial)
        with item.lock:
            return item.ring.peek()

    def clear(self) -> None:
        """Take everything out and reset the counts; events that began before are not recorded."""
        self._cleared = _next_generation()
        self._retired = dict.fromkeys(COUNTS, 0)
        for item in self._rings:
            with item.lock:
                item.ring.clear()
                item.n_nested = 0

    def stats(self) -> dict[str, int]:
        """Return the counts of all rings together."""
        total = dict(self._retired)
        stamps = []
        for item in self._rings:
            stats = item.stats()
            for name in COUNTS[:-1]:
                total[name] += stats[name]
            if stats["oldest_stamp"]:
                stamps.append(stats["oldest_stamp"])
        return total | {"oldest_stamp": min(stamps, default=0)}

    def forget(self) -> None:
        """Begin with nothing, in a child process."""
        self._rings = []
        self._mine = threading.local()
        self._retired = dict.fromkeys(COUNTS, 0)


def _known_clock(name: str) -> str:
    if name not in CLOCKS:
        raise ValueError(f"no clock named {name}")
    return name


def _after_fork_in_child() -> None:
    state = _local.state
    state.tid = threading.get_native_id()
    state.thread = threading.current_thread()
    _threads[:] = [state]
    for buffer in list(_buffers):
        buffer.forget()


os.register_at_fork(after_in_child=_after_fork_in_child)


def _of_event(name: str) -> Any:
    """Make a property for what an event has of its own and its class has too."""
    return property(lambda self: None if self.control is None else getattr(self.control, name))


class Tracepoint:
    """A hook in the code: called as a function; false, and next to free, while nothing listens."""

    # No __dict__: what updates that of a function with it, as functools.wraps() does, has no use for these.
    __slots__ = tuple(
        "name parameters control n_faults n_nested __weakref__ "
        "_fields _sizes _defaults _assign _condition _entries".split()
    )

    def __init__(
        self,
        name: str,
        parameters: tuple[str, ...],
        fields: tuple[tuple[str, int, int, int, int, int, int], ...],
        size: int = 8,
        dynamic: int = 8,
        *,
        defaults: Mapping[str, object] | None = None,
        assign: Callable[..., Any] | None = None,
        condition: Callable[..., Any] | None = None,
        control: object = None,
    ) -> None:
        self._fill(name=name, parameters=parameters, control=control, n_faults=0, n_nested=0)
        self._fill(_sizes=(size, dynamic), _defaults=defaults or {}, _assign=assign, _condition=condition)
        self._fill(_fields=tuple(FieldPlan(f[0], FieldKind(f[1]), *f[2:]) for f in fields), _entries=())

    def _fill(self, **values: object) -> None:
        """Set what is the tracepoint's own, past `__setattr__`."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def set_entries(self, entries: tuple[tuple[Any, ...], ...]) -> None:
        """Replace what runs when the tracepoint fires."""
        self._fill(_entries=entries)

    __doc__ = _of_event("__doc__")
    __module__ = _of_event("__module__")

    def __dir__(self) -> list[str]:
        own = ["__call__", "name", "parameters", "n_faults", "n_nested"]
        return own + (dir(self.control) if self.control is not None else [])

    def __bool__(self) -> bool:
        return bool(self._entries)

    def __reduce__(self) -> str | tuple[Any, ...]:
        # Not at the top: a runtime that is unloaded and loaded again has another one.
        found: str | tuple[Any, ...] = importlib.import_module("tracepoint.runtime.declare.named").reduced(
            self
        )
        return found

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        raise TypeError(f"{self.name} is an event, not a class")

    def __copy__(self) -> Tracepoint:
        return self

    def __deepcopy__(self, memo: object) -> Tracepoint:
        return self

    def __repr__(self) -> str:
        return f"<tracepoint {self.name}>"

    def __getattr__(self, name: str) -> Any:
        control = object.__getattribute__(self, "control")
        if control is None or name == "__dict__":
            raise AttributeError(f"{self.name} has no {name}")
        return getattr(control, name)

    def __setattr__(self, name: str, value: object) -> None:
        if name == "control" or self.control is None:
            self._fill(**{name: value})
            return
        getattr(self.control, name)  # a misspelt `event.fliter = ...` would let everything pass
        setattr(self.control, name, value)

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Fire: run the probes and record, in order of priority."""
        # Names of modules are None when a free-threaded Python 3.13 ends, as those of C code are not.
        if not self._entries or _local is None:
            return
        if _local.depth >= MAX_DEPTH:
            self._fill(n_nested=self.n_nested + 1)
            return
        begun = _generation
        if not _local.depth:
            _local.state.active = begun
        _local.depth += 1
        try:
            # Read after the mark above: synchronize() would not wait for a table that was read before.
            self._fire(self._entries, self._bind(args, kwargs), begun)
        except _FaultError as fault:
            self._keep(fault.where, fault.__cause__)
        except RecursionError:
            # Near its limit there is room for no more than the count.
            object.__setattr__(self, "n_faults", self.n_faults + 1)
        finally:
            _local.depth -= 1
            if not _local.depth:
                _local.state.active = 0

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if len(args) == len(self.parameters) and not kwargs:
            return args
        return self._guard("call", bind, self.parameters, self._defaults, args, kwargs)

    def _fire(self, entries: tuple[tuple[Any, ...], ...], args: tuple[Any, ...], begun: int) -> None:
        if self._condition is not None and not self._guard("condition", self._condition, *args):
            return
        record: bytes | None = None
        has_failed = False
        for kind, first, *rest in entries:
            try:
                if kind == "probe":
                    self._guard("probe", first, *rest, *args)
                elif not has_failed:
                    record = record or self._make(args)
                    self._record(first, record, begun, *rest)
            except _FaultError as fault:
                has_failed = has_failed or kind == "record"
                self._keep(fault.where, fault.__cause__)

    def _make(self, args: tuple[Any, ...]) -> Any:
        values = args
        if self._assign is not None:
            values = self._guard("assign", self._assign, *args)
            if isinstance(values, bytes):
                return self._guard("record", _whole_record, values, self._sizes[0])
            values = self._guard("assign", tuple, values)
        made: bytes = self._guard(
            "record", make_record, self._fields, values, *self._sizes, (0, _local.state.tid)
        )
        return made

    @staticmethod
    def _record(
        buffer: Buffer, record: bytes, begun: int, number: int, program: FilterProgram | None
    ) -> None:
        if not buffer.is_on:
            return
        record = (number & 0xFFFF).to_bytes(2, "little") + record[2:]
        if program is not None:
            context = RecordContext(current_cpu(), comm_of_thread())
            if not program.matches(record, context):
                return
        buffer.record(record, begun)

    @staticmethod
    def _guard(where: str, function: Callable[..., Any], *args: Any) -> Any:
        """Call what is not ours; nothing that it raises reaches the traced program."""
        try:
            return function(*args)
        except BaseException as error:
            raise _FaultError(where) from error

    def _keep(self, where: str, error: BaseException | None) -> None:
        self._fill(n_faults=self.n_faults + 1)
        keep_fault(self.name, where, error, is_first=self.n_faults == 1)


def _whole_record(record: bytes, least: int) -> bytes:
    if not least <= len(record) <= MAX_PAYLOAD:
        raise ValueError(f"a record of {len(record)} bytes")
    return record


class _FaultError(Exception):
    def __init__(self, where: str) -> None:
        super().__init__(where)
        self.where = where
