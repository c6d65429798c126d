"""From a declared event to the plan by which the core fills its records.

A plan says for every field which value goes where and in which form; `csrc/convert.h` and
`runtime/fire/convert.py` follow it.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tracepoint.errors import LayoutError
from tracepoint.layout.abi import Abi
from tracepoint.layout.compute import compute_layout
from tracepoint.layout.floats import show_floats
from tracepoint.layout.sizes import TypeSizes
from tracepoint.model.field import (
    ArrayField,
    BitmaskField,
    DynamicArrayField,
    Field,
    ScalarField,
    StringField,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.layout.format import EventFormat, FieldFormat
    from tracepoint.model.event import Event

LONG_BITS = 64
ELEMENT_SIZES = (1, 2, 4, 8)
# No kernel has floating point in a record; the bits are kept in an integer's place.
FLOAT_PLACE = {"float": "u32", "double": "u64"}


class FieldKind(enum.IntEnum):
    """How a value becomes bytes: enum tp_field_kind in `csrc/convert.h`."""

    INT = 0
    BOOL = 1
    FLOAT = 2
    CHARS = 3
    BYTES = 4
    ARRAY = 5
    STRING = 6
    DYNAMIC = 7
    BITMASK = 8

    @property
    def is_dynamic(self) -> bool:
        """Whether the record holds a location word here and the data after its fixed part."""
        return self >= FieldKind.STRING


SIGNED = 1
REL = 2


@dataclass(frozen=True, slots=True)
class FieldPlan:
    """One field: `size` in bytes (of the location word for dynamic ones), `element` bytes of one element.

    For a bitmask `element` is the least number of 8-byte words; `source` is the number of the
    value; `flags` are SIGNED and REL.
    """

    name: str
    kind: FieldKind
    flags: int
    offset: int
    size: int
    element: int
    source: int

    @property
    def packed(self) -> tuple[str, int, int, int, int, int, int]:
        """The form that the core takes."""
        return (self.name, self.kind, self.flags, self.offset, self.size, self.element, self.source)


@dataclass(frozen=True, slots=True)
class RecordPlan:
    """All fields of an event; `size` and `dynamic` are bytes: the fixed part, and where dynamic data begins.

    Dynamic data begins right after the last field, before the tail padding, as `__data` does in
    the kernel's struct (include/trace/stages/stage5_get_offsets.h).
    """

    format: EventFormat
    fields: tuple[FieldPlan, ...]

    @property
    def size(self) -> int:
        """Bytes of the fixed part with its tail padding."""
        return self.format.size_bytes

    @property
    def dynamic(self) -> int:
        """Where dynamic data begins."""
        return max(f.offset + f.size for f in self.format.fields)


def compute_format(event: Event) -> EventFormat:
    """Lay out the record of an event fired in this process; floating point fields are an extension.

    Raises LayoutError for a type that is not known here.
    """
    floats = {f.name: f.ctype for f in event.fields if f.ctype in FLOAT_PLACE}
    if not floats:
        return compute_layout(event, Abi.X86_64)
    placed = tuple(replace(f, ctype=FLOAT_PLACE.get(f.ctype, f.ctype)) for f in event.fields)
    as_integers = replace(event, event_class=replace(event.event_class, fields=placed))
    made = compute_layout(as_integers, Abi.X86_64)
    fields = tuple(
        replace(f, ctype=f.ctype.replace(FLOAT_PLACE[floats[f.name]], floats[f.name], 1))
        if f.name in floats
        else f
        for f in made.fields
    )
    shown = show_floats(made.print_fmt, floats, event.full_name)
    return replace(made, fields=fields, print_fmt=shown)


def make_plan(event: Event, order: Sequence[str]) -> RecordPlan:
    """Plan the records of `event`; `order` names the field that each value is for.

    Raises LayoutError for a field that cannot be recorded, with the reason.
    """
    made = compute_format(event)
    sizes = TypeSizes(Abi.X86_64)
    plans = []
    for declared in event.fields:
        kind, element = _kind(declared, made[declared.name], sizes, event)
        flags = (SIGNED if made[declared.name].is_signed else 0) | (REL if declared.is_relative else 0)
        place = made[declared.name]
        source = order.index(declared.name)
        plans.append(FieldPlan(declared.name, kind, flags, place.offset, place.size, element, source))
    return RecordPlan(made, tuple(plans))


def _kind(declared: Field, place: FieldFormat, sizes: TypeSizes, event: Event) -> tuple[FieldKind, int]:
    """Return the form of a field and the size of its elements."""
    if declared.is_dynamic:
        return _dynamic_kind(declared, sizes, event)
    if isinstance(declared, ArrayField):
        return _array_kind(declared, place, sizes)
    kind = FieldKind.BYTES
    if isinstance(declared, ScalarField) and place.size in ELEMENT_SIZES:
        kind = _SCALAR_KINDS.get(declared.ctype, FieldKind.INT)
    return kind, 1


_SCALAR_KINDS = {
    "float": FieldKind.FLOAT,
    "double": FieldKind.FLOAT,
    "bool": FieldKind.BOOL,
    "_Bool": FieldKind.BOOL,
}


def _dynamic_kind(declared: Field, sizes: TypeSizes, event: Event) -> tuple[FieldKind, int]:
    match declared:
        case StringField():
            return FieldKind.STRING, 1
        case BitmaskField(n_bits=code):
            n_bits = int(code.text) if code is not None and code.text.isdigit() else 1
            return FieldKind.BITMASK, -(-n_bits // LONG_BITS)
        case DynamicArrayField():
            element = sizes.of(declared.ctype, declared.name).size
            if element not in ELEMENT_SIZES:
                raise LayoutError(
                    f"elements of {element} bytes cannot be given", declared.name, event.full_name
                )
            return FieldKind.DYNAMIC, element
        case _:
            return FieldKind.DYNAMIC, 1


def _array_kind(declared: ArrayField, place: FieldFormat, sizes: TypeSizes) -> tuple[FieldKind, int]:
    if declared.ctype in ("char", "const char"):
        return FieldKind.CHARS, 1
    element = sizes.of(FLOAT_PLACE.get(declared.ctype, declared.ctype), declared.name).size
    if element in ELEMENT_SIZES and declared.ctype not in FLOAT_PLACE and place.size % element == 0:
        return FieldKind.ARRAY, element
    return FieldKind.BYTES, 1
