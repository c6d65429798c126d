"""The inputs of an assignment: what it reads from the world outside.

They are found by walking the statements with every branch taken, so the answer holds for all
paths; `program` then asks for those that one path needs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tracepoint.assign.machine import Inputs
from tracepoint.assign.program import read_program, run_program
from tracepoint.errors import SourceError
from tracepoint.source.ctype import CType, parse_ctype

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.assign.machine import InputValue
    from tracepoint.assign.program import Program
    from tracepoint.assign.values import Input
    from tracepoint.layout.format import EventFormat
    from tracepoint.model.event import Event, Proto

# What a use says more than another one.
_WEIGHT = {"string": 6, "bytes": 5, "pointer": 4, "length": 3, "index": 2, "int": 1, "condition": 0}
_PLACEHOLDER: dict[str, InputValue] = {"string": "x", "length": 4}


def param_types(proto: Proto) -> dict[str, CType]:
    """Return the types of the parameters; one that cannot be read counts as `long`."""
    types: dict[str, CType] = {}
    for param in proto.params:
        try:
            types[param.name] = parse_ctype(param.ctype)
        except SourceError:
            types[param.name] = CType("long")
    return types


def find_inputs(
    event: Event,
    layout: EventFormat,
    *,
    constant: Callable[[str], int | None] = lambda _name: None,
    sizeof: Callable[[CType], int | None] | None = None,
    program: Program | None = None,
) -> tuple[Input, ...]:
    """Return the inputs of an event in the order in which they are read.

    `layout` is its record; `constant` and `sizeof` as in `Inputs`.  The condition and the sources
    and lengths of dynamic members count.  Raises SourceError when the statements are damaged.
    """
    found: dict[str, Input] = {}

    def resolve(input_: Input) -> InputValue:
        found[input_.text] = merge_inputs(found[input_.text], input_) if input_.text in found else input_
        if input_.role == "bytes":
            return bytes(input_.length)
        return _PLACEHOLDER.get(input_.role, 1)

    inputs = Inputs(layout, event.fields, param_types(event.proto), resolve, constant, sizeof)
    explored = run_program(program or read_program(event), inputs, is_exploring=True)
    texts = tuple(found)
    return tuple(_settled(input_, texts, explored.length_fields) for input_ in found.values())


def _settled(input_: Input, texts: tuple[str, ...], length_fields: frozenset[str]) -> Input:
    """Let the other inputs say what one use of an input does not: that it is a pointer, or a length."""
    arrow = f"{input_.text}->"
    if not input_.ctype and input_.role in ("int", "condition") and any(arrow in text for text in texts):
        return replace(input_, role="pointer")
    return _as_length(input_, length_fields)


def _as_length(input_: Input, length_fields: frozenset[str]) -> Input:
    is_length = input_.role == "int" and input_.field in length_fields
    return replace(input_, role="length") if is_length else input_


def merge_inputs(first: Input, second: Input) -> Input:
    """Join two uses of one input: the role that says most, the first type, field and length known."""
    strong, weak = first, second
    if _WEIGHT[second.role] > _WEIGHT[first.role]:
        strong, weak = second, first
    return replace(
        strong,
        ctype=strong.ctype or weak.ctype,
        size=strong.size or weak.size,
        is_signed=strong.is_signed if strong.size else weak.is_signed,
        field=strong.field or weak.field,
        length=max(strong.length, weak.length),
        is_swapped=strong.is_swapped or weak.is_swapped,
    )
