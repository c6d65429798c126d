"""The text of a hist trigger: keys, values, variables, sort keys and actions.

Grammar, words and the order of checks are those of kernel/trace/trace_events_hist.c: attributes, actions,
values, variables, keys, sort keys.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracepoint.filter.numbers import read_u64
from tracepoint.trigger.error import HistError
from tracepoint.trigger.expression import (
    BUCKETS,
    Alone,
    Expression,
    ExpressionReader,
    Operand,
    OperandType,
    OtherTriggers,
    read_field,
)

if TYPE_CHECKING:
    from tracepoint.layout.format import EventFormat

MAX_KEYS, MAX_VALUES, MAX_SORT, MAX_VARIABLES = 3, 3, 2, 16
DEFAULT_SIZE, LEAST_SIZE, MOST_SIZE = 2048, 128, 131072
_LISTS = {
    "keys": "keys",
    "key": "keys",
    "values": "values",
    "vals": "values",
    "val": "values",
    "sort": "sort",
}
_NO_HITCOUNT = "nohitcount"
_WORDS = {
    "pause": "pause",
    "continue": "continue",
    "cont": "continue",
    "clear": "clear",
    "nohitcount": _NO_HITCOUNT,
    "NOHC": _NO_HITCOUNT,
}
# __create_val_field(): modifiers that make keys only.
_NO_VALUE = frozenset({*BUCKETS, "log2", "sym", "sym-offset", "syscall"})
_NO_VARIABLE = frozenset({*BUCKETS, "log2"})
_HANDLERS = ("onmatch", "onmax", "onchange")


@dataclass(frozen=True, slots=True)
class Action:
    """`handler(argument).name(parameters)`."""

    handler: str
    argument: str
    name: str
    parameters: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.handler}({self.argument}).{self.name}({','.join(self.parameters)})"

    @property
    def matched(self) -> tuple[str, str]:
        """System and event of `onmatch`."""
        system, _, event = self.argument.partition(".")
        return system, event

    @property
    def kind(self) -> str:
        """`save`, `snapshot` or `trace`, by how the name begins."""
        return next((word for word in ("save", "snapshot") if self.name.startswith(word)), "trace")

    @property
    def has_keyword(self) -> bool:
        """Whether it is `trace(EVENT, ...)` and not `EVENT(...)`."""
        return self.name.startswith("trace")

    @property
    def event_name(self) -> str:
        """The synthetic event that it fires."""
        return next(iter(self.parameters), "") if self.has_keyword else self.name

    @property
    def values(self) -> tuple[str, ...]:
        """What the synthetic event gets."""
        return self.parameters[1:] if self.has_keyword else self.parameters


@dataclass(slots=True)
class HistSpec:
    """What a hist trigger says, before its filter; `sort` are (name, is_descending)."""

    keys: tuple[Operand, ...] = ()
    values: tuple[Operand, ...] = ()
    sort: tuple[tuple[str, bool], ...] = (("hitcount", False),)
    size: int = DEFAULT_SIZE
    name: str = ""
    clock: str = ""
    variables: list[tuple[str, Expression, str]] = field(default_factory=list)
    kinds: dict[str, OperandType] = field(default_factory=dict)
    actions: list[Action] = field(default_factory=list)
    words: set[str] = field(default_factory=set)
    has_hitcount: bool = True

    @property
    def identity(self) -> tuple[object, ...]:
        """What a trigger must have in common with one that it is to change or remove."""
        variables = tuple((name, text) for name, _, text in self.variables)
        return self.keys, self.values, self.sort, self.name, variables, tuple(map(str, self.actions))

    def __str__(self) -> str:
        parts = [f"name={self.name}"] if self.name else []
        parts.append("keys=" + ",".join(map(str, self.keys)))
        parts.append(
            "vals=" + ",".join((["hitcount"] if self.has_hitcount else []) + [*map(str, self.values)])
        )
        if self.variables:
            parts.append(",".join(f"{name}={text}" for name, _, text in self.variables))
        parts.append("sort=" + ",".join(self._sort_text(*entry) for entry in self.sort))
        parts.append(f"size={self.size}")
        if self.clock:
            parts.append(f"clock={self.clock}")
        if not self.has_hitcount:
            parts.append("nohitcount")
        parts.extend(map(str, self.actions))
        return "hist:" + ":".join(parts)

    def _sort_text(self, name: str, is_descending: bool) -> str:
        found = self.sorted_by(name)
        return str(found or name) + (".descending" if is_descending else "")

    def sorted_by(self, name: str) -> Operand | None:
        """Return the value or key that a sort key means; None for the hitcount."""
        if name == "hitcount":
            return None
        return next((operand for operand in self.values + self.keys if operand.name == name), None)


@dataclass(frozen=True, slots=True)
class HistTrigger:
    """The parameters of a `hist` trigger as texts: `assignments` to variables, `flags` as single words.

    A key, value or sort key may have a modifier, `pid.hex`; `size` is a power of two.
    """

    keys: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    sort: tuple[str, ...] = ()
    size: int = DEFAULT_SIZE
    name: str = ""
    clock: str = ""
    assignments: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    @property
    def definitions(self) -> tuple[tuple[str, str], ...]:
        """The variables and what they are set to: parse_var_defs().  Raises HistError."""
        found: list[tuple[str, str]] = []
        # A comma parts several assignments: `a=pid,b=common_timestamp`.
        for assignment in ",".join(self.assignments).split(",") if self.assignments else ():
            name, equals, text = assignment.partition("=")
            if not equals:
                raise HistError("Malformed assignment", name)
            if len(found) == MAX_VARIABLES:
                raise HistError("Too many variables defined", name)
            found.append((name, text))
        return tuple(found)


def read_hist_trigger(parameters: str, *, is_shown: bool = False) -> HistTrigger:
    """Read what follows `hist:`, without the filter: parse_hist_trigger_attrs(); raises HistError.

    `is_shown` is for what a kernel shows: words that are not known are those of a newer one, and left out.

    >>> read_hist_trigger("keys=common_pid,comm:vals=bytes:sort=bytes.descending").values
    ('bytes',)
    """
    lists: dict[str, tuple[str, ...]] = {}
    named = {"name": "", "clock": ""}
    size = DEFAULT_SIZE
    several: dict[str, list[str]] = {"assignments": [], "actions": [], "flags": []}
    for part in map(str.strip, parameters.split(":")):
        name, equals, value = part.partition("=")
        if part.startswith(tuple(f"{handler}(" for handler in _HANDLERS)):
            several["actions"].append(part)
        elif part in _WORDS:
            several["flags"].append(_WORDS[part])
        elif not equals:
            if not is_shown:
                raise HistError(why=f"{part!r} is not a parameter of a histogram")
        elif not value:
            raise HistError("Empty assignment", part)
        elif name in _LISTS:
            lists[_LISTS[name]] = tuple(value.split(","))
        elif name == "size":
            size = _size(value)
        elif name in named:
            named[name] = value
        else:
            several["assignments"].append(part)
    return HistTrigger(
        lists.get("keys", ()),
        lists.get("values", ()),
        lists.get("sort", ()),
        size,
        named["name"],
        named["clock"],
        tuple(several["assignments"]),
        tuple(several["actions"]),
        tuple(several["flags"]),
    )


def parse_hist(text: str, event: EventFormat, surroundings: OtherTriggers | None = None) -> HistSpec:
    """Read what follows `hist:`, without the filter, for an event; raises HistError.

    >>> from tracepoint.layout.format import EventFormat, FieldFormat
    >>> event = EventFormat("s", "e", (FieldFormat("n", "int", 8, 4, True),), "", n_common=0)
    >>> str(parse_hist("keys=n.log2:sort=n", event))
    'hist:keys=n.log2:vals=hitcount:sort=n.log2:size=2048'
    """
    return _Reader(read_hist_trigger(text), event, surroundings or Alone()).read()


class _Reader:
    def __init__(self, given: HistTrigger, event: EventFormat, surroundings: OtherTriggers) -> None:
        self._given = given
        self._event = event
        self._surroundings = surroundings
        words = set(given.flags)
        self._spec = HistSpec(
            size=given.size, name=given.name, clock=given.clock, words=words - {_NO_HITCOUNT}
        )
        self._spec.has_hitcount = _NO_HITCOUNT not in words

    def read(self) -> HistSpec:
        """Read the parts in the kernel's order and return the whole."""
        spec, given = self._spec, self._given
        if not given.keys:
            raise HistError
        spec.actions = [read_action(text, self._surroundings) for text in given.actions]
        definitions = given.definitions
        spec.values = tuple(self._values())
        for name, text in definitions:
            self._define(name, text, dict(definitions))
        spec.keys = tuple(self._field(word) for word in given.keys[:MAX_KEYS])
        if len(given.keys) > MAX_KEYS:
            raise HistError
        times = [f for f in spec.keys + spec.values if f.name == "common_timestamp"]
        uses_time = times or any("common_timestamp" in text for _, text in definitions)
        if uses_time and not spec.clock:
            spec.clock = "global"
        if given.sort:
            self._sort(given.sort)
        return spec

    def _field(self, text: str, *, is_value: bool = False) -> Operand:
        if text.startswith("$"):
            ExpressionReader(self._event, self._find).read(text)
            raise HistError("Using variable references in keys not supported", text)
        return read_field(text, self._event, is_value=is_value)

    def _values(self) -> list[Operand]:
        """Return what is summed: create_val_fields(), where the hitcount is one of three."""
        words, found = list(self._given.values), list[Operand]()
        at, has_hitcount = 0, False
        while at < min(len(words), MAX_VALUES) and len(found) < MAX_VALUES - 1:
            if words[at] == "hitcount" and not has_hitcount:
                has_hitcount = True
            else:
                found.append(self._value(words[at]))
            at += 1
        if words[at:] not in ([], ["hitcount"]):
            raise HistError
        if not found and not self._spec.has_hitcount:
            raise HistError("Non-hitcount value is required for 'nohitcount'", number=errno.ENOENT)
        return found

    def _value(self, text: str) -> Operand:
        made = self._field(text, is_value=True)
        if made.modifier.partition("=")[0] in _NO_VALUE or made.name == "common_stacktrace":
            raise HistError("Invalid field modifier", text)
        return made

    def _define(self, name: str, text: str, definitions: dict[str, str]) -> None:
        spec = self._spec
        if name in spec.kinds or self._surroundings.defines(name):
            raise HistError("Variable already defined", name)

        def local(other: str) -> str:
            known = definitions.get(other, "")
            return "" if known.startswith("$") or any(op in known for op in "+-*/") else known

        expression, kind = ExpressionReader(self._event, self._find, local).read(text)
        if isinstance(expression, Operand) and expression.modifier.partition("=")[0] in _NO_VARIABLE:
            raise HistError("Invalid field modifier", text)
        spec.variables.append((name, expression, str(expression)))
        spec.kinds[name] = kind

    def _find(self, system: str, event: str, name: str) -> OperandType | None:
        if not system and name in self._spec.kinds:
            return self._spec.kinds[name]
        return self._surroundings.variable_kind(system, event, name, self._matched())

    def _matched(self) -> tuple[tuple[str, str], ...]:
        return tuple(action.matched for action in self._spec.actions if action.handler == "onmatch")

    def _sort(self, words: tuple[str, ...]) -> None:
        found = []
        known = {f.name for f in self._spec.keys + self._spec.values} | {"hitcount"}
        for i, word in enumerate(words):
            name, dot, direction = word.partition(".")
            if not name:
                raise HistError("Empty sort field", "sort=")
            if i == MAX_SORT - 1 and len(words) > MAX_SORT:
                raise HistError("Too many sort fields (Max = 2)", "sort=")
            if name not in known:
                raise HistError("Sort field must be a key or a val", name)
            if dot and direction not in ("ascending", "descending"):
                raise HistError("Invalid sort modifier", direction)
            found.append((name, direction == "descending"))
        self._spec.sort = tuple(found)


def read_action(text: str, surroundings: OtherTriggers) -> Action:
    """Read `handler(argument).name(parameters)`: onmatch_parse(), action_parse(); raises HistError."""
    handler, _, rest = text.partition("(")
    argument, paren, rest = rest.partition(")")
    if not paren:
        raise HistError("No closing paren found", argument) if handler == "onmatch" else HistError
    if handler == "onmatch":
        system, dot, event = argument.partition(".")
        if not dot:
            raise HistError("Missing subsystem", system)
        if not surroundings.has_event(system, event):
            raise HistError("Invalid subsystem or event name", event)
    name, paren, rest = rest.partition(".")[2].partition("(")
    if not paren:
        raise HistError("No action found")
    inside, paren, _ = rest.partition(")")
    made = Action(handler, argument, name, ())
    if made.kind == "snapshot":
        if not paren:
            raise HistError("No closing paren found", inside)
    else:
        made = Action(handler, argument, name, _parameters(inside))
    if handler == "onmatch" and made.kind != "trace":
        raise HistError("Handler doesn't support action", name)
    return made


def _parameters(text: str) -> tuple[str, ...]:
    found = tuple(word.strip() for word in text.split(","))
    for word in found:
        if len(word) < 2:
            raise HistError("Invalid action param", word)
    return found


def _size(text: str) -> int:
    number = read_u64(text.encode(errors="replace"))
    if not number or not LEAST_SIZE <= 1 << (number - 1).bit_length() <= MOST_SIZE:
        raise HistError(why=f"size={text} is not a number of entries ({LEAST_SIZE} to {MOST_SIZE})")
    return 1 << (number - 1).bit_length()
