"""The events of this process as tracefs shows a kernel's: systems, events, instances.

`tracing` is the hierarchy of the process; `tracing["shop:order_placed"]` an event, `tracing["shop"]` a
system.  Code that needs another, as tests do, makes a `Tracing()` and hands it in where events are declared.
"""

from __future__ import annotations

import errno
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tracepoint.filter.error import FilterError
from tracepoint.filter.profile import KERNEL_6_12
from tracepoint.layout.process_events import FIRST_ID
from tracepoint.record.pages import ring_records
from tracepoint.runtime.declare import named
from tracepoint.runtime.declare.names import folder_problem
from tracepoint.runtime.fire.fault_warnings import warn_of_fault
from tracepoint.runtime.fire.locks import make_process_lock
from tracepoint.runtime.fire.mechanism import DEFAULT
from tracepoint.runtime.fire.probes import EventError
from tracepoint.runtime.rings.followed import FOLLOWED
from tracepoint.runtime.rings.format_table import table_in
from tracepoint.runtime.rings.options import ring_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tracepoint.filter.tree import Expression
    from tracepoint.model.event import Event
    from tracepoint.record.raw import RawRecord
    from tracepoint.runtime.dynamic.synthetic_fields import Synthetic
    from tracepoint.runtime.event_control import EventControl
    from tracepoint.runtime.fire.hook import HookControl
    from tracepoint.runtime.fire.mechanism import Mechanism

MAX_ID = (1 << 16) - 1
DEFAULT_PAGES = 354
MAX_LOG = 8
_lock = make_process_lock()


@dataclass(frozen=True, slots=True)
class System:
    """The events of one system in one instance."""

    name: str
    instance: Instance

    @property
    def events(self) -> tuple[EventControl, ...]:
        """Its events in the order in which they were declared."""
        return tuple(e for e in self.instance.tracing.events if e.system == self.name)

    @property
    def state(self) -> str:
        """`0` none enabled, `1` all, `X` some, as the system's `enable` file shows."""
        return state_of(self.events, self.instance)

    def enable(self) -> None:
        """Enable all events; see `switch_events`."""
        switch_events(self.events, self.instance, is_on=True)

    def disable(self) -> None:
        """Disable all events."""
        switch_events(self.events, self.instance, is_on=False)

    def set_filter(self, text: str) -> None:
        """Set the filter of every event that has its fields; the others show why not.

        Kernel: apply_subsystem_event_filter() in kernel/trace/trace_events_filter.c, which is
        content when the system has an event.
        """
        for event in self.events:
            try:
                event.set_filter(text, self.instance, is_for_system=True)
            except FilterError:
                continue


def switch_events(events: Iterable[EventControl], instance: Instance, *, is_on: bool) -> None:
    """Enable or disable events in an instance; the first failure is raised after all were switched.

    Kernel: __ftrace_set_clr_event_nolock() in kernel/trace/trace_events.c.
    """
    failures = []
    for event in events:
        try:
            if is_on:
                event.enable(instance)
            else:
                event.disable(instance)
        except (EventError, OSError) as error:
            failures.append(error)
    if failures:
        raise failures[0]


def state_of(events: tuple[EventControl, ...], instance: Instance) -> str:
    """Return `0`, `1`, `X`, or `?` without events: system_enable_read() in kernel/trace/trace_events.c."""
    states = {event.is_registered_in(instance) for event in events}
    return "?" if not states else "X" if len(states) == 2 else str(int(states.pop()))


class Instance:
    """A set of rings with its own enabled events, filters and switches.

    `tracing` is its hierarchy: itself for the top one, whose `name` is empty.
    """

    def __init__(
        self, tracing: Tracing, name: str = "", n_pages: int = DEFAULT_PAGES, **options: Any
    ) -> None:
        self.tracing = tracing
        self.name = name
        self.formats = table_in(options.get("directory"))
        self.directory = self.formats.directory if self.formats is not None else ""
        self.buffer = tracing.mechanism.core.Buffer(n_pages, **options)
        self.gate: Expression | None = None
        self._log: list[str] = []

    def __repr__(self) -> str:
        return f"<trace instance {self.name or 'top'}>"

    @property
    def is_on(self) -> bool:
        """Whether events are recorded at all (`tracing_on`)."""
        return bool(self.buffer.is_on)

    @is_on.setter
    def is_on(self, value: bool) -> None:
        self.buffer.is_on = value

    @property
    def clock(self) -> str:
        """The trace clock; setting it clears the rings."""
        return str(self.buffer.clock)

    @clock.setter
    def clock(self, name: str) -> None:
        self.buffer.clock = name

    def __getitem__(self, name: str) -> Any:
        """Return the event `system:name`, or the system `name`; raises KeyError."""
        if ":" in name:
            return self.tracing.event(name)
        system = System(name, self)
        if not system.events:
            raise KeyError(name)
        return system

    @property
    def state(self) -> str:
        """`0`, `1`, `X` or `?` for all events, as `events/enable` shows."""
        return state_of(self.tracing.events, self)

    @property
    def enabled_events(self) -> list[str]:
        """What `set_event` shows: enabled events, youngest declaration first."""
        return [e.full_name for e in reversed(self.tracing.events) if e.is_registered_in(self)]

    def set_event(self, word: str) -> None:
        """Do what one word written to `set_event` does; raises EventError (EINVAL) without a match.

        `[!]NAME`, `[!]SYSTEM:EVENT` with an empty side or `*` for any; there are no globs.
        Kernel: ftrace_set_clr_event() in kernel/trace/trace_events.c.
        """
        is_on = not word.startswith("!")
        match = word.removeprefix("!")
        system, colon, name = match.partition(":")
        any_of = ("", "*")
        found = [
            e
            for e in self.tracing.events
            if (
                (system in any_of or system == e.system) and (name in any_of or name == e.event.name)
                if colon
                else match in (e.system, e.event.name)
            )
        ]
        if not found:
            raise EventError(f"set_event: nothing matches {match!r}")
        switch_events(found, self, is_on=is_on)

    def log_error(self, entry: str) -> None:
        """Keep an entry of `error_log`, the last 8."""
        seconds, nanoseconds = divmod(self.buffer.now(), 1_000_000_000)
        self._log = [*self._log, f"[{seconds:5d}.{nanoseconds // 1000:06d}] {entry}"][-MAX_LOG:]

    @property
    def error_log(self) -> str:
        """What `error_log` shows."""
        return "".join(self._log)

    def clear_error_log(self) -> None:
        """Forget the log, as any write to it does."""
        self._log = []

    def set_buffer(self, buffer: Any) -> None:
        """Record into other rings from now on; raises nothing, drops what the old ones hold."""
        self.buffer = buffer
        self._renew_entries()

    def set_gate(self, gate: Expression | None) -> None:
        """Record only what also passes `gate`, which no file shows; None for everything."""
        self.gate = gate
        self._renew_entries()

    def _renew_entries(self) -> None:
        for event in self.tracing.events:
            event.renew_entry(self)

    def clear(self) -> None:
        """Empty the rings, as truncating `trace` does."""
        self.buffer.clear()

    @property
    def stats(self) -> dict[str, int]:
        """The counts of all rings together, by the names of per_cpu/cpuN/stats."""
        return dict(self.buffer.stats())

    def records(self) -> list[RawRecord]:
        """Return all records in the order of time, without taking them."""
        return self._in_order(self.buffer.peek)

    def read_records(self) -> list[RawRecord]:
        """Take all records and return them in the order of time."""
        return self._in_order(lambda serial: list(iter(lambda: self.buffer.read(serial), None)))

    def _in_order(self, pages_of: Callable[[int], list[bytes]]) -> list[RawRecord]:
        found: list[RawRecord] = []
        for serial, *_ in self.buffer.rings():
            # The ring of a thread that ended may go at any time once it was read.
            with suppress(KeyError):
                found.extend(ring_records(pages_of(serial)))
        return sorted(found, key=lambda r: r.timestamp)


class Tracing(Instance):
    """The top instance, and what belongs to all: events, instances, faults.

    `mechanism` is what its events run on; `options` are those of its buffer.
    """

    def __init__(self, mechanism: Mechanism = DEFAULT, **options: Any) -> None:
        self.mechanism = mechanism
        self._events: dict[str, EventControl] = {}
        #: Tracepoints without a record, by their names.
        self.hooks: dict[str, HookControl] = {}
        self.synthetic: dict[str, Synthetic] = {}
        self._next_id = FIRST_ID
        self.instances: dict[str, Instance] = {}
        self.filter_profile = KERNEL_6_12
        super().__init__(self, **options)
        mechanism.core.set_fault_hook(warn_of_fault)

    @property
    def events(self) -> tuple[EventControl, ...]:
        """All events in the order in which they were declared."""
        return tuple(self._events.values())

    @property
    def systems(self) -> tuple[str, ...]:
        """The names of all systems."""
        return tuple(dict.fromkeys(e.system for e in self.events))

    def event(self, name: str) -> EventControl:
        """Return the event `system:name`; raises KeyError."""
        return self._events[name]

    def tracepoint(self, name: str) -> Any:
        """Return the tracepoint object of an event or of a hook; raises KeyError."""
        return (self._events.get(name) or self.hooks[name]).tracepoint

    def same_declaration(self, event: Event, where: str) -> EventControl | None:
        """Return the event that was declared before by the very same text, as when a module is reloaded."""
        known = self._events.get(event.full_name)
        same = known is not None and known.event == event and known.where == where
        return known if same else None

    def add(self, control: EventControl) -> None:
        """Give an event its number and a place; raises EventError (EEXIST) for a second of its name."""
        with _lock:
            known = self._events.get(control.full_name)
            if known is not None:
                raise EventError(
                    f"{control.full_name} is declared twice: at {known.where} and at {control.where}",
                    errno.EEXIST,
                )
            if self._next_id > MAX_ID:
                raise EventError("no event number is left", errno.EBUSY)
            control.layout = replace(control.layout, id=self._next_id)
            self._next_id += 1
            self._events[control.full_name] = control

    def remove(self, control: EventControl) -> None:
        """Remove an event that nothing uses."""
        with _lock:
            self._events.pop(control.full_name)

    def make_instance(self, name: str, **options: Any) -> Instance:
        """Make an instance with own rings; raises EventError (also for its directory), OSError."""
        if problem := folder_problem(name):
            raise EventError(f"the name of instance {name!r} {problem}")
        if name in self.instances:
            raise EventError(f"instance {name!r} exists", errno.EEXIST)
        return self.instances.setdefault(name, Instance(self, name, **options))

    def remove_instance(self, name: str) -> None:
        """Disable what an instance records and drop it; raises EventError (ENOENT)."""
        instance = self.instances.pop(name, None)
        if instance is None:
            raise EventError(f"there is no instance {name!r}", errno.ENOENT)
        for event in self.events:
            event.forget(instance)
        self.synchronize()

    def synchronize(self) -> None:
        """Wait until probes that were unregistered before this call have finished everywhere.

        Raises RuntimeError in a probe, which would wait for itself.
        """
        self.mechanism.core.synchronize()

    @property
    def faults(self) -> tuple[int, list[tuple[str, str, str]]]:
        """How many faults there were, and the last 64 as (event, where, text)."""
        return self.mechanism.core.faults()

    def clear_faults(self) -> None:
        """Forget all faults."""
        self.mechanism.core.clear_faults()


tracing = Tracing(**ring_options())
if FOLLOWED is not None:
    # One that this machine does not have stays out: its rings are then named as left out.
    with suppress(ValueError):
        tracing.clock = FOLLOWED.clock
named.offer(tracing.tracepoint)
