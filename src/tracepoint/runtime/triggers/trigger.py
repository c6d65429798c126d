"""Triggers: what is done when an event fires, in the kernel's words.

Grammar, errno and order are those of kernel/trace/trace_events_trigger.c.  The record that a trigger's
filter looks at is made by the core in rings of the trigger's own, so that recording and
triggers see the same bytes.
"""

from __future__ import annotations

import errno
import struct
import sys
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.filter.context import RecordContext
from tracepoint.filter.error import FilterError
from tracepoint.filter.parse import parse_filter
from tracepoint.filter.program import FilterProgram, compile_filter
from tracepoint.layout.process_events import OWN_BY_NAME, STACK_ID
from tracepoint.runtime.files.file import failure
from tracepoint.runtime.files.texts import NO_TRIGGER
from tracepoint.runtime.fire.probes import EventError
from tracepoint.runtime.fire.tap import SCRATCH_PAGES, Tap
from tracepoint.runtime.fire.this_thread import comm_of_thread, current_cpu
from tracepoint.runtime.rings.symbols import stack_of
from tracepoint.runtime.triggers.hist import RunningHist
from tracepoint.trigger.command import MAX_TRIGGER, parse_trigger
from tracepoint.trigger.error import HistError, TriggerError
from tracepoint.trigger.hist import parse_hist

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

    from tracepoint.layout.format import EventFormat
    from tracepoint.record.raw import RawRecord
    from tracepoint.runtime.event_control import EventControl
    from tracepoint.runtime.files.state import InstanceState
    from tracepoint.trigger.command import Trigger
    from tracepoint.trigger.expression import OperandType
    from tracepoint.trigger.hist import HistSpec

PRINT = "ftrace:print"
MAX_MARKER = 1024
# A marker's text has no size in `format`; filters look at as much as one write can bring.
MARKER_LAYOUT = replace(
    OWN_BY_NAME["print"],
    fields=tuple(
        replace(f, ctype=f"char[{MAX_MARKER}]", size=MAX_MARKER) if f.name == "buf" else f
        for f in OWN_BY_NAME["print"].fields
    ),
)
_HERE = str(Path(__file__).parent.parent)
_TYPES = {
    "traceon": "trace_onoff",
    "traceoff": "trace_onoff",
    "snapshot": "snapshot",
    "stacktrace": "stacktrace",
    "enable_event": "event_enable",
    "disable_event": "event_enable",
    "enable_hist": "hist_enable",
    "disable_hist": "hist_enable",
}
_POST = ("traceoff", "stacktrace")


@dataclass(slots=True, eq=False)
class RunningTrigger:
    """One trigger: `count` is how often it still acts (None: always), `target` the event that it switches."""

    command: str
    count: int | None = None
    filter_text: str = ""
    program: FilterProgram | None = None
    target: EventControl | None = None

    @property
    def type(self) -> tuple[str, str]:
        """What may be there only once."""
        return _TYPES[self.command], self.target.full_name if self.target else ""

    @property
    def takes_snapshots(self) -> bool:
        """Whether it needs the snapshot of its instance."""
        return self.command == "snapshot"

    def __str__(self) -> str:
        target = f":{self.target.full_name}" if self.target else ""
        count = "unlimited" if self.count is None else f"count={self.count}"
        tail = f" if {self.filter_text}" if self.filter_text else ""
        return f"{self.command}{target}:{count}{tail}"

    def may_act(self, *, changes: bool) -> bool:
        """Count down when there is something to do; return whether to do it."""
        if not changes or self.count == 0:
            return False
        if self.count is not None:
            self.count -= 1
        return True

    def act(self, state: InstanceState, record: RawRecord) -> None:
        """Do it."""
        instance, target = state.instance, self.target
        match self.command:
            case "traceon" if self.may_act(changes=not instance.is_on):
                state.switch(is_on=True)
            case "traceoff" if self.may_act(changes=instance.is_on):
                state.switch(is_on=False)
            case "snapshot" if self.may_act(changes=True):
                state.take_snapshot()
            case "stacktrace" if self.may_act(changes=True):
                record_stack(state, sys._getframe())  # noqa: SLF001 - the way to the caller's stack
            case "enable_event" if target and self.may_act(changes=not target.is_enabled_in(instance)):
                target.enable(instance)
            case "enable_hist" | "disable_hist" if target:
                for hist in trigger_set(state, target.full_name).hists:
                    hist.is_paused = self.command == "disable_hist"
            case "disable_event" if target and self.may_act(changes=target.is_enabled_in(instance)):
                target.disable(instance)
        del record


def record_stack(state: InstanceState, frame: FrameType | None) -> None:
    """Record the Python stack of the caller, without the frames of this room."""
    while frame is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    addresses = stack_of(frame)
    head = struct.pack("<HBBiixxxx", STACK_ID, 0, 0, 0, len(addresses))
    state.instance.buffer.write(head + struct.pack(f"<{len(addresses)}Q", *addresses))


class TriggerSet:
    """The triggers of one event in one instance: its `trigger` and `hist` files."""

    def __init__(self, state: InstanceState, name: str) -> None:
        self._state = state
        self._event = None if name == PRINT else state.tracing.event(name)
        self._items: list[RunningTrigger | RunningHist] = []
        self._name = name
        self._pending = threading.local()
        self._tap: Tap | None = None

    @property
    def is_current(self) -> bool:
        """Whether its event is still the one of that name."""
        return self._event is None or self._event is self._state.tracing.event(self._name)

    @property
    def layout(self) -> EventFormat:
        """The record that filters look at."""
        return self._event.layout if self._event else MARKER_LAYOUT

    def text(self) -> str:
        """What the `trigger` file shows: simple ones, the youngest first, then hists, the oldest first."""
        return "".join(f"{item}\n" for item in self._items) if self._items else NO_TRIGGER

    def hist_text(self) -> str:
        """What the `hist` file shows: kernel/trace/trace_events_hist.c, hist_show()."""
        return "\n\n".join(hist.text() for hist in self.hists)

    @property
    def hists(self) -> list[RunningHist]:
        """Its hist triggers, oldest first."""
        return [item for item in self._items if isinstance(item, RunningHist)]

    def truncate(self) -> None:
        """Remove the hist triggers, unless another reads a variable; simple ones stay: hist_unreg_all()."""
        others = _Others(self._state)
        if not any(others.is_read(hist) for hist in self.hists):
            self._remove(self.hists)

    def _write_hist(self, text: str, trigger: Trigger) -> None:
        """Take a hist trigger: event_hist_trigger_parse()."""
        try:
            self.take_hist(trigger.parameters, trigger.filter, is_removal=trigger.is_removal)
        except HistError as error:
            for words, needle in error.entries:
                at = max(text.find(needle), 0)
                caret = " " * (len("  Command: ") + at) + "^"
                where = f"hist:{self._name}"
                self._state.instance.log_error(f"{where}: error: {words}\n  Command: {text}\n{caret}\n")
            raise failure(error.errno) from None

    def take_hist(self, attributes: str, condition: str, *, is_removal: bool = False) -> None:
        """Make, change or remove a hist trigger; raises HistError, OSError."""
        others = _Others(self._state, "" if is_removal else self._name)
        spec = parse_hist(attributes, self.layout, others)
        known = next((hist for hist in self.hists if hist.spec.identity == spec.identity), None)
        if is_removal:
            if known is not None and others.is_read(known):
                raise failure(errno.EBUSY)
            self._remove([known] if known is not None else [])
        elif known is not None:
            self._change(known, spec.words)
        elif spec.words & {"clear", "continue"}:
            raise HistError("Can't clear or continue a nonexistent hist trigger", number=errno.ENOENT)
        else:
            self._make(spec, condition, others)

    def _make(self, spec: HistSpec, condition: str, others: _Others) -> None:
        made = RunningHist(self._state, self._name, self.layout, spec, others)
        namesake = next((h for h in others if spec.name and h.spec.name == spec.name), None)
        if namesake is not None:
            if namesake.spec.identity != spec.identity:
                text = "Named hist trigger doesn't match existing named trigger (includes variables)"
                raise HistError(text, spec.name)
            made.table = namesake.table
        if condition:
            made.filter_text, made.program = self._filter(condition)
        self._add(made)

    def remove_hist(self, hist: RunningHist) -> None:
        """Remove a hist trigger that another one made, when its variable is no longer read."""
        if hist in self._items and not _Others(self._state).is_read(hist):
            self._remove([hist])

    @staticmethod
    def _change(known: RunningHist, words: set[str]) -> None:
        if not words:
            raise HistError("Hist trigger already exists", number=errno.EEXIST)
        if "clear" in words:
            known.table.clear()
        if words & {"pause", "continue"}:
            known.is_paused = "pause" in words

    def write(self, data: bytes) -> None:
        """Take one line of the grammar; raises OSError."""
        text = data.split(b"\0", 1)[0].strip().decode(errors="surrogateescape")
        if not data or len(data) > MAX_TRIGGER:
            raise failure(errno.EINVAL)
        try:
            trigger = parse_trigger(text)
        except TriggerError as error:
            raise failure(error.errno) from None
        if trigger.command == "hist":
            self._write_hist(text.removeprefix("!"), trigger)
            return
        made = RunningTrigger(trigger.command, trigger.count, target=self._find_target(trigger.target))
        if trigger.is_removal:
            self._remove([i for i in self._items if isinstance(i, RunningTrigger) and i.type == made.type])
            return
        if trigger.filter:
            made.filter_text, made.program = self._filter(trigger.filter)
        if any(isinstance(item, RunningTrigger) and item.type == made.type for item in self._items):
            raise failure(errno.EEXIST)
        self._add(made)

    def _find_target(self, name: str) -> EventControl | None:
        try:
            return self._state.tracing.event(name) if name else None
        except KeyError:
            raise failure(errno.EINVAL) from None

    def _filter(self, text: str) -> tuple[str, FilterProgram]:
        try:
            parsed = parse_filter(text, self.layout, self._state.tracing.filter_profile)
        except FilterError as error:
            raise failure(error.errno) from None
        return parsed.text, compile_filter(parsed)

    def _hold_others(self, item: RunningTrigger | RunningHist, n: int) -> None:
        if isinstance(item, RunningHist):
            item.hold(n)
        elif item.target is not None and item.command.endswith("_event"):
            item.target.hold(self._state.instance, n)

    def _add(self, made: RunningTrigger | RunningHist) -> None:
        if made.takes_snapshots:
            # Made when the trigger is set, to need no memory when it fires.
            self._state.arm_snapshot()
        if self._event is not None and self._tap is None:
            self._tap = self._listen(self._event)
        self._items.insert(len(self._items) if isinstance(made, RunningHist) else 0, made)
        self._hold_others(made, 1)
        if self._event is not None:
            self._event.hold(self._state.instance)

    def _listen(self, event: EventControl) -> Tap:
        instance = self._state.instance
        buffer = self._state.tracing.mechanism.core.Buffer(SCRATCH_PAGES, clock=instance.clock)
        tap = Tap(event, buffer, self._before)
        try:
            tap.attach(self._after)
        except EventError as error:
            # `reg` failed: nothing listens, so there is no trigger either.
            raise failure(error.errno) from None
        return tap

    def _remove(self, gone: Sequence[RunningTrigger | RunningHist]) -> None:
        for item in gone:
            self._items.remove(item)
            self._hold_others(item, -1)
            if self._event is not None:
                self._event.hold(self._state.instance, -1)
            if isinstance(item, RunningHist):
                for made in item.made:
                    trigger_set(self._state, made.event_name).remove_hist(made)
        if not self._items and self._tap is not None:
            self._tap.detach()
            self._tap = None

    def remove_all(self) -> None:
        """Take every trigger away, when the instance goes."""
        self._remove(list(self._items))

    def run(self, record: RawRecord) -> None:
        """Run everything for a record that is in the rings already."""
        self._before(record)
        self._after()

    def _before(self, record: RawRecord) -> None:
        context: RecordContext | None = None
        for item in list(self._items):
            if item.program is not None:
                context = context or RecordContext(current_cpu(), comm_of_thread())
                if not item.program.matches(record.data, context):
                    continue
            if isinstance(item, RunningHist):
                item.act(record)
            elif item.command in _POST:
                self._pending.__dict__.setdefault("items", []).append((item, record))
            else:
                item.act(self._state, record)

    def _after(self, *_: object) -> None:
        waiting = self._pending.__dict__.pop("items", ())
        for item, record in waiting:
            item.act(self._state, record)


class _Others:
    """The hist triggers of an instance, as a new one of event `name` sees them: `hist.Neighbours`.

    Without a name nothing new is defined.
    """

    def __init__(self, state: InstanceState, name: str = "") -> None:
        self._state = state
        self._name = name

    def __iter__(self) -> Iterator[RunningHist]:
        for triggers in self._state.triggers.values():
            yield from triggers.hists

    def is_read(self, hist: RunningHist) -> bool:
        """Return whether another one reads a variable of it."""
        return any(other.refers_to(hist) for other in self)

    def has_event(self, system: str, name: str) -> bool:
        """Return whether there is such an event."""
        full = f"{system}:{name}"
        return full == PRINT or any(event.full_name == full for event in self._state.tracing.events)

    def defines(self, name: str) -> bool:
        """Return whether a hist of the same event has such a variable: create_var_field()."""
        return any(name in hist.spec.kinds for hist in self if hist.event_name == self._name)

    def find_variable(
        self, system: str, event: str, name: str, matched: tuple[tuple[str, str], ...]
    ) -> RunningHist | None:
        """Return the hist that defines a variable: find_event_var(); raises HistError when several do."""
        having = [hist for hist in self if name in hist.spec.kinds]
        if system:
            return next((hist for hist in having if hist.event_name == f"{system}:{event}"), None)
        wanted = {f"{system}:{event}" for system, event in matched}
        found = [hist for hist in having if hist.event_name in wanted] or having
        if len({hist.event_name for hist in found}) > 1:
            text = (
                "Variable name not unique, need to use fully qualified name (subsys.event.var) for variable"
            )
            raise HistError(text, name)
        return found[0] if found else None

    def variable_kind(
        self, system: str, event: str, name: str, matched: tuple[tuple[str, str], ...]
    ) -> OperandType | None:
        """Return the type of such a variable."""
        hist = self.find_variable(system, event, name, matched)
        return hist.spec.kinds[name] if hist is not None else None

    def make_field_variable(self, user: RunningHist, system: str, event: str, name: str) -> RunningHist:
        """Let a hist on another event keep a field: create_field_var_hist(); raises HistError."""
        if not self.has_event(system, event):
            raise HistError("Couldn't find param", name)
        triggers = trigger_set(self._state, f"{system}:{event}")
        alike = [hist for hist in triggers.hists if hist.key_kinds() == user.key_kinds()]
        if not alike:
            raise HistError("Matching event histogram not found", name)
        variable = f"synthetic_{name}"
        made = self.find_variable(system, event, variable, ())
        if made is None:
            keys = ",".join(operand.name for operand in alike[-1].spec.keys)
            try:
                triggers.take_hist(f"keys={keys}:{variable}={name}", alike[-1].filter_text)
            except (HistError, OSError):
                raise HistError("Couldn't create histogram for field", name) from None
            made = triggers.hists[-1]
            user.made.append(made)
        return made


def trigger_set(state: InstanceState, name: str) -> TriggerSet:
    """Return the triggers of an event (`system:name`) in an instance."""
    found: TriggerSet | None = state.triggers.get(name)
    if found is not None and not found.is_current:
        # A synthetic event of this name went and another came.
        found.remove_all()
        found = None
    if found is None:
        found = state.triggers[name] = TriggerSet(state, name)
    return found
