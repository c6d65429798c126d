"""The text of a hist trigger: keys, values, variables, sort keys and actions.

Grammar and words are those of kernel/trace/trace_events_hist.c (parse_hist_trigger_attrs()).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracepoint.runtime.files import U64

if TYPE_CHECKING:
    from tracepoint.layout.format import EventFormat

MAX_KEYS, MAX_VALUES, MAX_SORT, MAX_SUBEXPRESSIONS = 3, 4, 2, 3
DEFAULT_SIZE, LEAST_SIZE, MOST_SIZE = 2048, 128, 131072
SPECIAL = ("hitcount", "stacktrace", "common_timestamp", "common_cpu")
MODIFIERS = ("hex", "sym", "sym-offset", "execname", "syscall", "log2", "usecs")
_SYNONYMS = {"keys": "keys", "key": "keys", "values": "values", "vals": "values", "val": "values"}
_TOKEN = re.compile(r"\s*(?:(\d\w*)|(\$?[A-Za-z_]\w*(?:\.(?:sym-offset|\w+(?:=\d+)?))?)|([-+*/()]))")
_ACTION = re.compile(r"(onmatch|onmax|onchange)\(([^()]*)\)\.(\w+)\((.*)\)")


class HistError(Exception):
    """A hist trigger that the kernel would refuse.

    `text` is its message (empty when it logs nothing), `needle` the part that the caret shows.
    """

    def __init__(self, text: str = "", needle: str = "") -> None:
        super().__init__(text)
        self.text = text
        self.needle = needle


@dataclass(frozen=True, slots=True)
class Operand:
    """A field with its modifier, a variable (`$name`), or a number."""

    name: str
    modifier: str = ""
    number: int | None = None

    def __str__(self) -> str:
        return self.name + (f".{self.modifier}" if self.modifier else "")


@dataclass(frozen=True, slots=True)
class Operation:
    """`left op right`; a unary minus has 0 on its left."""

    op: str
    left: Expression
    right: Expression


Expression = Operand | Operation


@dataclass(frozen=True, slots=True)
class Action:
    """`handler(argument).name(parameters)`."""

    handler: str
    argument: str
    name: str
    parameters: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.handler}({self.argument}).{self.name}({','.join(self.parameters)})"


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
    actions: list[Action] = field(default_factory=list)
    words: set[str] = field(default_factory=set)

    @property
    def identity(self) -> tuple[object, ...]:
        """What a trigger must have in common with one that it is to change or remove."""
        variables = tuple((name, text) for name, _, text in self.variables)
        return self.keys, self.values, self.sort, self.name, variables, tuple(map(str, self.actions))

    def __str__(self) -> str:
        parts = [f"name={self.name}"] if self.name else []
        parts.append("keys=" + ",".join(map(str, self.keys)))
        parts.append("vals=" + ",".join(["hitcount", *map(str, self.values)]))
        parts.extend(f"{name}={text}" for name, _, text in self.variables)
        parts.append("sort=" + ",".join(name + (".descending" if down else "") for name, down in self.sort))
        parts.append(f"size={self.size}")
        if self.clock:
            parts.append(f"clock={self.clock}")
        parts.extend(map(str, self.actions))
        return "hist:" + ":".join(parts)


def parse_hist(text: str, event: EventFormat) -> HistSpec:
    """Read what stands behind `hist:`, without the filter; raises HistError.

    >>> from tracepoint.layout.format import EventFormat, FieldFormat
    >>> event = EventFormat("s", "e", (FieldFormat("n", "int", 8, 4, True),), "", n_common=0)
    >>> str(parse_hist("keys=n.log2:sort=n", event))
    'hist:keys=n.log2:vals=hitcount:sort=n:size=2048'
    """
    reader = _Reader(event, HistSpec())
    for part in text.split(":"):
        reader.part(part.strip())
    return reader.finish()


class _Reader:
    def __init__(self, event: EventFormat, spec: HistSpec) -> None:
        self._event = event
        self._spec = spec
        self._sort: str | None = None

    def part(self, text: str) -> None:
        """Take one part between colons."""
        spec = self._spec
        name, equals, value = text.partition("=")
        if match := _ACTION.fullmatch(text):
            self._action(match)
        elif text in ("pause", "continue", "cont", "clear"):
            spec.words.add("continue" if text == "cont" else text)
        elif not equals or not name:
            raise HistError
        elif name in _SYNONYMS:
            self._fields(_SYNONYMS[name], value)
        elif name == "sort":
            self._sort = value
        elif name == "size":
            spec.size = _size(value)
        elif name == "name":
            spec.name = value
        elif name == "clock":
            spec.clock = value
        else:
            # Several variables may be set at once.
            for assignment in text.split(","):
                self._variable(assignment)

    def _fields(self, role: str, text: str) -> None:
        fields = tuple(self._field(word) for word in text.split(",")) if text else ()
        if role == "keys":
            self._spec.keys = fields
        else:
            self._spec.values = tuple(f for f in fields if f.name != "hitcount")

    def _variable(self, text: str) -> None:
        name, equals, value = text.partition("=")
        if not equals:
            raise HistError("Malformed assignment", text)
        if not value:
            raise HistError("Empty assignment", text)
        if any(name == known for known, _, _ in self._spec.variables):
            raise HistError("Variable already defined", name)
        expression = parse_expression(value, self._event)
        number = fold(expression)
        if number is not None:
            expression, value = Operand(str(number), number=number), str(number)
        self._spec.variables.append((name, expression, value))

    def _field(self, text: str) -> Operand:
        if text.startswith("$"):
            raise HistError("Using variable references in keys not supported", text)
        return read_field(text, self._event)

    def _action(self, match: re.Match[str]) -> None:
        handler, argument, name, inside = match.groups()
        parameters = tuple(word.strip() for word in inside.split(",") if word.strip())
        if handler != "onmatch" and not argument.startswith("$"):
            raise HistError("For onmax(x) or onchange(x), x must be a variable", argument)
        if handler == "onmatch" and name in ("save", "snapshot"):
            raise HistError("Handler doesn't support action", name)
        if name == "save" and not parameters:
            raise HistError("No params found for save()", name)
        if handler == "onmatch" and "." not in argument:
            raise HistError("Missing subsystem", argument)
        self._spec.actions.append(Action(handler, argument, name, parameters))

    def finish(self) -> HistSpec:
        """Check the whole and return it."""
        spec = self._spec
        if not spec.keys or len(spec.keys) > MAX_KEYS or len(spec.values) >= MAX_VALUES:
            raise HistError
        times = [f for f in spec.keys + spec.values if f.name == "common_timestamp"]
        uses_time = times or any("common_timestamp" in text for _, _, text in spec.variables)
        if uses_time and not spec.clock:
            spec.clock = "global"
        if self._sort is not None:
            spec.sort = tuple(self._sort_key(word) for word in self._sort.split(","))
        if len(spec.sort) > MAX_SORT:
            raise HistError("Too many sort fields (Max = 2)", f"sort={self._sort}")
        return spec

    def _sort_key(self, text: str) -> tuple[str, bool]:
        if not text:
            raise HistError("Empty sort field", f"sort={self._sort}")
        name, dot, direction = text.partition(".")
        if dot and direction not in ("ascending", "descending"):
            raise HistError("Invalid sort modifier", direction)
        known = {f.name for f in self._spec.keys + self._spec.values} | {"hitcount"}
        if name not in known:
            raise HistError("Sort field must be a key or a val", name)
        return name, direction == "descending"


def _size(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not LEAST_SIZE <= int(text[:9]) <= MOST_SIZE:
        raise HistError
    return 1 << (int(text) - 1).bit_length()


def read_field(text: str, event: EventFormat) -> Operand:
    """Read `FIELD[.MODIFIER]`; raises HistError."""
    name, dot, modifier = text.partition(".")
    if name == "cpu" and "cpu" not in event:
        name = "common_cpu"
    if name not in event and name not in SPECIAL:
        raise HistError("Couldn't find field", text)
    if dot:
        kind, _, size = modifier.partition("=")
        if kind == "buckets":
            if not size.isdigit() or not int(size):
                raise HistError("Invalid field modifier", modifier)
        elif modifier not in MODIFIERS:
            raise HistError("Invalid field modifier", modifier)
        if (modifier == "execname" and name != "common_pid") or (
            modifier == "usecs" and name != "common_timestamp"
        ):
            raise HistError("Invalid field modifier", modifier)
    return Operand(name, modifier)


def parse_expression(text: str, event: EventFormat) -> Expression:
    """Read an expression over fields, variables and numbers; raises HistError."""
    tokens: list[str] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise HistError("Couldn't find field", text[at:])
        tokens.append(next(part for part in match.groups() if part))
        at = match.end()
    if sum(word in "+-*/" for word in tokens) > MAX_SUBEXPRESSIONS:
        raise HistError("Too many subexpressions (3 max)", text)
    parser = _Expression(tokens, event)
    made = parser.sum()
    if parser.tokens:
        raise HistError("Couldn't find field", parser.tokens[0])
    return made


def fold(node: Expression) -> int | None:
    """Return the value of an expression without fields and variables, 64 bits wide; else None."""
    if isinstance(node, Operand):
        return node.number
    left, right = fold(node.left), fold(node.right)
    if left is None or right is None:
        return None
    return calculate(node.op, left, right) % U64


def calculate(op: str, left: int, right: int) -> int:
    """Return `left op right`; a divisor of 0 gives what the kernel gives when it turns up late."""
    match op:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case _:
            return left // right if right else U64 - 1


class _Expression:
    def __init__(self, tokens: list[str], event: EventFormat) -> None:
        self.tokens = tokens
        self._event = event

    def _next_in(self, words: str) -> str:
        return self.tokens.pop(0) if self.tokens and self.tokens[0] in words else ""

    def sum(self) -> Expression:
        """Read sums of products."""
        left = self._product()
        while op := self._next_in("+-"):
            left = Operation(op, left, self._product())
        return left

    def _product(self) -> Expression:
        left = self._unary()
        while op := self._next_in("*/"):
            right = self._unary()
            if op == "/" and isinstance(right, Operand) and right.number == 0:
                raise HistError("Division by zero", "/")
            left = Operation(op, left, right)
        return left

    def _unary(self) -> Expression:
        if self._next_in("-"):
            return Operation("-", Operand("0", number=0), self._unary())
        if self._next_in("("):
            inner = self.sum()
            if not self._next_in(")"):
                raise HistError("No closing paren found", "(")
            return inner
        if not self.tokens:
            raise HistError("Empty assignment", "")
        word = self.tokens.pop(0)
        if word[0].isdigit():
            try:
                return Operand(word, number=int(word, 0))
            except ValueError:
                raise HistError("Expecting numeric literal", word) from None
        if word.startswith("$"):
            return Operand(word)
        made = read_field(word, self._event)
        if made.name in self._event and "char" in self._event[made.name].ctype:
            raise HistError("String type can not be an operand in expression", word)
        return made
