"""Event probes: events that record chosen fields of another one, `e:[GROUP/][NAME] SYSTEM.EVENT [ARGS]`.

Kernel: kernel/trace/trace_eprobe.c.  A probe is a declared event like any other, with a packed record.  As
long as something listens to it, it hears of the records of its event after the recording of that.
"""

from __future__ import annotations

import errno
import re
import threading
from typing import TYPE_CHECKING

from tracepoint.filter.context import RecordContext
from tracepoint.filter.parse import Filter, parse_filter
from tracepoint.filter.program import compile_filter
from tracepoint.layout.format import EventFormat, FieldFormat
from tracepoint.layout.process_events import OWN_BY_NAME
from tracepoint.model.python.declare import declare
from tracepoint.printk.program import compile_print
from tracepoint.runtime.declare.plan import RecordPlan
from tracepoint.runtime.dynamic.probe_args import GOOD_NAME, HEAD, EventProbeError, ProbeArg, parse_args
from tracepoint.runtime.dynamic.probe_values import make_probe_record
from tracepoint.runtime.event_control import EventControl, RecordingInstance
from tracepoint.runtime.fire.probes import changing
from tracepoint.runtime.fire.tap import SCRATCH_PAGES, Tap
from tracepoint.runtime.fire.this_thread import comm_of_thread, current_cpu

if TYPE_CHECKING:
    from tracepoint.printk.program import PrintProgram
    from tracepoint.record.raw import RawRecord
    from tracepoint.runtime.hierarchy import Tracing

GROUP = "eprobes"
MAX_EVENT_NAME = 64
MAX_ARGS = 128
MAX_PROGRAMS = 64
FAULT = "(fault)"
_GOOD_GROUP = re.compile(r"[A-Za-z_-][\w-]*", re.ASCII)


class _Feed:
    """Gives the records of one event to its probes, when it has been recorded itself."""

    def __init__(self, source: EventControl) -> None:
        self._tap = Tap(source, source.tracing.mechanism.core.Buffer(SCRATCH_PAGES), self._keep)
        self._probes: tuple[EventProbe, ...] = ()
        self._pending = threading.local()

    @property
    def is_idle(self) -> bool:
        """Whether nothing is attached."""
        return not self._probes

    def add(self, probe: EventProbe) -> None:
        """Let a probe hear of every record from now on."""
        if self.is_idle:
            self._tap.attach(self._give)
        self._probes = (*self._probes, probe)

    def remove(self, probe: EventProbe) -> None:
        """Let it hear no more."""
        self._probes = tuple(other for other in self._probes if other is not probe)
        if self.is_idle:
            self._tap.detach()

    def _keep(self, record: RawRecord) -> None:
        self._pending.__dict__.setdefault("records", []).append(record)

    def _give(self, *_: object) -> None:
        for record in self._pending.__dict__.pop("records", ()):
            for probe in self._probes:
                probe.take(record.data)


# Looked at and changed while `changing` is held.
_feeds: dict[EventControl, _Feed] = {}


class EventProbe(EventControl):
    """An event probe: `source` is the event that it is attached to.

    A registered function gets the bytes of that event's record.
    """

    def __init__(
        self, group: str, name: str, source: EventControl, args: tuple[ProbeArg, ...], rule: Filter | None
    ) -> None:
        event = declare(name, system=group, proto="const void *record", printk='""')
        layout = _layout(group, name, args)
        super().__init__(
            event,
            RecordPlan(layout, ()),
            source.tracing,
            hints={},
            where="dynamic_events",
            reg=self._listen,
            unreg=self._rest,
        )
        self.source = source
        self.args = args
        self._rule = compile_filter(rule) if rule is not None else None
        self._holding: set[RecordingInstance] = set()
        self._programs: dict[tuple[str, ...], PrintProgram] = {}
        self.assign = self._make_record
        self.tracepoint = source.tracing.mechanism.core.Tracepoint(
            event.full_name,
            ("record",),
            (),
            layout.size_bytes,
            layout.size_bytes,
            assign=self.assign,
            control=self,
        )

    def __str__(self) -> str:
        words = [f"e:{self.system}/{self.event.name}", f"{self.source.system}.{self.source.event.name}"]
        return " ".join([*words, *(f"{arg.name}={arg.expression}" for arg in self.args)])

    # Switching: an event that has probes that are on is in soft mode.

    def enable(self, instance: RecordingInstance | None = None) -> None:
        """Record it in `instance`, or in the top one; raises OSError (ENOMEM)."""
        with changing:
            _feed_of(self.source)
            super().enable(instance)
            self._follow(instance or self.tracing)

    def disable(self, instance: RecordingInstance | None = None) -> None:
        """Stop recording it; what was recorded stays."""
        with changing:
            super().disable(instance)
            self._follow(instance or self.tracing)

    def hold(self, instance: RecordingInstance, n: int = 1) -> None:
        """Count `n` more (or fewer) triggers that need it."""
        with changing:
            super().hold(instance, n)
            self._follow(instance)

    def forget(self, instance: RecordingInstance) -> None:
        """Drop all that belongs to an instance that goes away; its event forgets by itself."""
        self._holding.discard(instance)
        super().forget(instance)

    def _follow(self, instance: RecordingInstance) -> None:
        if self.is_registered_in(instance) != (instance in self._holding):
            self._holding ^= {instance}
            self.source.hold(instance, 1 if instance in self._holding else -1)

    def _listen(self) -> None:
        _feed_of(self.source).add(self)

    def _rest(self) -> None:
        feed = _feeds[self.source]
        feed.remove(self)
        if feed.is_idle:
            del _feeds[self.source]

    # Firing.

    def take(self, record: bytes) -> None:
        """Fire for a record of the attached event that passes the rule."""
        if self._rule is None or self._rule.matches(record, RecordContext(current_cpu(), comm_of_thread())):
            self.tracepoint(record)

    def _make_record(self, record: bytes) -> bytes:
        return make_probe_record(self.args, record, comm_of_thread)

    def print_program(self, record: bytes) -> PrintProgram:
        """Return what prints a record: print_eprobe_event(), with `(fault)` for texts without a byte."""
        faults = tuple(
            arg.name
            for arg in self.args
            if arg.kind.is_text and not any(record[arg.offset + 2 : arg.offset + 4])
        )
        found = self._programs.get(faults)
        if found is None:
            if len(self._programs) == MAX_PROGRAMS:
                self._programs.clear()
            start = f"({self.source.system}.{self.source.event.name})"
            text = _print_text(self.args, start, faults)
            form = EventFormat(self.system, self.event.name, self.layout.fields, text)
            found = self._programs[faults] = compile_print(form)
        return found


def _feed_of(source: EventControl) -> _Feed:
    """Return what gives an event's records to its probes; raises OSError (ENOMEM)."""
    found = _feeds.get(source)
    if found is None:
        found = _feeds[source] = _Feed(source)
    return found


def _layout(group: str, name: str, args: tuple[ProbeArg, ...]) -> EventFormat:
    """Lay the record out: traceprobe_define_arg_fields()."""
    common = OWN_BY_NAME["print"].common_fields
    fields = (FieldFormat(arg.name, arg.ctype, arg.offset, arg.n_bytes, arg.kind.is_signed) for arg in args)
    size = max((arg.offset + arg.n_bytes for arg in args), default=HEAD)
    return EventFormat(group, name, (*common, *fields), _print_text(args), size_bytes=size)


def _print_text(args: tuple[ProbeArg, ...], start: str = "", faults: tuple[str, ...] = ()) -> str:
    """Return the print format: __set_print_fmt() in kernel/trace/trace_probe.c; `faults` cannot be read."""
    shown, values = [start], []
    for arg in args:
        if arg.name in faults:
            shown.append(f" {arg.name}={FAULT}")
        elif arg.count:
            shown.append(f" {arg.name}={{{','.join([arg.kind.printed] * arg.count)}}}")
            values += [f", REC->{arg.name}[{i}]" for i in range(arg.count)]
        else:
            shown.append(f" {arg.name}={arg.kind.printed}")
            values.append(f", __get_str({arg.name})" if arg.kind.is_text else f", REC->{arg.name}")
    return f'"{"".join(shown)}"{"".join(values)}'


def define_probe(where: Tracing, words: list[str]) -> EventProbe:
    """Make the probe of a command; raises ProbeError, with offsets in the command, and FilterError.

    Kernel: __trace_eprobe_create().
    """
    group, name = GROUP, ""
    before, colon, rest = words[0].partition(":")
    if colon:
        group, name = _read_name(rest, len(before) + 1)
        group = group or GROUP
    at = len(words[0]) + 1
    system, event = _read_attached(words[1], at)
    try:
        source = where.event(f"{system}:{event}")
    except KeyError:
        source = None
    if source is None or isinstance(source, EventProbe):
        raise EventProbeError("Attached event does not exist", at, errno.ENODEV)
    n_words = words.index("if", 2) if "if" in words[2:] else len(words)
    rule = None
    if n_words < len(words):
        if n_words + 1 == len(words):
            raise EventProbeError("No filter rule after 'if'", len(" ".join(words)) + 1)
        rule = parse_filter(" ".join(words[n_words + 1 :]), source.layout, where.filter_profile)
    try:
        args = parse_args(words[2 : min(n_words, 2 + MAX_ARGS)], source.layout)
    except EventProbeError as error:
        at += len(words[1]) + 1
        error.entries = [(text, at + place) for text, place in error.entries]
        raise
    name = name or event
    is_own = group == "ftrace" and name in OWN_BY_NAME
    if is_own or any(known.full_name == f"{group}:{name}" for known in where.events):
        raise EventProbeError("Given group/event name is already used by another event", 0, errno.EEXIST)
    made = EventProbe(group, name, source, args, rule)
    where.add(made)
    return made


def _read_attached(word: str, at: int) -> tuple[str, str]:
    text = "This requires both group and event name to attach"
    try:
        system, event = _read_name(word, at)
    except EventProbeError as error:
        raise error.also(text, at) from None
    if not system or not event:
        raise EventProbeError(text, at)
    return system, event


def _read_name(word: str, at: int) -> tuple[str, str]:
    """Read `[GROUP/][EVENT]`, with a dot for the slash: traceprobe_parse_event_name()."""
    group, slash, name = word.partition("/" if "/" in word else ".")
    if not slash:
        group, name = "", word
    elif not group:
        raise EventProbeError("Group name is not specified", at)
    elif len(group) >= MAX_EVENT_NAME:
        raise EventProbeError("Group name is too long", at)
    elif _GOOD_GROUP.fullmatch(group) is None:
        raise EventProbeError("Group name must follow the same rules as C identifiers", at)
    at += len(group) + len(slash)
    if not name and not slash:
        raise EventProbeError("Event name is not specified", at)
    if len(name) >= MAX_EVENT_NAME:
        raise EventProbeError("Event name is too long", at)
    if name and GOOD_NAME.fullmatch(name) is None:
        raise EventProbeError("Event name must follow the same rules as C identifiers", at)
    return group, name
