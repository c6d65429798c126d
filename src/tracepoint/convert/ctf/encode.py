"""One record as an event of CTF: its bytes, and the fields that they are in TSDL.

Fields keep their bytes; those that lie next to each other in a record are copied together.
"""

from __future__ import annotations

import re
import struct
from itertools import pairwise
from typing import TYPE_CHECKING

from tracepoint.decode.plan import CPU, TIME, ColumnKind, FieldPlace, plan_columns
from tracepoint.record.field import LOCATION_SIZE, set_bits, unpack_location

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.decode.plan import PlanColumn
    from tracepoint.layout.format import EventFormat, FieldFormat

    Part = Callable[[bytes], bytes | None]

_NOT_WORDS = re.compile(r"\W", re.ASCII)
_FLOATS = {"f": "floating_point { exp_dig = 8; mant_dig = 24; align = 8; }",
           "d": "floating_point { exp_dig = 11; mant_dig = 53; align = 8; }"}  # fmt: skip
_TEXT = "integer { size = 8; align = 8; signed = 0; encoding = UTF8; base = 10; }"
_LENGTH = "integer { size = 32; align = 8; signed = 0; base = 10; }"


def integer_text(size: int, *, is_signed: bool = False, base: int = 10) -> str:
    """Return the TSDL type of an integer of `size` bytes.

    >>> integer_text(4, is_signed=True)
    'integer { size = 32; align = 8; signed = 1; base = 10; }'
    """
    return f"integer {{ size = {8 * size}; align = 8; signed = {int(is_signed)}; base = {base}; }}"


def unique_name(name: str, taken: set[str]) -> str:
    """Return a name of TSDL for a field, which no other has, and add it to `taken`.

    It begins with an underscore that readers remove, so that no name is a keyword.
    """
    made = wanted = f"_{_NOT_WORDS.sub('_', name)}"
    number = 1
    while made in taken:
        number += 1
        made = f"{wanted}_{number}"
    taken.add(made)
    return made


class CtfEncoder:
    """Makes the fields of the events of one format; `fields` declares them in TSDL."""

    def __init__(self, form: EventFormat) -> None:
        self._order = ">" if form.is_big_endian else "<"
        self._parts: list[Part] = []
        self._run = (0, 0)
        self.fields: list[str] = []
        self._names: set[str] = set()
        common = {field.name for field in form.common_fields}
        hidden = {TIME, CPU} | common
        pointers = {field.name for field in form.event_fields if "*" in field.ctype}
        for column in plan_columns(form):
            if column.name not in hidden:
                self._add(column, 16 if column.name in pointers else 10)
        self._end_run()

    def encode(self, record: bytes) -> bytes | None:
        """Return the fields of a record; None when it does not hold all of them."""
        made = [part(record) for part in self._parts]
        return None if None in made else b"".join(made)  # type: ignore[arg-type]

    def _add(self, column: PlanColumn, base: int) -> None:
        name = unique_name(column.name, self._names)
        kind = column.kind
        is_fixed = column.place is FieldPlace.FIXED and column.size > 0
        if kind is ColumnKind.NUMBER:
            is_signed = column.code.islower()
            kind_text = _FLOATS.get(column.code) or integer_text(column.size, is_signed=is_signed, base=base)
            self.fields.append(f"{kind_text} {name};")
        elif kind is ColumnKind.TEXT:
            self.fields.append(f"{_TEXT} {name}[{column.size}];" if is_fixed else f"string {name};")
        else:
            element = integer_text(1, base=16)
            if kind in (ColumnKind.LIST, ColumnKind.BITS):
                element = integer_text(column.item_size, is_signed=column.code.islower())
            length = f"_{name}_length"
            self._names.add(length)
            if is_fixed:
                self.fields.append(f"{element} {name}[{column.size // column.element}];")
            else:
                self.fields.append(f"{_LENGTH} {length}; {element} {name}[ {length} ];")
        if is_fixed:
            self._copy(column.offset, column.size)
        else:
            self._end_run()
            self._parts.append(self._moving(column))

    def _copy(self, offset: int, size: int) -> None:
        start, stop = self._run
        if stop != offset:
            self._end_run()
            start = offset
        self._run = (start, offset + size)

    def _end_run(self) -> None:
        start, stop = self._run
        self._run = (0, 0)
        if stop:
            self._parts.append(lambda record: record[start:stop] if len(record) >= stop else None)

    def _moving(self, column: PlanColumn) -> Part:
        """Return the part of a field whose length the record says."""
        find = _place_of(column, self._order)
        element = column.element
        if column.kind is ColumnKind.TEXT:

            def text(record: bytes) -> bytes | None:
                data = find(record)
                return None if data is None else data.partition(b"\0")[0] + b"\0"

            return text
        pack = struct.Struct(self._order + "I").pack
        if column.kind is ColumnKind.BITS:
            is_big = self._order == ">"

            def bits(record: bytes) -> bytes | None:
                data = find(record)
                found = None if data is None else set_bits(data, element, is_big_endian=is_big)
                return None if found is None else b"".join(map(pack, (len(found), *found)))

            return bits

        def items(record: bytes) -> bytes | None:
            data = find(record)
            return None if data is None or len(data) % element else pack(len(data) // element) + data

        return items


def _place_of(column: PlanColumn, order: str) -> Part:
    """Return the function that gives the bytes of a field of any length, None when the record lacks them."""
    offset, origin = column.offset, column.offset + LOCATION_SIZE if column.place is FieldPlace.REL_LOC else 0
    if column.place not in (FieldPlace.DATA_LOC, FieldPlace.REL_LOC):
        return lambda record: record[offset:] if offset <= len(record) else None
    unpack = struct.Struct(order + "I").unpack_from

    def find(record: bytes) -> bytes | None:
        if offset + LOCATION_SIZE > len(record):
            return None
        start, size = unpack_location(unpack(record, offset)[0], origin)
        return record[start : start + size] if start + size <= len(record) else None

    return find


def context_parts(fields: list[FieldFormat]) -> list[tuple[int, int]]:
    """Return the ranges of bytes of a record that hold fields, those that touch as one.

    >>> from tracepoint.layout.format import COMMON_FIELDS
    >>> context_parts(list(COMMON_FIELDS[1:]))
    [(2, 8)]
    """
    ranges = [(field.offset, field.offset + field.size) for field in fields]
    starts = [0, *(n + 1 for n, (one, other) in enumerate(pairwise(ranges)) if one[1] != other[0])]
    stops = [*starts[1:], len(ranges)]
    return [(ranges[a][0], ranges[b - 1][1]) for a, b in zip(starts, stops, strict=True) if ranges]
