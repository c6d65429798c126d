"""The text of a hist trigger: keys, values, variables, sort keys and actions.

Grammar, words and the order of checks are those of kernel/trace/trace_events_hist.c: attributes, actions,
values, variables, keys, sort keys.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracepoint.filter.numbers import read_u64
from tracepoint.runtime.hist_expr import (
    Alone,
    Expression,
    ExpressionReader,
    HistError,
    Kind,
    Operand,
    Surroundings,
    read_field,
)

if TYPE_CHECKING:
    from tracepoint.layout.format import EventFormat

MAX_KEYS, MAX_VALUES, MAX_SORT, MAX_VARIABLES = 3, 3, 2, 16
DEFAULT_SIZE, LEAST_SIZE, MOST_SIZE = 2048, 128, 131072
_SYNONYMS = {"keys": "keys", "key": "keys", "values": "values", "vals": "values", "val": "values"}
_WORDS = {"pause": "pause", "continue": "continue", "cont": "continue", "clear": "clear"}
_NO_HITCOUNT = ("nohitcount", "NOHC")
# __create_val_field(): modifiers that make keys only.
_NO_VALUE = frozenset({"bucket", "buckets", "log2", "sym", "sym-offset", "syscall"})
_NO_VARIABLE = frozenset({"bucket", "buckets", "log2"})
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
    kinds: dict[str, Kind] = field(default_factory=dict)
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


def parse_hist(text: str, event: EventFormat, surroundings: Surroundings | None = None) -> HistSpec:
    """Read what stands behind `hist:`, without the filter; raises HistError.

    >>> from tracepoint.layout.format import EventFormat, FieldFormat
    >>> event = EventFormat("s", "e", (FieldFormat("n", "int", 8, 4, True),), "", n_common=0)
    >>> str(parse_hist("keys=n.log2:sort=n", event))
    'hist:keys=n.log2:vals=hitcount:sort=n:size=2048'
    """
    reader = _Reader(event, surroundings or Alone())
    for part in text.split(":"):
        reader.take(part.strip())
    return reader.finish()


class _Reader:
    def __init__(self, event: EventFormat, surroundings: Surroundings) -> None:
        self._event = event
        self._surroundings = surroundings
        self._spec = HistSpec()
        self._texts: dict[str, str] = {}
        self._assignments: list[str] = []
        self._actions: list[str] = []

    def take(self, text: str) -> None:
        """Take one part between colons: parse_hist_trigger_attrs()."""
        name, equals, value = text.partition("=")
        if text.startswith(tuple(f"{handler}(" for handler in _HANDLERS)):
            self._actions.append(text)
        elif text in _WORDS:
            self._spec.words.add(_WORDS[text])
        elif text in _NO_HITCOUNT:
            self._spec.has_hitcount = False
        elif not equals:
            raise HistError
        elif not value:
            raise HistError("Empty assignment", text)
        elif name in _SYNONYMS or name == "sort":
            self._texts[_SYNONYMS.get(name, name)] = value
        elif name == "size":
            self._spec.size = _size(value)
        elif name == "name":
            self._spec.name = value
        elif name == "clock":
            self._spec.clock = value
        else:
            self._assignments.append(text)

    def finish(self) -> HistSpec:
        """Read the parts in the kernel's order and return the whole."""
        spec = self._spec
        if not self._texts.get("keys"):
            raise HistError
        spec.actions = [read_action(text, self._surroundings) for text in self._actions]
        definitions = self._definitions()
        spec.values = tuple(self._values())
        for name, text in definitions:
            self._define(name, text, dict(definitions))
        keys = self._words("keys")
        spec.keys = tuple(self._field(word) for word in keys[:MAX_KEYS])
        if len(keys) > MAX_KEYS:
            raise HistError
        times = [f for f in spec.keys + spec.values if f.name == "common_timestamp"]
        uses_time = times or any("common_timestamp" in text for _, text in definitions)
        if uses_time and not spec.clock:
            spec.clock = "global"
        if "sort" in self._texts:
            self._sort(self._texts["sort"])
        return spec

    def _words(self, role: str) -> list[str]:
        text = self._texts.get(role, "")
        return text.split(",") if text else []

    def _field(self, text: str, *, is_value: bool = False) -> Operand:
        if text.startswith("$"):
            ExpressionReader(self._event, self._find).read(text)
            raise HistError("Using variable references in keys not supported", text)
        return read_field(text, self._event, is_value=is_value)

    def _values(self) -> list[Operand]:
        """Return what is summed: create_val_fields(), where the hitcount is one of three."""
        words, found = self._words("values"), list[Operand]()
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

    def _definitions(self) -> list[tuple[str, str]]:
        """Return names and texts of the variables; several may be set at once: parse_var_defs()."""
        found: list[tuple[str, str]] = []
        for part in self._assignments:
            for assignment in part.split(","):
                name, equals, text = assignment.partition("=")
                if not equals:
                    raise HistError("Malformed assignment", name)
                if len(found) == MAX_VARIABLES:
                    raise HistError("Too many variables defined", name)
                found.append((name, text))
        return found

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

    def _find(self, system: str, event: str, name: str) -> Kind | None:
        if not system and name in self._spec.kinds:
            return self._spec.kinds[name]
        return self._surroundings.variable_kind(system, event, name, self._matched())

    def _matched(self) -> tuple[tuple[str, str], ...]:
        return tuple(action.matched for action in self._spec.actions if action.handler == "onmatch")

    def _sort(self, text: str) -> None:
        words = text.split(",")
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


def read_action(text: str, surroundings: Surroundings) -> Action:
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
        raise HistError
    return 1 << (number - 1).bit_length()
