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
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracepoint.filter.error import FilterError
from tracepoint.filter.numbers import read_u64
from tracepoint.filter.parse import parse_filter
from tracepoint.filter.program import FilterProgram, RecordContext, compile_filter
from tracepoint.runtime.files import MAX_WRITE, failure
from tracepoint.runtime.files_text import NO_TRIGGER, OWN_BY_NAME, STACK_ID
from tracepoint.runtime.hierarchy import records_of
from tracepoint.runtime.probes import DEFAULT_PRIORITY
from tracepoint.runtime.symbols import stack_of
from tracepoint.runtime.twin import comm_of_thread, current_cpu

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from tracepoint.layout.format import EventFormat
    from tracepoint.runtime.files_state import InstanceState
    from tracepoint.runtime.hierarchy import EventControl, RawRecord

PRINT = "ftrace:print"
SCRATCH_PAGES = 4
_HERE = str(Path(__file__).parent)
_TYPES = {
    "traceon": "trace_onoff",
    "traceoff": "trace_onoff",
    "snapshot": "snapshot",
    "stacktrace": "stacktrace",
    "enable_event": "event_enable",
    "disable_event": "event_enable",
}
_POST = ("traceoff", "stacktrace")


@dataclass(slots=True, eq=False)
class Trigger:
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
                instance.is_on = True
            case "traceoff" if self.may_act(changes=instance.is_on):
                instance.is_on = False
            case "snapshot" if self.may_act(changes=True):
                state.take_snapshot()
            case "stacktrace" if self.may_act(changes=True):
                record_stack(state, sys._getframe())  # noqa: SLF001 - the way to the caller's stack
            case "enable_event" if target and self.may_act(changes=not target.is_enabled_in(instance)):
                target.enable(instance)
            case "disable_event" if target and self.may_act(changes=target.is_enabled_in(instance)):
                target.disable(instance)
        del record


def record_stack(state: InstanceState, frame: FrameType | None) -> None:
    """Record the Python stack of whoever fired, without the frames of this room."""
    while frame is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    addresses = stack_of(frame)
    head = struct.pack("<HBBiixxxx", STACK_ID, 0, 0, 0, len(addresses))
    state.instance.buffer.write(head + struct.pack(f"<{len(addresses)}Q", *addresses))


class _Tap:
    """Gives the records of one event to a function, before and after the event is recorded."""

    def __init__(self, event: EventControl, buffer: Any, run: Callable[[RawRecord], None]) -> None:
        self._event = event
        self._buffer = buffer
        self._run = run
        self._mine = threading.local()

    def attach(self, after: Callable[..., object]) -> None:
        """Begin; `after` is called when the event was recorded."""
        probes = self._event.probes
        entry = ("record", self._buffer, self._event.id, None)
        probes.insert(DEFAULT_PRIORITY + 2, self, entry)
        probes.insert(DEFAULT_PRIORITY + 1, self._run, ("probe", self._fire))
        probes.insert(DEFAULT_PRIORITY - 1, self._mine, ("probe", after))

    def detach(self) -> None:
        """End."""
        for key in (self, self._run, self._mine):
            self._event.probes.remove(key)

    def _ring(self) -> int | None:
        tid = threading.get_native_id()
        return next((s for s, owner, ended, *_ in self._buffer.rings() if owner == tid and not ended), None)

    def _fire(self, *_: object) -> None:
        serial = getattr(self._mine, "serial", None)
        try:
            page = None if serial is None else self._buffer.read(serial)
        except KeyError:
            serial = page = None
        if serial is None or page is None:
            serial = self._mine.serial = self._ring()
            page = None if serial is None else self._buffer.read(serial)
        while page is not None:
            for record in records_of(page):
                self._run(record)
            page = self._buffer.read(serial)


class TriggerSet:
    """The triggers of one event in one instance: its `trigger` and `hist` files."""

    def __init__(self, state: InstanceState, name: str) -> None:
        self._state = state
        self._event = None if name == PRINT else state.tracing.event(name)
        self._items: list[Trigger] = []
        self._pending = threading.local()
        self._tap: _Tap | None = None

    @property
    def layout(self) -> EventFormat:
        """The record that filters look at."""
        return self._event.layout if self._event else OWN_BY_NAME["print"]

    def text(self) -> str:
        """What the `trigger` file shows, youngest first."""
        return "".join(f"{item}\n" for item in self._items) if self._items else NO_TRIGGER

    def hist_text(self) -> str:
        """What the `hist` file shows."""
        return ""

    def truncate(self) -> None:
        """Simple triggers stay when the file is opened with O_TRUNC."""

    def write(self, data: bytes) -> None:
        """Take one line of the grammar; raises OSError."""
        text = data.split(b"\0", 1)[0].strip().decode(errors="surrogateescape")
        if not data or len(data) > MAX_WRITE:
            raise failure(errno.EINVAL)
        word, rest = _split_at(text, ": \t")
        is_removal = word.startswith("!")
        command = word.removeprefix("!")
        if command not in _TYPES:
            raise failure(errno.EINVAL)
        made, rest = self._parse_target(command, rest)
        if is_removal:
            self._remove([item for item in self._items if item.type == made.type])
            return
        self._parse_rest(made, rest)
        if any(item.type == made.type for item in self._items):
            raise failure(errno.EEXIST)
        self._add(made)

    def _parse_target(self, command: str, rest: str) -> tuple[Trigger, str]:
        if not command.endswith("_event"):
            return Trigger(command), rest
        parameters, filter_part = _split_at(rest, " \t")
        system, colon, name = parameters.partition(":")
        name, _, count = name.partition(":")
        try:
            target = self._state.tracing.event(f"{system}:{name}")
        except KeyError:
            raise failure(errno.EINVAL) from None
        if not colon:
            raise failure(errno.EINVAL)
        return Trigger(command, target=target), f"{count} {filter_part}".strip()

    def _parse_rest(self, made: Trigger, rest: str) -> None:
        if rest[:1].isdigit():
            parameters, rest = _split_at(rest, " \t")
            made.count = read_u64(parameters.split(":", 1)[0].encode())
            if made.count is None:
                raise failure(errno.EINVAL)
        if not rest:
            return
        word, text = _split_at(rest, " \t")
        if word != "if" or not text:
            raise failure(errno.EINVAL)
        try:
            parsed = parse_filter(text, self.layout, self._state.tracing.filter_profile)
        except FilterError as error:
            raise failure(error.errno) from None
        made.filter_text, made.program = parsed.text, compile_filter(parsed)

    def _add(self, made: Trigger) -> None:
        self._items.insert(0, made)
        if made.target is not None:
            made.target.hold(self._state.instance)
        if self._event is not None:
            self._event.hold(self._state.instance)
            if self._tap is None:
                instance = self._state.instance
                scratch = type(instance.buffer)(SCRATCH_PAGES, clock=instance.clock)
                self._tap = _Tap(self._event, scratch, self._before)
                self._tap.attach(self._after)

    def _remove(self, gone: list[Trigger]) -> None:
        for item in gone:
            self._items.remove(item)
            if item.target is not None:
                item.target.hold(self._state.instance, -1)
            if self._event is not None:
                self._event.hold(self._state.instance, -1)
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
            if item.command in _POST:
                self._pending.__dict__.setdefault("items", []).append((item, record))
            else:
                item.act(self._state, record)

    def _after(self, *_: object) -> None:
        waiting = self._pending.__dict__.pop("items", ())
        for item, record in waiting:
            item.act(self._state, record)


def trigger_set(state: InstanceState, name: str) -> TriggerSet:
    """Return the triggers of an event (`system:name`) in an instance."""
    found: TriggerSet | None = state.triggers.get(name)
    if found is None:
        found = state.triggers[name] = TriggerSet(state, name)
    return found


def _split_at(text: str, separators: str) -> tuple[str, str]:
    """Cut at the first separator, and drop blanks behind it."""
    at = next((i for i, char in enumerate(text) if char in separators), len(text))
    return text[:at], text[at + 1 :].lstrip(" \t")
