"""The events of this process as tracefs shows a kernel's: systems, events, instances.

`tracing` is the one hierarchy; `tracing["shop:order_placed"]` an event, `tracing["shop"]` a system.
"""

from __future__ import annotations

import errno
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tracepoint.filter.error import FilterError
from tracepoint.filter.parse import is_clear, parse_filter
from tracepoint.filter.profile import KERNEL_6_12
from tracepoint.layout.format import write_format
from tracepoint.runtime.declare import named
from tracepoint.runtime.declare.event_help import USER_NAMES, event_doc
from tracepoint.runtime.declare.names import folder_problem
from tracepoint.runtime.fire import mechanism
from tracepoint.runtime.fire.fault_warnings import warn_of_fault
from tracepoint.runtime.fire.locks import make_process_lock
from tracepoint.runtime.fire.probes import DEFAULT_PRIORITY, EventError, Probes, Registration, changing
from tracepoint.runtime.recording import NONE, Recording
from tracepoint.runtime.rings.format_table import table_in
from tracepoint.runtime.rings.options import ring_options
from tracepoint.runtime.rings.ring import ring_records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tracepoint.filter.tree import Expression
    from tracepoint.layout.format import EventFormat
    from tracepoint.model.event import Event
    from tracepoint.record.raw import RawRecord
    from tracepoint.runtime.declare.plan import RecordPlan

# kernel/trace/trace.h, __TRACE_LAST_TYPE: smaller numbers are the kernel's own events.
FIRST_ID = 20
MAX_ID = (1 << 16) - 1
DEFAULT_PAGES = 354
MAX_LOG = 8
_lock = make_process_lock()


class EventControl:
    """Everything about one event but firing it.

    `reg` runs before the first listener comes, `unreg` after the last has gone
    (TRACE_EVENT_FN); `where` is the place of the declaration, `doc` what help() shows.
    """

    def __init__(
        self,
        event: Event,
        plan: RecordPlan,
        *,
        hints: Mapping[str, Any],
        where: str,
        reg: Callable[[], object] | None = None,
        unreg: Callable[[], object] | None = None,
        doc: str = "",
    ) -> None:
        self.event = event
        self.doc = event_doc(event.full_name, doc, EventControl)
        self.plan = plan
        self.where = where
        self.tracepoint: Any = None
        self.assign: Callable[..., Any] | None = None
        self.layout: EventFormat = plan.format
        self._recordings: dict[Instance, Recording] = {}
        parameters = tuple(event.proto.names)
        self.probes = Probes(event.full_name, parameters, hints, self._apply, reg, unreg)

    def __repr__(self) -> str:
        return f"<event {self.full_name}>"

    def __dir__(self) -> list[str]:
        return list(USER_NAMES)

    @property
    def full_name(self) -> str:
        """`system:name`."""
        return self.event.full_name

    @property
    def system(self) -> str:
        """The system's name."""
        return self.event.system

    @property
    def id(self) -> int:
        """The number that records of this event bear; it differs from run to run."""
        return self.layout.id

    @property
    def format(self) -> str:
        """What the `format` file shows."""
        return write_format(self.layout)

    def register(self, probe: Callable[..., object], **options: Any) -> Registration:
        """Call a probe whenever the event fires; see `Probes.register`."""
        return self.probes.register(probe, **options)

    def enable(self, instance: Instance | None = None) -> None:
        """Record the event in `instance`, or in the top one; raises EventError when `reg` fails."""
        where = instance or tracing
        with changing:
            recording = self._recording(where)
            if not recording.is_enabled:
                if where.formats is not None:
                    where.formats.add(self.layout)
                self.probes.insert(DEFAULT_PRIORITY, recording, self._entry(where, recording))
                recording.is_enabled = recording.was_enabled = True

    def disable(self, instance: Instance | None = None) -> None:
        """Stop recording it; what was recorded stays."""
        with changing:
            recording = self._recording(instance or tracing)
            if recording.is_enabled:
                recording.is_enabled = False
                self.probes.remove(recording)

    def is_enabled_in(self, instance: Instance) -> bool:
        """Whether `instance` records it."""
        return self._recording(instance).is_enabled

    def was_enabled_in(self, instance: Instance) -> bool:
        """Whether `instance` records it or did once."""
        return self._recording(instance).was_enabled

    def is_registered_in(self, instance: Instance) -> bool:
        """Whether `instance` records it or a trigger there needs it."""
        return self._recording(instance).is_registered

    def state_in(self, instance: Instance) -> str:
        """What the `enable` file shows: `0`, `1`, `0*` or `1*`."""
        return self._recording(instance).state

    def hold(self, instance: Instance, n: int = 1) -> None:
        """Count `n` more (or fewer) triggers that need the event: soft mode."""
        with changing:
            self._recording(instance).n_soft += n

    @property
    def enabled(self) -> bool:
        """Whether the top instance records it."""
        found = self._recordings.get(tracing)
        return found is not None and found.is_enabled

    @property
    def filter(self) -> str:
        """What the `filter` file of the top instance shows; setting raises FilterError."""
        return self.filter_in(tracing)

    @filter.setter  # noqa: A003 - tracefs's word
    def filter(self, text: str) -> None:
        self.set_filter(text, tracing)

    def filter_in(self, instance: Instance) -> str:
        """What the `filter` file of `instance` shows, without its last newline."""
        return self._recording(instance).filter_text

    def set_filter(self, text: str, instance: Instance, *, is_for_system: bool = False) -> None:
        """Record only what passes; `0` clears.

        A text that the kernel would refuse switches the filter off, is shown with the reason by
        `filter_in` and logged by the instance.  Raises FilterError then.
        """
        recording = self._recording(instance)
        failure: FilterError | None = None
        recording.filter_text, recording.parsed = NONE, None
        if not is_clear(text):
            try:
                recording.parsed = parse_filter(text, self.layout, tracing.filter_profile)
                recording.filter_text = recording.parsed.text
            except FilterError as error:
                failure = error
                shown = error.for_system() if is_for_system else error
                recording.filter_text = shown.report.removesuffix("\n")
                instance.log_error(shown.log_entry)
        self.renew_entry(instance)
        if failure is not None:
            raise failure

    def renew_entry(self, instance: Instance) -> None:
        """Record into the buffer that `instance` has now what passes the filter and its gate."""
        recording = self._recording(instance)
        if recording.is_enabled:
            self.probes.replace(recording, self._entry(instance, recording))

    def forget(self, instance: Instance) -> None:
        """Drop all that belongs to an instance that goes away."""
        self.disable(instance)
        self._recordings.pop(instance, None)

    def _recording(self, instance: Instance) -> Recording:
        found = self._recordings.get(instance)
        if found is None:
            # Of two threads that make one, both get that which is kept.
            found = self._recordings.setdefault(instance, Recording())
        return found

    def _entry(self, instance: Instance, recording: Recording) -> tuple[Any, ...]:
        program = recording.compile(self.layout, instance.gate)
        return (
            "record",
            instance.buffer,
            self.id,
            None if program is None else mechanism.make_filter(program),
        )

    def _apply(self, entries: tuple[tuple[Any, ...], ...]) -> None:
        self.tracepoint.set_entries(entries)


@dataclass(frozen=True, slots=True)
class System:
    """The events of one system in one instance."""

    name: str
    instance: Instance

    @property
    def events(self) -> tuple[EventControl, ...]:
        """Its events in the order in which they were declared."""
        return tuple(e for e in tracing.events if e.system == self.name)

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
    """A set of rings with its own enabled events, filters and switches; `name` is empty for the top one."""

    def __init__(self, name: str = "", n_pages: int = DEFAULT_PAGES, **options: Any) -> None:
        self.name = name
        self.formats = table_in(options.get("directory"))
        self.directory = self.formats.directory if self.formats is not None else ""
        self.buffer: Any = mechanism.Buffer(n_pages, **options)
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
            return tracing.event(name)
        system = System(name, self)
        if not system.events:
            raise KeyError(name)
        return system

    @property
    def state(self) -> str:
        """`0`, `1`, `X` or `?` for all events, as `events/enable` shows."""
        return state_of(tracing.events, self)

    @property
    def enabled_events(self) -> list[str]:
        """What `set_event` shows: enabled events, youngest declaration first."""
        return [e.full_name for e in reversed(tracing.events) if e.is_registered_in(self)]

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
            for e in tracing.events
            if (
                (system in any_of or system == e.system) and (name in any_of or name == e.event.name)
                if colon
                else match in (e.system, e.event.name)
            )
        ]
        if not found:
            raise EventError(f"set_event: nothing matches {match!r}")
        switch_events(found, self, is_on=is_on)

    def disable_all(self) -> None:
        """Disable every event, as opening `set_event` for writing does."""
        switch_events(tracing.events, self, is_on=False)

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
        for event in tracing.events:
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
    """The top instance, and what the whole process has once: events, instances, faults."""

    def __init__(self) -> None:
        super().__init__(**ring_options())
        self._events: dict[str, EventControl] = {}
        self._next_id = FIRST_ID
        self.instances: dict[str, Instance] = {}
        self.filter_profile = KERNEL_6_12

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

    def make_instance(self, name: str, **options: Any) -> Instance:
        """Make an instance with own rings; raises EventError (also for its directory), OSError."""
        if problem := folder_problem(name):
            raise EventError(f"the name of instance {name!r} {problem}")
        if name in self.instances:
            raise EventError(f"instance {name!r} exists", errno.EEXIST)
        return self.instances.setdefault(name, Instance(name, **options))

    def remove_instance(self, name: str) -> None:
        """Disable what an instance records and drop it; raises EventError (ENOENT)."""
        instance = self.instances.pop(name, None)
        if instance is None:
            raise EventError(f"there is no instance {name!r}", errno.ENOENT)
        for event in self.events:
            event.forget(instance)
        mechanism.synchronize()

    @staticmethod
    def synchronize() -> None:
        """Wait until probes that were unregistered before this call have finished everywhere.

        Raises RuntimeError in a probe, which would wait for itself.
        """
        mechanism.synchronize()

    @property
    def faults(self) -> tuple[int, list[tuple[str, str, str]]]:
        """How many faults there were, and the last 64 as (event, where, text)."""
        count, last = mechanism.faults()
        return count, last

    @staticmethod
    def clear_faults() -> None:
        """Forget all faults."""
        mechanism.clear_faults()


tracing = Tracing()
named.offer(lambda name: tracing.event(name).tracepoint)
mechanism.set_fault_hook(warn_of_fault)
