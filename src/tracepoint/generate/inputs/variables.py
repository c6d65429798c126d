"""The variables that replace the inputs of an assignment in a generated module.

Every input of `assign.inputs` becomes one static variable of a fitting C type, or an element of an
array when it is `list[3]`.  Their values reach the module as one line of words (see `InputPlan.line`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tracepoint.errors import GenerateError, SourceError
from tracepoint.model.field import StringField
from tracepoint.source import ast
from tracepoint.source.cexpr import write_expression
from tracepoint.source.ctype import CType, parse_ctype
from tracepoint.source.cvalue import int_type_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tracepoint.assign.machine import InputValue
    from tracepoint.assign.values import Input
    from tracepoint.model.event import Event

# What a string or block of bytes may have: as much as fits a record (kernel/trace/ring_buffer.c).
BUFFER_BYTES = 4096
MIN_ELEMENTS = 16
MAX_ELEMENTS = 512
_TYPE_CASTS = frozenset({"void", "char", "u8", "unsigned char", "long", "unsigned long"})
_LONG = 8


@dataclass(frozen=True, slots=True)
class InputVariable:
    """One variable: its C name and type, and the input that it replaces.

    `text` is the input, with `[*]` for the index of an array; `size` the bytes of one element;
    `count` the elements (0: no array); `is_buffer` marks a pointer to `BUFFER_BYTES` bytes, `is_format` that
    the kernel takes them for a printf format.
    """

    name: str
    text: str
    ctype: str
    size: int
    count: int = 0
    is_buffer: bool = False
    element: int = 1
    is_format: bool = False


@dataclass(slots=True)
class InputPlan:
    """All variables of a module, by event class.

    `classes` maps the class's name to its variables in the order of the words of a line; `class_of`
    the event's name to its class's.
    """

    classes: dict[str, tuple[InputVariable, ...]] = field(default_factory=dict)
    class_of: dict[str, str] = field(default_factory=dict)

    def of_event(self, name: str) -> tuple[InputVariable, ...]:
        """Return the variables of an event (by its bare name); KeyError for one that is not planned."""
        return self.classes[self.class_of[name]]

    def line(self, event_name: str, values: Mapping[str, InputValue]) -> str:
        """Return the line, without its end, that sets the inputs of an event and fires it.

        `values` maps input texts to values as `lab.simulate` uses them; inputs without one are zero or
        NULL.  The words are `-` (zero, NULL) or `=` and the bytes in hexadecimal.  Raises
        GenerateError for a value that cannot be handed over.
        """
        words = [_word(event_name, variable, values) for variable in self.of_event(event_name)]
        while words and words[-1] == "-":
            words.pop()
        return " ".join(words) or "-"


def plan_inputs(events: Iterable[Event], inputs: Mapping[str, Sequence[Input]]) -> InputPlan:
    """Return the variables for some events; `inputs` maps full names (`system:event`) to their inputs."""
    plan = InputPlan()
    found: dict[str, dict[str, list[Input]]] = {}
    formats: dict[str, set[str]] = {}
    for event in events:
        cls = event.event_class.name
        plan.class_of[event.name] = cls
        formats[cls] = {f.source.text for f in event.fields if isinstance(f, StringField) and f.va_list}
        known = found.setdefault(cls, {})
        for input_ in inputs.get(event.full_name, ()):
            known.setdefault(pattern_of(input_.node), []).append(input_)
    for cls, groups in found.items():
        made = [_variable(f"{cls}_in{number}", text, groups[text]) for number, text in enumerate(groups)]
        plan.classes[cls] = tuple(replace(v, is_format=v.text in formats[cls]) for v in made)
    return plan


def pattern_of(node: ast.Node) -> str:
    """Return the canonical text of an expression with `[*]` for every index that is a number.

    >>> from tracepoint.source.cexpr import parse_expression
    >>> pattern_of(parse_expression("dev->counters[3].n"))
    'dev->counters[*].n'
    """
    return write_expression(_starred(node)).replace("[__any]", "[*]")


def _starred(node: ast.Node) -> ast.Node:
    match node:
        case ast.Index(base=base, index=index):
            star = ast.Name("__any") if isinstance(index, ast.Number) else index
            return replace(node, base=_starred(base), index=star)
        case ast.Member(base=base):
            return replace(node, base=_starred(base))
    return node


def indices_of(node: ast.Node) -> list[int]:
    """Return the numbers that `pattern_of` left out, outermost last."""
    match node:
        case ast.Index(base=base, index=ast.Number(value=value)):
            return [*indices_of(base), value]
        case ast.Index(base=base) | ast.Member(base=base):
            return indices_of(base)
    return []


def _variable(name: str, text: str, group: list[Input]) -> InputVariable:
    input_ = group[0]
    for other in group[1:]:
        input_ = replace(input_, ctype=input_.ctype or other.ctype, size=input_.size or other.size)
        if other.role in ("string", "bytes", "pointer") and input_.role not in ("string", "bytes"):
            input_ = replace(input_, role=other.role)
    if text.count("[*]") > 1:
        raise GenerateError("", f"{text}: an input with two indices is not supported")
    if "[*]" not in text:
        if input_.role in ("string", "bytes"):
            ctype = "char *" if input_.role == "string" else "void *"
            return InputVariable(name, text, ctype, BUFFER_BYTES, 0, is_buffer=True, element=input_.element)
        ctype, size = _scalar_type(input_)
        return InputVariable(name, text, ctype, size)
    if input_.role in ("string", "bytes"):
        raise GenerateError("", f"{text}: a table of strings as an input is not supported")
    highest = max(indices_of(one.node)[0] for one in group)
    ctype, size = _scalar_type(input_)
    return InputVariable(name, text, ctype, size, min(max(2 * highest, MIN_ELEMENTS), MAX_ELEMENTS))


def _scalar_type(input_: Input) -> tuple[str, int]:
    """Return the C type of an input that is a number or an address, and its size (0: the compiler knows)."""
    known = _parsed(input_.ctype)
    if known is not None and (known.pointers or known.is_function or known.array):
        is_plain = known.pointers and not known.is_function and not known.array
        return (input_.ctype if is_plain else "void *"), _LONG
    if input_.role == "pointer":
        return "void *", _LONG
    if known is not None and known.base.startswith("enum "):
        return "u32", 4  # the enum may be private to the code that is traced
    kind = int_type_of(known, _LONG) if known is not None else None
    if known is not None and kind is not None:
        return known.base, kind.size
    if known is not None and not known.base.startswith(("struct ", "union ", "typeof")):
        return known.base, 0
    size = input_.size if input_.size in (1, 2, 4, 8) else 8
    return f"{'s' if input_.is_signed else 'u'}{8 * size}", size


def _parsed(text: str) -> CType | None:
    try:
        return parse_ctype(text) if text else None
    except SourceError:
        return None


def _word(event: str, variable: InputVariable, values: Mapping[str, InputValue]) -> str:
    if variable.count:
        return _array_word(event, variable, values)
    if variable.text not in values:
        return "-"
    value = values[variable.text]
    if value is None or (value == 0 and not isinstance(value, (str, bytes))):
        return "-"
    data = _buffer_bytes(variable, value) if variable.is_buffer else _number_bytes(event, variable, value)
    if len(data) > BUFFER_BYTES - 1:
        raise GenerateError(event, f"{variable.text}: {len(data)} bytes are more than a record holds")
    return "=" + data.hex()


def _buffer_bytes(variable: InputVariable, value: InputValue) -> bytes:
    match value:
        case str():
            data = value.encode("utf-8", "surrogateescape")
        case bytes():
            data = value
        case list():
            width = 1 if variable.ctype == "char *" else max(variable.element, 1)
            mask = (1 << 8 * width) - 1
            data = b"".join((item & mask).to_bytes(width, "little") for item in value)
        case int() if variable.ctype != "char *":
            data = (value & ((1 << 64) - 1)).to_bytes(8, "little")
        case _:
            data = b""
    if variable.ctype == "char *":
        data = data.split(b"\0", 1)[0]
    return data.replace(b"%", b"%%") if variable.is_format else data


def _number_bytes(event: str, variable: InputVariable, value: InputValue) -> bytes:
    if not isinstance(value, int):
        raise GenerateError(event, f"{variable.text}: {value!r} is not a number, and a number is stored here")
    size = variable.size or _LONG
    raw = (value & ((1 << 64) - 1)).to_bytes(8, "little")
    if variable.ctype in ("bool", "_Bool"):
        return bytes([int(value != 0)])
    return raw[:size]


def _array_word(event: str, variable: InputVariable, values: Mapping[str, InputValue]) -> str:
    size = variable.size or _LONG
    data = bytearray(size * variable.count)
    for index, value in _elements(variable, values):
        if not 0 <= index < variable.count:
            raise GenerateError(event, f"{variable.text}: index {index} of {variable.count} elements")
        data[size * index : size * (index + 1)] = _number_bytes(event, variable, value)
    used = bytes(data).rstrip(b"\0")
    return "=" + used.hex() if used else "-"


def _elements(variable: InputVariable, values: Mapping[str, InputValue]) -> Iterator[tuple[int, InputValue]]:
    head, _, tail = variable.text.partition("[*]")
    shape = re.compile(re.escape(head) + r"\[(\d+)\]" + re.escape(tail))
    for text, value in values.items():
        match = shape.fullmatch(text)
        if match:
            yield int(match[1]), value


def drops_cast(ctype: CType) -> bool:
    """Return whether the finder of inputs looks through a cast to this pointer type."""
    return ctype.pointers > 0 and ctype.base in _TYPE_CASTS


__all__ = [
    "BUFFER_BYTES",
    "InputPlan",
    "InputVariable",
    "drops_cast",
    "indices_of",
    "pattern_of",
    "plan_inputs",
]
