"""The leaf inputs of an assignment: what it reads from the world outside.

They are found by walking the statements with every branch taken, so the answer holds for all
paths; `program` then asks for those that one path needs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tracepoint.assign.program import read_program, run_program
from tracepoint.assign.state import Inputs
from tracepoint.errors import SourceError
from tracepoint.source.ctype import CType, parse_ctype

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.assign.program import Program
    from tracepoint.assign.state import LeafValue
    from tracepoint.assign.values import Leaf
    from tracepoint.layout.format import EventFormat
    from tracepoint.model.event import Event, Proto

# What a use says more than another one.
_WEIGHT = {"string": 6, "bytes": 5, "pointer": 4, "length": 3, "index": 2, "int": 1, "condition": 0}
_PLACEHOLDER: dict[str, LeafValue] = {"string": "x", "length": 4}


def param_types(proto: Proto) -> dict[str, CType]:
    """Return the types of the parameters; one that cannot be read counts as `long`."""
    types: dict[str, CType] = {}
    for param in proto.params:
        try:
            types[param.name] = parse_ctype(param.ctype)
        except SourceError:
            types[param.name] = CType("long")
    return types


def find_leaves(
    event: Event,
    layout: EventFormat,
    *,
    constant: Callable[[str], int | None] = lambda _name: None,
    sizeof: Callable[[CType], int | None] | None = None,
    program: Program | None = None,
) -> tuple[Leaf, ...]:
    """Return the leaves of an event in the order in which they are read.

    `layout` is its record; `constant` and `sizeof` as in `Inputs`.  The condition and the sources
    and lengths of dynamic members count.  Raises SourceError when the statements are damaged.
    """
    found: dict[str, Leaf] = {}

    def resolve(leaf: Leaf) -> LeafValue:
        found[leaf.text] = merge_leaves(found[leaf.text], leaf) if leaf.text in found else leaf
        if leaf.role == "bytes":
            return bytes(leaf.length)
        return _PLACEHOLDER.get(leaf.role, 1)

    inputs = Inputs(layout, event.fields, param_types(event.proto), resolve, constant, sizeof)
    explored = run_program(program or read_program(event), inputs, is_exploring=True)
    texts = tuple(found)
    return tuple(_settled(leaf, texts, explored.length_fields) for leaf in found.values())


def _settled(leaf: Leaf, texts: tuple[str, ...], length_fields: frozenset[str]) -> Leaf:
    """Let the other leaves say what one use of a leaf does not: that it is a pointer, or a length."""
    arrow = f"{leaf.text}->"
    if not leaf.ctype and leaf.role in ("int", "condition") and any(arrow in text for text in texts):
        return replace(leaf, role="pointer")
    return _as_length(leaf, length_fields)


def _as_length(leaf: Leaf, length_fields: frozenset[str]) -> Leaf:
    is_length = leaf.role == "int" and leaf.field in length_fields
    return replace(leaf, role="length") if is_length else leaf


def merge_leaves(first: Leaf, second: Leaf) -> Leaf:
    """Join two uses of one leaf: the role that says most, the first type, field and length known."""
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
