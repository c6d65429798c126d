"""Hist triggers: tables of counts and sums by keys, variables, and what is done when an entry changes.

Kernel: kernel/trace/trace_events_hist.c.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.runtime.files import U64
from tracepoint.runtime.hist_parse import Action, HistError, Operand, calculate, read_field
from tracepoint.runtime.symbols import stack_of, symbols
from tracepoint.runtime.synthetic import Synthetic, known
from tracepoint.runtime.this_thread import current_cpu

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tracepoint.filter.program import FilterProgram
    from tracepoint.layout.format import EventFormat
    from tracepoint.runtime.files_state import InstanceState
    from tracepoint.runtime.hist_parse import Expression, HistSpec
    from tracepoint.runtime.ring import RawRecord

Value = int | str | tuple[int, ...]
Key = tuple[Value, ...]
_HERE = str(Path(__file__).parent)


class NoValueError(Exception):
    """A variable that has no value for this key: nothing is done then."""


@dataclass(slots=True)
class _Entry:
    """One row: hits, sums, variables, and what `save()` kept."""

    n_hits: int = 0
    sums: list[int] = field(default_factory=list)
    variables: dict[str, int] = field(default_factory=dict)
    tracked: dict[str, int] = field(default_factory=dict)
    saved: dict[str, dict[str, Value]] = field(default_factory=dict)


class HistTrigger:
    """One hist trigger of an event in an instance."""

    def __init__(
        self,
        state: InstanceState,
        event_name: str,
        layout: EventFormat,
        spec: HistSpec,
        others: Iterable[HistTrigger],
    ) -> None:
        self.state = state
        self.event_name = event_name
        self.layout = layout
        self.spec = spec
        self.filter_text = ""
        self.program: FilterProgram | None = None
        self.is_paused = "pause" in spec.words
        self.table: dict[Key, _Entry] = {}
        self.n_dropped = 0
        self.n_hits = 0
        self._others = others
        self._users = [self._check(action) for action in spec.actions]

    def __str__(self) -> str:
        tail = f" if {self.filter_text}" if self.filter_text else ""
        return f"{self.spec}{tail} [{'paused' if self.is_paused else 'active'}]"

    @property
    def defined(self) -> set[str]:
        """The names of its variables."""
        return {name for name, _, _ in self.spec.variables}

    def refers_to(self, other: HistTrigger) -> bool:
        """Whether it reads a variable of another one."""
        texts = [text for _, _, text in self.spec.variables]
        texts += [word for action in self.spec.actions for word in (action.argument, *action.parameters)]
        return self is not other and any(f"${name}" in text for name in other.defined for text in texts)

    def _check(self, action: Action) -> Synthetic | None:
        """Return the synthetic event that an action fires; raises HistError."""
        if action.handler != "onmatch" and action.argument.removeprefix("$") not in self.defined:
            raise HistError("Couldn't find onmax or onchange variable", action.argument)
        if action.name == "save":
            for name in action.parameters:
                read_field(name, self.layout)
            return None
        if action.name == "snapshot":
            return None
        name, words = action.name, action.parameters
        if name == "trace" and words:
            name, words = words[0], words[1:]
        found = known.get(name)
        if found is None:
            is_trace = action.name == "trace"
            raise HistError("Couldn't find synthetic event" if is_trace else "No action found", name)
        if len(words) != len(found.fields):
            raise HistError("Param count doesn't match synthetic event field count", name)
        for word in words:
            if not word.startswith("$"):
                read_field(word, self.layout)
        return found

    def hold(self, n: int) -> None:
        """Count itself as a user of what it fires."""
        for found in self._users:
            if found is not None:
                found.n_users += n

    # Running.

    def act(self, record: RawRecord) -> None:
        """Count a record."""
        if self.is_paused:
            return
        key = tuple(self._key(operand, record) for operand in self.spec.keys)
        entry = self.table.get(key)
        is_new = entry is None
        if entry is None:
            if len(self.table) >= self.spec.size:
                self.n_dropped += 1
                return
            entry = self.table[key] = _Entry(sums=[0] * len(self.spec.values))
        self.n_hits += 1
        entry.n_hits += 1
        for i, operand in enumerate(self.spec.values):
            value = self._number(operand, record)
            entry.sums[i] = (entry.sums[i] + value) % U64
        try:
            for name, expression, _ in self.spec.variables:
                entry.variables[name] = self._evaluate(expression, record, key) % U64
            for action, found in zip(self.spec.actions, self._users, strict=True):
                self._run(action, found, record, key, is_new=is_new)
        except NoValueError:
            return

    def _run(
        self,
        action: Action,
        found: Synthetic | None,
        record: RawRecord,
        key: Key,
        *,
        is_new: bool,
    ) -> None:
        entry = self.table[key]
        if action.handler != "onmatch":
            value = entry.variables[action.argument.removeprefix("$")]
            before = entry.tracked.get(str(action))
            is_max = action.handler == "onmax"
            if not is_new and before is not None and (value <= before if is_max else value == before):
                return
            entry.tracked[str(action)] = value
        if action.name == "save":
            entry.saved[str(action)] = {n: self._raw(Operand(n), record) for n in action.parameters}
        elif action.name == "snapshot":
            self.state.take_snapshot()
        elif found is not None:
            words = action.parameters[1:] if action.name == "trace" else action.parameters
            values = [self._parameter(word, record, key) for word in words]
            found.tracepoint(
                *(
                    _fitting(f.ctype, v, is_string=f.is_string)
                    for f, v in zip(found.fields, values, strict=True)
                )
            )

    def _parameter(self, word: str, record: RawRecord, key: Key) -> Value:
        if word.startswith("$"):
            return self.variable(word[1:], key, reads_once=False)
        return self._raw(read_field(word, self.layout), record)

    def variable(self, name: str, key: Key, *, reads_once: bool) -> int:
        """Return a variable for a key: its own, or that of the hist which defines it."""
        for hist in (self, *self._others):
            if name in hist.defined:
                entry = hist.table.get(key)
                if entry is None or name not in entry.variables:
                    break
                if hist is not self and reads_once:
                    return entry.variables.pop(name)
                return entry.variables[name]
        raise NoValueError(name)

    def _evaluate(self, node: Expression, record: RawRecord, key: Key) -> int:
        if isinstance(node, Operand):
            if node.number is not None:
                return node.number
            if node.name.startswith("$"):
                return self.variable(node.name[1:], key, reads_once=True)
            return self._number(node, record)
        left = self._evaluate(node.left, record, key)
        right = self._evaluate(node.right, record, key)
        return calculate(node.op, left, right)

    def _raw(self, operand: Operand, record: RawRecord) -> Value:
        match operand.name:
            case "common_timestamp":
                return record.timestamp // 1000 if operand.modifier == "usecs" else record.timestamp
            case "common_cpu":
                return current_cpu()
            case "hitcount":
                return 1
            case "stacktrace" if "stacktrace" not in self.layout:
                frame = sys._getframe()  # noqa: SLF001 - the way to the caller's stack
                while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
                    frame = frame.f_back
                return tuple(stack_of(frame))
        place = self.layout[operand.name]
        data = record.data[place.offset : place.offset + place.size]
        if place.is_data_loc:
            word = int.from_bytes(data, "little")
            start = (word & 0xFFFF) + (place.offset + 4 if place.is_rel_loc else 0)
            data = record.data[start : start + (word >> 16)]
        if "char" in place.ctype and place.is_array:
            return data.split(b"\0", 1)[0].decode(errors="replace")
        return int.from_bytes(data, "little", signed=place.is_signed)

    def _number(self, operand: Operand, record: RawRecord) -> int:
        value = self._raw(operand, record)
        return value % U64 if isinstance(value, int) else 0

    def _key(self, operand: Operand, record: RawRecord) -> Value:
        value = self._raw(operand, record)
        if not isinstance(value, int):
            return value
        if operand.modifier == "log2":
            return max(value % U64 - 1, 0).bit_length()
        if operand.modifier.startswith("buckets="):
            step = int(operand.modifier.partition("=")[2])
            return value % U64 // step * step
        return value % U64

    # Showing.

    def text(self) -> str:
        """Return its part of the `hist` file."""
        rows = list(self.table.items())
        for name, is_descending in reversed(self.spec.sort):
            rows.sort(key=lambda row: self._sort_value(name, row), reverse=is_descending)
        lines = "".join(self._row(key, entry) for key, entry in rows)
        return (
            f"# event histogram\n#\n# trigger info: {self}\n#\n\n{lines}\n"
            f"Totals:\n    Hits: {self.n_hits}\n    Entries: {len(rows)}\n    Dropped: {self.n_dropped}\n"
        )

    def _sort_value(self, name: str, row: tuple[Key, _Entry]) -> tuple[bool, Value]:
        key, entry = row
        value: Value = entry.n_hits
        for i, operand in enumerate(self.spec.keys):
            if operand.name == name:
                value = key[i]
        for i, operand in enumerate(self.spec.values):
            if operand.name == name:
                value = entry.sums[i]
        return isinstance(value, str), value

    def _row(self, key: Key, entry: _Entry) -> str:
        keys = ", ".join(
            self._shown_key(operand, value) for operand, value in zip(self.spec.keys, key, strict=True)
        )
        text = f"{{ {keys} }} hitcount: {entry.n_hits:10}"
        for operand, total in zip(self.spec.values, entry.sums, strict=True):
            text += (
                f"  {operand}: {total:>10x}" if operand.modifier == "hex" else f"  {operand.name}: {total:10}"
            )
        for action, kept in entry.saved.items():
            tracked = entry.tracked.get(action, 0)
            word = "max" if action.startswith("onmax") else "changed"
            text += f"\n\t{word}: {tracked:10}" + "".join(f"  {n}: {v:>10}" for n, v in kept.items())
        return text + "\n"

    def _shown_key(self, operand: Operand, value: Value) -> str:
        name, modifier = operand.name, operand.modifier
        if isinstance(value, tuple):
            frames = "".join(f"\n         {_symbol(address)}" for address in value)
            return f"{name}:{frames}\n"
        if isinstance(value, str):
            return f"{name}: {value:<50}"
        match modifier.partition("=")[0]:
            case "hex":
                return f"{name}: {value:x}"
            case "sym":
                return f"{name}: [{value:016x}] {_symbol(value):<45}"
            case "sym-offset":
                return f"{name}: [{value:016x}] {_symbol(value):<55}"
            case "execname":
                return f"{name}: {self.state.comms().get(value, '<...>'):<16}[{value:10}]"
            case "log2":
                return f"{name}: ~ 2^{value:<2}"
            case "buckets":
                return f"{name}: ~ {value}-{value + int(modifier.partition('=')[2]) - 1}"
            case _:
                return f"{name}{'.usecs' if modifier == 'usecs' else ''}: {value:10}"


def _symbol(address: int) -> str:
    found = symbols().lookup(address)
    return found.name if found else f"0x{address:x}"


def _fitting(ctype: str, value: Value, *, is_string: bool) -> int | str:
    """Cut a value to the type of its field, as the kernel's stores do."""
    if is_string:
        return value if isinstance(value, str) else str(value)
    number = value if isinstance(value, int) else 0
    size = {"8": 8, "16": 16, "32": 32}.get(ctype[1:], 64)
    if ctype in ("int", "pid_t", "unsigned int", "gfp_t"):
        size = 32
    number %= 1 << size
    is_signed = (ctype[0] == "s" and ctype != "size_t") or ctype in ("int", "long", "pid_t")
    return number - (1 << size) if is_signed and number >> (size - 1) else number
