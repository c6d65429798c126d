"""Fields, variables and expressions of hist triggers, read as kernel/trace/trace_events_hist.c reads them.

An expression is cut at its last operator of the lowest rank (contains_operator()); parentheses stand
only after a minus in front, `-(...)`.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tracepoint.filter.numbers import read_u64
from tracepoint.trigger.error import HistError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.layout.format import EventFormat, FieldFormat

MAX_SUBEXPRESSIONS = 3
U64 = 1 << 64
SPECIAL = ("hitcount", "common_stacktrace", "common_timestamp", "common_cpu")
# Older names, where the event has no field of that name.
SYNONYMS = {"cpu": "common_cpu", "CPU": "common_cpu"} | dict.fromkeys(
    ("stacktrace", "STACKTRACE"), "common_stacktrace"
)
#: What may follow the name of a field that is the event's own, `bucket` and `buckets` with `=SIZE`.
MODIFIERS = ("hex", "sym", "sym-offset", "execname", "syscall", "log2", "usecs")
BUCKETS = ("bucket", "buckets")
#: Of values only; what follows them is not looked at.
SHARES = ("percent", "graph")
_DASHED, _DASHLESS = ".sym-offset", ".symXoffset"


@dataclass(frozen=True, slots=True)
class OperandType:
    """The type of a value; `number` when it is constant."""

    ctype: str = "u64"
    size: int = 8
    is_signed: bool = False
    is_string: bool = False
    is_usecs: bool = False
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Operand:
    """A field with its modifier, a number, or a variable: `$name`, with system and event if said."""

    name: str
    modifier: str = ""
    number: int | None = None
    system: str = ""
    event: str = ""

    def __str__(self) -> str:
        if self.number is not None:
            return str(self.number)
        name = f"{self.system}.{self.event}.{self.name}" if self.system else self.name
        return name + (f".{self.modifier}" if self.modifier else "")


@dataclass(frozen=True, slots=True)
class Operation:
    """`left op right`; a unary minus has None on its left."""

    op: str
    left: Expression | None
    right: Expression

    def __str__(self) -> str:
        return f"-({self.right})" if self.left is None else f"{self.left}{self.op}{self.right}"


Expression = Operand | Operation


class OtherTriggers(Protocol):
    """What a trigger sees of the others."""

    def has_event(self, system: str, name: str) -> bool:
        """Return whether there is such an event."""

    def variable_kind(
        self, system: str, event: str, name: str, matched: tuple[tuple[str, str], ...]
    ) -> OperandType | None:
        """Return the type of a variable of another hist; those of the `matched` events come first."""

    def defines(self, name: str) -> bool:
        """Return whether another hist of the same event has a variable of that name."""


class Alone:
    """No other triggers: every event exists, no variable does."""

    def has_event(self, system: str, name: str) -> bool:
        """Say yes."""
        return bool(system or name)

    def variable_kind(
        self, system: str, event: str, name: str, matched: tuple[tuple[str, str], ...]
    ) -> OperandType | None:
        """Know none."""
        del system, event, name, matched
        return None

    def defines(self, name: str) -> bool:
        """Say no."""
        return not name


def kind_of_field(place: FieldFormat) -> OperandType:
    """Return the type of a record's field."""
    is_string = "char" in place.ctype and (place.is_array or place.is_data_loc)
    ctype = f"{'__data_loc ' if place.is_data_loc else ''}{place.ctype}" if is_string else place.ctype
    return OperandType(ctype, place.size, place.is_signed, is_string)


def kind_of_operand(operand: Operand, event: EventFormat) -> OperandType:
    """Return the type of a field or number."""
    if operand.number is not None:
        return OperandType(number=operand.number)
    if operand.name in event:
        kind = kind_of_field(event[operand.name])
        return OperandType("char[]", 256, is_string=True) if operand.modifier == "execname" else kind
    if operand.name == "common_cpu":
        return OperandType("unsigned int", 4)
    return OperandType(is_usecs=operand.modifier == "usecs")


def read_field(text: str, event: EventFormat, *, is_value: bool = False) -> Operand:
    """Read `FIELD[.MODIFIER]`: parse_field(); only values have `.percent` or `.graph`.  Raises HistError."""
    name, dot, modifier = text.partition(".")
    if dot:
        modifier = _read_modifier(name, modifier, is_value=is_value)
    if name not in event:
        name = SYNONYMS.get(name, name)
    if name not in event and name not in SPECIAL:
        raise HistError("Couldn't find field", name)
    if modifier == "stacktrace":
        # Only fields of synthetic events can be stacks.
        raise HistError("Invalid field modifier", text)
    return Operand(name, modifier)


def _read_modifier(name: str, modifier: str, *, is_value: bool) -> str:
    if modifier.startswith("bucket"):
        size = modifier.removeprefix("bucket").removeprefix("s")
        if not size.startswith("="):
            raise HistError("Invalid field modifier", size)
        if not read_u64(size[1:].encode()):
            raise HistError("Invalid field modifier", size[1:])
        return modifier
    share = next((word for word in SHARES if modifier.startswith(word)), "")
    if share and is_value:
        return share
    if modifier not in (*MODIFIERS, "stacktrace"):
        raise HistError("Invalid field modifier", modifier)
    if modifier == "execname" and name != "common_pid":
        raise HistError("Invalid field modifier", modifier)
    if modifier == "usecs" and name != "common_timestamp":
        raise HistError("Invalid field modifier", modifier)
    return modifier


def calculate(op: str, left: int, right: int) -> int:
    """Return `left op right` in 64 bits; a divisor of 0 gives what the kernel gives when it turns up late.

    >>> calculate("-", 1, 2) == 2**64 - 1
    True
    """
    match op:
        case "+":
            return (left + right) % U64
        case "-":
            return (left - right) % U64
        case "*":
            return left * right % U64
        case _:
            return left // right if right else U64 - 1


class ExpressionReader:
    """Reads one expression: parse_expr().

    `find` returns the type of a variable by system, event and name, or None; `local` the text of
    a field that a variable of the same trigger holds.
    """

    def __init__(
        self,
        event: EventFormat,
        find: Callable[[str, str, str], OperandType | None],
        local: Callable[[str], str] = lambda _: "",
    ) -> None:
        self._event = event
        self._find = find
        self._local = local
        self._n = 0

    def read(self, text: str) -> tuple[Expression, OperandType]:
        """Return the expression and its type; raises HistError."""
        return self._expression(text.replace(_DASHED, _DASHLESS))

    def _expression(self, text: str) -> tuple[Expression, OperandType]:
        if self._n > MAX_SUBEXPRESSIONS:
            raise HistError("Too many subexpressions (3 max)", text)
        at = _root(text)
        if at < 0:
            return self._atom(text)
        self._n += 1
        if text.rfind("-") == 0:
            return self._negative(text)
        left_text, op, right_text = text[:at], text[at], text[at + 1 :]
        if not left_text or not right_text:
            raise HistError
        left, left_kind = self._operand(left_text)
        right, right_kind = self._operand(right_text)
        if left_kind.is_usecs != right_kind.is_usecs:
            raise HistError("Timestamp units in expression don't match")
        if op == "/" and right_kind.number == 0:
            raise HistError("Division by zero", right_text, errno.EDOM)
        if left_kind.number is not None and right_kind.number is not None:
            number = calculate(op, left_kind.number, right_kind.number)
            return Operand(str(number), number=number), OperandType(number=number)
        kind = OperandType(left_kind.ctype, left_kind.size, left_kind.is_signed, is_usecs=left_kind.is_usecs)
        return Operation(op, left, right), kind

    def _operand(self, text: str) -> tuple[Expression, OperandType]:
        made, kind = self._expression(text)
        if kind.is_string:
            raise HistError("String type can not be an operand in expression", text)
        return made, kind

    def _negative(self, text: str) -> tuple[Expression, OperandType]:
        if self._n > MAX_SUBEXPRESSIONS:
            raise HistError("Too many subexpressions (3 max)", text)
        inside, end = text[2:], text[2:].rfind(")")
        if "(" not in text or end < 0:
            raise HistError
        if inside[end + 1 :]:
            raise HistError("Unary minus not supported in sub-expressions", inside)
        made, kind = self._operand(inside[:end])
        return Operation("-", None, made), kind

    def _atom(self, text: str) -> tuple[Expression, OperandType]:
        if text[:1].isdigit():
            number = read_u64(text.encode())
            if number is None:
                raise HistError("Expecting numeric literal", text)
            return Operand(text, number=number), OperandType(number=number)
        parts = text.split(".", 2)
        system, event, name = parts if len(parts) == 3 else ("", "", text)
        if name.startswith("$"):
            local = "" if system else self._local(name[1:])
            if local:
                return self._atom(local)
            kind = self._find(system, event, name[1:])
            if kind is None:
                raise HistError("Couldn't find variable", name[1:]).also("Couldn't find field", needle=name)
            return Operand(name, system=system, event=event), kind
        made = read_field(name.replace(_DASHLESS, _DASHED), self._event)
        return made, kind_of_operand(made, self._event)


def _root(text: str) -> int:
    """Return where the operator is that is applied last, -1 without one: contains_operator()."""
    at = max(text.rfind("-"), text.rfind("+"))
    return at if at >= 0 else max(text.rfind("/"), text.rfind("*"))


def references(node: Expression) -> list[Operand]:
    """Return the variables in an expression."""
    if isinstance(node, Operation):
        return (references(node.left) if node.left is not None else []) + references(node.right)
    return [node] if node.name.startswith("$") else []
