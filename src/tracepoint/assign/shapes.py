"""Sizes and members of the objects that assignments touch.

Integers come from `source.cvalue`, structs that events store into member by member from
`layout.kernel_structs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.assign.values import Shape
from tracepoint.layout.kernel_structs import kernel_layout
from tracepoint.source.ctype import parse_ctype
from tracepoint.source.cvalue import int_type_of
from tracepoint.source.types import CHAR, UCHAR, UINT, IntType

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.layout.format import EventFormat, FieldFormat
    from tracepoint.layout.structs import Placed
    from tracepoint.source.ctype import CType

    SizeOf = Callable[[CType], int | None]
    Constant = Callable[[str], int | None]


def array_of(element: Shape, count: int) -> Shape:
    """Return the shape of `count` elements."""
    return Shape(element.size * count, element=element)


class Shapes:
    """Answers for C types under one ABI.

    `long_size` is 4 or 8 bytes; `constant` gives the value of a name or None; `sizeof` the size
    of types beyond integers, or None.
    """

    def __init__(self, long_size: int, constant: Constant, sizeof: SizeOf | None = None) -> None:
        self.long_size = long_size
        self.constant = constant
        self.sizeof = sizeof
        self.ulong = IntType(long_size, is_signed=False)
        self.long = IntType(long_size, is_signed=True)
        self._structs: dict[str, Shape | None] = {}

    def of(self, ctype: CType, lengths: tuple[int, ...] = ()) -> Shape:
        """Return the shape of a type; `lengths` are the values of its array lengths."""
        if lengths:
            element = self.of_element(ctype)
            for length in reversed(lengths):
                element = array_of(element, length)
            return element
        return self.of_element(ctype)

    def of_element(self, ctype: CType) -> Shape:
        """Return the shape of a type without its array lengths."""
        if ctype.pointers:
            return Shape(self.long_size, self.ulong, is_pointer=True, name=str(ctype))
        kind = int_type_of(ctype.base, self.long_size)
        if kind is not None:
            return Shape(kind.size, kind, name=ctype.base)
        struct = self.of_struct(ctype.base)
        if struct is not None:
            return struct
        size = self.sizeof(ctype) if self.sizeof is not None else None
        return Shape(size or 0, name=ctype.base)

    def of_struct(self, name: str) -> Shape | None:
        """Return the shape of a struct or union whose members are known, else None."""
        if name not in self._structs:
            layout = kernel_layout(name, self.long_size)
            members = layout.members.items() if layout is not None else ()
            placed = {key: (member.offset, self.of_member(member)) for key, member in members}
            self._structs[name] = None if layout is None else Shape(layout.size, members=placed, name=name)
        return self._structs[name]

    def of_member(self, member: Placed) -> Shape:
        """Return the shape of a struct's member."""
        return self.of(member.ctype, tuple(map(int, member.ctype.array)))

    def pointee(self, ctype: CType) -> Shape:
        """Return the shape of what a pointer type points to; `void *` counts bytes."""
        from_pointer = type(ctype)(ctype.base, ctype.pointers - 1, (), ctype.qualifiers)
        if from_pointer.base == "void" and not from_pointer.pointers:
            return Shape(1, UCHAR, name="void")
        return self.of_element(from_pointer)

    def of_field(self, field: FieldFormat) -> Shape:
        """Return the shape of a record's member (of the word, for a dynamic one)."""
        if field.is_data_loc:
            return Shape(4, UINT)
        if field.is_array:
            element = self._element_of(field)
            if element is None or field.size % (element.size or 1):
                element = Shape(field.size)
            return Shape(field.size, element=element)
        struct = self.of_struct(field.ctype)
        if struct is not None:
            return struct
        is_struct = "*" not in field.ctype and field.ctype.startswith(("struct ", "union "))
        if field.size in (1, 2, 4, 8) and not is_struct:
            return Shape(
                field.size,
                IntType(field.size, field.is_signed),
                is_pointer="*" in field.ctype,
                name=field.ctype,
            )
        return Shape(field.size, name=field.ctype)

    def of_dynamic(self, field: FieldFormat) -> Shape:
        """Return the shape of one element of a dynamic array."""
        return self._element_of(field) or Shape(1, CHAR)

    def _element_of(self, field: FieldFormat) -> Shape | None:
        """Return the shape of an array's elements; a typedef of the headers has a size at least."""
        kind = self._kind_of_field(field.element_ctype)
        if kind is not None:
            return Shape(kind.size, kind)
        struct = self.of_struct(field.element_ctype)
        if struct is not None:
            return struct
        ctype = parse_ctype(field.element_ctype)
        size = self.sizeof(ctype) if self.sizeof is not None else None
        if size in (1, 2, 4, 8) and not ctype.base.startswith(("struct ", "union ")):
            return Shape(size, IntType(size, is_signed=field.is_signed), name=ctype.base)
        return Shape(size, name=ctype.base) if size else None

    def _kind_of_field(self, text: str) -> IntType | None:
        if "*" in text:
            return self.ulong
        return int_type_of(text, self.long_size)

    def of_record(self, layout: EventFormat) -> dict[str, tuple[int, Shape]]:
        """Return the members of a record, as those of a struct."""
        members: dict[str, tuple[int, Shape]] = {}
        for field in layout.fields:
            prefix = ("__rel_loc_" if field.is_rel_loc else "__data_loc_") if field.is_data_loc else ""
            members[prefix + field.name] = (field.offset, self.of_field(field))
        return members
