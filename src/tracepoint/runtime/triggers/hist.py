"""Hist triggers: tables of counts and sums by keys, variables, and what is done when an entry changes.

Kernel: kernel/trace/trace_events_hist.c.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tracepoint.record.field import field_bytes, integer, is_text
from tracepoint.runtime.files.file import U64
from tracepoint.runtime.fire.this_thread import current_cpu
from tracepoint.runtime.rings.symbols import stack_of
from tracepoint.runtime.triggers.hist_rows import HistEntry, HistRows, Key, Value
from tracepoint.runtime.triggers.hist_text import hist_text
from tracepoint.trigger.error import HistError
from tracepoint.trigger.expression import (
    Operand,
    OperandType,
    OtherTriggers,
    calculate,
    kind_of_operand,
    read_field,
    references,
)

if TYPE_CHECKING:
    from tracepoint.filter.program import FilterProgram
    from tracepoint.layout.format import EventFormat
    from tracepoint.record.raw import RawRecord
    from tracepoint.runtime.dynamic.synthetic_fields import Synthetic, SynthField
    from tracepoint.runtime.files.state import InstanceState
    from tracepoint.trigger.expression import Expression
    from tracepoint.trigger.hist import Action, HistSpec

_HERE = str(Path(__file__).parent.parent)


class NoValueError(Exception):
    """A variable that has no value for this key: nothing is done then."""


class Neighbours(OtherTriggers, Protocol):
    """The other hist triggers of an instance."""

    def find_variable(
        self, system: str, event: str, name: str, matched: tuple[tuple[str, str], ...]
    ) -> RunningHist | None:
        """Return the hist that defines a variable; raises HistError when several do."""

    def make_field_variable(self, user: RunningHist, system: str, event: str, name: str) -> RunningHist:
        """Return a hist on another event with the variable `synthetic_NAME`; raises HistError."""


@dataclass(frozen=True, slots=True)
class _Reference:
    """A variable of another hist; one that an expression reads is empty afterwards."""

    hist: RunningHist
    name: str
    is_read_once: bool


class RunningHist:
    """One hist trigger of an event in an instance."""

    def __init__(
        self,
        state: InstanceState,
        event_name: str,
        layout: EventFormat,
        spec: HistSpec,
        others: Neighbours,
    ) -> None:
        self.state = state
        self.event_name = event_name
        self.layout = layout
        self.spec = spec
        self.filter_text = ""
        self.program: FilterProgram | None = None
        self.is_paused = "pause" in spec.words
        self.table = HistRows()
        self.made: list[RunningHist] = []
        self._others = others
        self._matched = tuple(action.matched for action in spec.actions if action.handler == "onmatch")
        self._foreign: dict[str, _Reference] = {}
        self._refer_in_expressions()
        self._users = [self._check(action) for action in spec.actions]

    def __str__(self) -> str:
        tail = f" if {self.filter_text}" if self.filter_text else ""
        return f"{self.spec}{tail} [{'paused' if self.is_paused else 'active'}]"

    @property
    def takes_snapshots(self) -> bool:
        """Whether it needs the snapshot of its instance."""
        return any(action.kind == "snapshot" for action in self.spec.actions)

    def key_kinds(self) -> list[tuple[str, int, bool]]:
        """Return the types of its keys, as another hist must have them to hold a field for it."""
        kinds = [kind_of_operand(operand, self.layout) for operand in self.spec.keys]
        return [(kind.ctype, kind.size, kind.is_signed) for kind in kinds]

    def refers_to(self, other: RunningHist) -> bool:
        """Return whether it reads a variable of another one."""
        return any(found.hist is other for found in self._foreign.values())

    def _refer_in_expressions(self) -> None:
        for _, expression, _ in self.spec.variables:
            for operand in references(expression):
                name = operand.name[1:]
                if not operand.system and name in self.spec.kinds:
                    continue
                hist = self._others.find_variable(operand.system, operand.event, name, self._matched)
                if hist is None:
                    raise HistError("Couldn't find variable", name)
                self._foreign[str(operand)] = _Reference(hist, name, is_read_once=expression is not operand)

    def _check(self, action: Action) -> Synthetic | None:
        """Return the synthetic event that an action fires; raises HistError."""
        if action.handler != "onmatch":
            self._check_tracked(action.argument)
        if action.kind == "save":
            for name in action.parameters:
                self._check_saved(name)
        if action.kind != "trace":
            return None
        found = self.state.tracing.synthetic.get(action.event_name)
        if found is None:
            raise HistError("Couldn't find synthetic event", action.event_name)
        for i, word in enumerate(action.values):
            kind = self._parameter_kind(action, word)
            if i >= len(found.fields) or not _fits(found.fields[i], kind):
                raise HistError("Param type doesn't match synthetic event field type", word.split(".")[-1])
        if len(action.values) != len(found.fields):
            raise HistError("Param count doesn't match synthetic event field count", found.name)
        return found

    def _check_saved(self, name: str) -> None:
        try:
            read_field(name, self.layout)
        except HistError as error:
            texts = ("Couldn't parse field variable", "Couldn't create field variable")
            raise error.also(*texts, needle=name) from None

    def _check_tracked(self, argument: str) -> None:
        if not argument.startswith("$"):
            raise HistError("For onmax(x) or onchange(x), x must be a variable", argument)
        if argument[1:] not in self.spec.kinds:
            raise HistError("Couldn't find onmax or onchange variable", argument[1:])

    def _parameter_kind(self, action: Action, word: str) -> OperandType:
        """Return the type of a parameter, and find out where its value comes from; raises HistError."""
        system, event, name = _qualified(word)
        is_here = not system or f"{system}:{event}" == self.event_name
        if name.startswith("$"):
            if is_here and name[1:] in self.spec.kinds:
                return self.spec.kinds[name[1:]]
            matched = (action.matched,) if action.handler == "onmatch" else ()
            hist = self._others.find_variable(system, event, name[1:], matched)
            if hist is None:
                raise HistError("Couldn't find param", name[1:])
            self._foreign.setdefault(word, _Reference(hist, name[1:], is_read_once=False))
            return hist.spec.kinds[name[1:]]
        earlier: HistError | None = None
        if is_here:
            try:
                return kind_of_operand(read_field(name, self.layout), self.layout)
            except HistError as error:
                earlier = error.also("Couldn't parse field variable", needle=name)
                if action.handler != "onmatch":
                    raise
        system, event = (system, event) if system else action.matched
        try:
            hist = self._others.make_field_variable(self, system, event, name)
        except HistError as error:
            error.entries[:0] = earlier.entries if earlier else ()
            raise
        self._foreign[word] = _Reference(hist, f"synthetic_{name}", is_read_once=False)
        return hist.spec.kinds[f"synthetic_{name}"]

    def hold(self, n: int) -> None:
        """Count itself as a user of what it fires."""
        for found in self._users:
            if found is not None:
                found.n_users += n

    # Running: event_hist_trigger().

    def act(self, record: RawRecord) -> None:
        """Count a record; not when a variable that it reads has no value for its key."""
        if self.is_paused:
            return
        table, spec = self.table, self.spec
        key = tuple(self._key(operand, record) for operand in spec.keys)
        try:
            values = {name: _value_of(found, key) for name, found in self._foreign.items()}
        except NoValueError:
            return
        for found in self._foreign.values():
            if found.is_read_once:
                found.hist.table.entries[key[: len(found.hist.spec.keys)]].variables.pop(found.name, None)
        entry = table.entries.get(key)
        if entry is None:
            if len(table.entries) >= spec.size:
                table.n_dropped += 1
                return
            entry = table.entries[key] = HistEntry(sums=[0] * len(spec.values))
        table.n_hits += 1
        entry.n_hits += 1
        for i, operand in enumerate(spec.values):
            entry.sums[i] = (entry.sums[i] + self._number(operand, record)) % U64
        for name, expression, _ in spec.variables:
            entry.variables[name] = self._evaluate(expression, record, values, entry)
        for action, synthetic in zip(spec.actions, self._users, strict=True):
            self._run(action, synthetic, record, values, entry)

    def _run(
        self,
        action: Action,
        synthetic: Synthetic | None,
        record: RawRecord,
        values: dict[str, Value],
        entry: HistEntry,
    ) -> None:
        if action.handler != "onmatch" and not _has_moved(action, entry):
            return
        if action.kind == "save":
            entry.saved[str(action)] = {n: self._raw(Operand(n), record) for n in action.parameters}
        elif action.kind == "snapshot":
            self.state.take_snapshot()
        elif synthetic is not None:
            given = [self._parameter(word, record, values, entry) for word in action.values]
            synthetic.tracepoint(*map(_fitting, synthetic.fields, given))

    def _parameter(self, word: str, record: RawRecord, values: dict[str, Value], entry: HistEntry) -> Value:
        if word in values:
            return values[word]
        name = _qualified(word)[2]
        return entry.variables[name[1:]] if name.startswith("$") else self._raw(Operand(name), record)

    def _evaluate(
        self, node: Expression, record: RawRecord, values: dict[str, Value], entry: HistEntry
    ) -> Value:
        if isinstance(node, Operand):
            if node.number is not None:
                return node.number
            if node.name.startswith("$"):
                full = str(node)
                return values[full] if full in values else entry.variables.get(node.name[1:], 0)
            value = self._raw(node, record)
            return value % U64 if isinstance(value, int) else value
        left = 0 if node.left is None else self._evaluate(node.left, record, values, entry)
        right = self._evaluate(node.right, record, values, entry)
        return calculate(node.op, _as_number(left), _as_number(right))

    def _raw(self, operand: Operand, record: RawRecord) -> Value:
        match operand.name:
            case "common_timestamp":
                return record.timestamp // 1000 if operand.modifier == "usecs" else record.timestamp
            case "common_cpu":
                return current_cpu()
            case "hitcount":
                return 1
            case "common_stacktrace":
                frame = sys._getframe()  # noqa: SLF001 - the way to the caller's stack
                while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
                    frame = frame.f_back
                return tuple(stack_of(frame))
        place = self.layout[operand.name]
        data = field_bytes(self.layout, place, record.data) or b""
        if is_text(place):
            return data.split(b"\0", 1)[0].decode(errors="replace")
        return integer(self.layout, data, is_signed=place.is_signed)

    def _number(self, operand: Operand, record: RawRecord) -> int:
        return _as_number(self._raw(operand, record))

    def _key(self, operand: Operand, record: RawRecord) -> Value:
        value = self._raw(operand, record)
        if not isinstance(value, int):
            return value
        if operand.modifier == "log2":
            return max(value % U64 - 1, 0).bit_length()
        if operand.modifier.startswith("buckets="):
            step = int(operand.modifier.partition("=")[2], 0)
            return value % U64 // step * step
        return value % U64

    def text(self) -> str:
        """Return its part of the `hist` file."""
        return hist_text(self)


def _qualified(word: str) -> tuple[str, str, str]:
    """Cut `[SYSTEM.EVENT.]NAME`."""
    parts = word.split(".", 2)
    return (parts[0], parts[1], parts[2]) if len(parts) == 3 else ("", "", word)


def _value_of(found: _Reference, key: Key) -> Value:
    """Return a variable for a key, or for as much of it as the other hist has; raises NoValueError."""
    entry = found.hist.table.entries.get(key[: len(found.hist.spec.keys)])
    if entry is None or found.name not in entry.variables:
        raise NoValueError(found.name)
    return entry.variables[found.name]


def _has_moved(action: Action, entry: HistEntry) -> bool:
    """Whether a tracked variable is larger than before (onmax), or another (onchange); keep it then."""
    value, before = _as_number(entry.variables[action.argument[1:]]), entry.tracked.get(str(action), 0)
    has_moved = value > before if action.handler == "onmax" else value != before
    if has_moved:
        entry.tracked[str(action)] = value
    return has_moved


def _as_number(value: Value) -> int:
    return value % U64 if isinstance(value, int) else 0


def _fits(place: SynthField, kind: OperandType) -> bool:
    """Return whether a value may go into a field of a synthetic event: check_synth_field()."""
    if place.is_string:
        return kind.is_string and (place.is_dynamic or kind.ctype == f"char[{place.size}]")
    if kind.is_string:
        return False
    return place.ctype == kind.ctype or (place.n_bytes, place.is_signed) == (kind.size, kind.is_signed)


def _fitting(place: SynthField, value: Value) -> int | str:
    """Cut a value to the type of its field, as the kernel's stores do."""
    if place.is_string:
        return value if isinstance(value, str) else str(value)
    bits = 8 * place.n_bytes
    number = _as_number(value) % (1 << bits)
    return number - (1 << bits) if place.is_signed and number >> (bits - 1) else number
