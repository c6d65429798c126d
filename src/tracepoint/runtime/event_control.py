"""One event of this process: its probes, and what the instances of its hierarchy record of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from tracepoint.filter.error import FilterError
from tracepoint.filter.parse import is_clear, parse_filter
from tracepoint.layout.format import write_format
from tracepoint.runtime.declare.event_help import USER_NAMES, Identity, event_doc, identity_without
from tracepoint.runtime.fire.probes import DEFAULT_PRIORITY, Probes, Registration, changing
from tracepoint.runtime.recording import NONE, EventState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tracepoint.filter.profile import FilterProfile
    from tracepoint.filter.tree import Expression
    from tracepoint.layout.format import EventFormat
    from tracepoint.model.event import Event
    from tracepoint.runtime.declare.plan import RecordPlan
    from tracepoint.runtime.fire.mechanism import Mechanism, RingBuffer
    from tracepoint.runtime.rings.format_table import FormatTable


class RecordingInstance(Protocol):
    """What an event needs of an instance that records it: `hierarchy.Instance`."""

    buffer: RingBuffer
    gate: Expression | None
    formats: FormatTable | None

    def log_error(self, entry: str) -> None:
        """Keep an entry of `error_log`."""


class TopInstance(RecordingInstance, Protocol):
    """What an event needs of the hierarchy that it is declared in: `hierarchy.Tracing`."""

    mechanism: Mechanism
    filter_profile: FilterProfile


class EventControl:
    """Everything about one event but firing it.

    `reg` runs before the first listener comes, `unreg` after the last has gone
    (TRACE_EVENT_FN); `where` is the place of the declaration, `doc` what help() shows first, `identity` what
    Python shows of it; `tracing` is the hierarchy, whose top instance records where no other is named.
    """

    def __init__(
        self,
        event: Event,
        plan: RecordPlan,
        tracing: TopInstance,
        *,
        hints: Mapping[str, Any],
        where: str,
        reg: Callable[[], object] | None = None,
        unreg: Callable[[], object] | None = None,
        doc: str = "",
        identity: Identity | None = None,
    ) -> None:
        self.event = event
        self.tracing = tracing
        self.plan = plan
        self.where = where
        self.tracepoint: Any = None
        self.assign: Callable[..., Any] | None = None
        self.layout: EventFormat = plan.format
        self._recordings: dict[RecordingInstance, EventState] = {}
        parameters = tuple(event.proto.names)
        identity = identity or identity_without(event.full_name, parameters)
        whole = event_doc(event.full_name, doc, identity.usage(), plan.format.event_fields, EventControl)
        identity.show_in(self, whole)
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

    def enable(self, instance: RecordingInstance | None = None) -> None:
        """Record the event in `instance`, or in the top one; raises EventError when `reg` fails."""
        where = instance or self.tracing
        with changing:
            recording = self._recording(where)
            if not recording.is_enabled:
                if where.formats is not None:
                    where.formats.add(self.layout)
                self.probes.insert(DEFAULT_PRIORITY, recording, self._entry(where, recording))
                recording.is_enabled = recording.was_enabled = True

    def disable(self, instance: RecordingInstance | None = None) -> None:
        """Stop recording it; what was recorded stays."""
        with changing:
            recording = self._recording(instance or self.tracing)
            if recording.is_enabled:
                recording.is_enabled = False
                self.probes.remove(recording)

    def is_enabled_in(self, instance: RecordingInstance) -> bool:
        """Return whether `instance` records it."""
        return self._recording(instance).is_enabled

    def was_enabled_in(self, instance: RecordingInstance) -> bool:
        """Return whether `instance` records it or did once."""
        return self._recording(instance).was_enabled

    def is_registered_in(self, instance: RecordingInstance) -> bool:
        """Return whether `instance` records it or a trigger there needs it."""
        return self._recording(instance).is_registered

    def state_in(self, instance: RecordingInstance) -> str:
        """What the `enable` file shows: `0`, `1`, `0*` or `1*`."""
        return self._recording(instance).state

    def hold(self, instance: RecordingInstance, n: int = 1) -> None:
        """Count `n` more (or fewer) triggers that need the event: soft mode."""
        with changing:
            self._recording(instance).n_soft += n

    @property
    def enabled(self) -> bool:
        """Whether the top instance records it."""
        found = self._recordings.get(self.tracing)
        return found is not None and found.is_enabled

    @property
    def filter(self) -> str:
        """What the `filter` file of the top instance shows; setting raises FilterError."""
        return self.filter_in(self.tracing)

    @filter.setter  # noqa: A003 - tracefs's word
    def filter(self, text: str) -> None:
        self.set_filter(text, self.tracing)

    def filter_in(self, instance: RecordingInstance) -> str:
        """What the `filter` file of `instance` shows, without its last newline."""
        return self._recording(instance).filter_text

    def set_filter(self, text: str, instance: RecordingInstance, *, is_for_system: bool = False) -> None:
        """Record only what passes; `0` clears.

        A text that the kernel would refuse switches the filter off, is shown with the reason by
        `filter_in` and logged by the instance.  Raises FilterError then.
        """
        recording = self._recording(instance)
        failure: FilterError | None = None
        recording.filter_text, recording.parsed = NONE, None
        if not is_clear(text):
            try:
                recording.parsed = parse_filter(text, self.layout, self.tracing.filter_profile)
                recording.filter_text = recording.parsed.text
            except FilterError as error:
                failure = error
                shown = error.for_system() if is_for_system else error
                recording.filter_text = shown.report.removesuffix("\n")
                instance.log_error(shown.log_entry)
        self.renew_entry(instance)
        if failure is not None:
            raise failure

    def renew_entry(self, instance: RecordingInstance) -> None:
        """Record into the buffer that `instance` has now what passes the filter and its gate."""
        recording = self._recording(instance)
        if recording.is_enabled:
            self.probes.replace(recording, self._entry(instance, recording))

    def forget(self, instance: RecordingInstance) -> None:
        """Drop all that belongs to an instance that goes away."""
        self.disable(instance)
        self._recordings.pop(instance, None)

    def _recording(self, instance: RecordingInstance) -> EventState:
        found = self._recordings.get(instance)
        if found is None:
            # Of two threads that make one, both get that which is kept.
            found = self._recordings.setdefault(instance, EventState())
        return found

    def _entry(self, instance: RecordingInstance, recording: EventState) -> tuple[Any, ...]:
        program = recording.compile(self.layout, instance.gate)
        return (
            "record",
            instance.buffer,
            self.id,
            None if program is None else self.tracing.mechanism.make_filter(program),
        )

    def _apply(self, entries: tuple[tuple[Any, ...], ...]) -> None:
        self.tracepoint.set_entries(entries)
