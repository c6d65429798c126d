"""The offsets of the members of a struct: GCC's rules for the ABIs of `layout.abi`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tracepoint.errors import LayoutError
from tracepoint.named import NamedTuple
from tracepoint.source.ctype import CType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.source.lexer import Token
    from tracepoint.source.structs import Marks, MemberDeclaration, StructBody

#: What `__aligned` without a number asks for on every ABI here but 32-bit ARM, where no record has it.
_BIGGEST_ALIGN = 16
_MAX_SIZE = 1 << 28


class Placed(NamedTuple):
    """One member: its offset in bytes and its type; `bits` is the width of a bit-field, 0 for others."""

    offset: int
    ctype: CType
    bits: int = 0


@dataclass(frozen=True, slots=True)
class StructLayout:
    """Size and alignment of a struct or union in bytes, and its members, those without a name opened."""

    size: int
    align: int
    members: Mapping[str, Placed]


class Measures(Protocol):
    """What laying out a struct asks of the sizes around it."""

    def size_and_align(self, ctype: CType) -> tuple[int, int]:
        """Return size and alignment of a type; LayoutError when they are not known."""

    def number(self, tokens: Sequence[Token]) -> int:
        """Return the value of a length or width; LayoutError when it is not known."""

    def members_of(self, ctype: CType) -> Mapping[str, Placed]:
        """Return the members of a struct or union."""

    def name_body(self, name: str, body: StructBody) -> CType:
        """Return the type under which a struct that is defined in place is known from now on."""


class _Layer:
    """One struct being laid out; positions are in bits."""

    def __init__(self, name: str, body: StructBody, measures: Measures) -> None:
        self.name = name
        self.body = body
        self.measures = measures
        self.at = 0
        self.end = 0
        self.align = 1
        self.members: dict[str, Placed] = {}

    def finish(self) -> StructLayout:
        for index, member in enumerate(self.body.members):
            self.add(member, index)
        self.align = max(self.align, self.asked(self.body.marks))
        size = -(-self.end // 8)
        return StructLayout(-(-size // self.align) * self.align, self.align, self.members)

    def asked(self, marks: Marks) -> int:
        """Return the largest alignment that attributes ask for, 1 without any."""
        numbers = [self.measures.number(a) if a else _BIGGEST_ALIGN for a in marks.aligns]
        if any(number <= 0 or number & (number - 1) or number > _MAX_SIZE for number in numbers):
            raise LayoutError(f"an alignment in {self.name} is not a power of two")
        return max(numbers, default=1)

    def natural(self, align: int, member: MemberDeclaration) -> int:
        """Return the alignment of a member whose type has `align`."""
        if member.marks.is_packed or self.body.marks.is_packed:
            align = 1
        elif self.body.pack:
            align = min(align, self.body.pack)
        return max(align, self.asked(member.marks))

    def add(self, member: MemberDeclaration, index: int) -> None:
        ctype = self.type_of(member, index)
        size, align = self.measures.size_and_align(ctype)
        if member.bits is not None:
            self.add_bits(member, ctype, size, align)
            return
        count = 1
        for length in member.lengths:
            count *= self.measures.number(length) if length else 0
        align = self.natural(align, member)
        start = 0 if self.body.is_union else -(-self.at // (8 * align)) * 8 * align
        self.align = max(self.align, align)
        self.take(start, 8 * size * count)
        self.name_it(member, ctype, start // 8)

    def take(self, start: int, n_bits: int) -> None:
        """Let a member end where it ends."""
        self.at = start + n_bits
        self.end = max(self.end, self.at)
        if self.end > 8 * _MAX_SIZE:
            raise LayoutError(f"{self.name} is larger than {_MAX_SIZE} bytes")

    def add_bits(self, member: MemberDeclaration, ctype: CType, size: int, align: int) -> None:
        """Place a bit-field: it crosses no border of its type, unless it is packed."""
        width = self.measures.number(member.bits or ())
        if not 0 <= width <= 8 * size:
            raise LayoutError(f"a bit-field of {self.name} is {width} bits wide")
        start = 0 if self.body.is_union else self.at
        is_packed = member.marks.is_packed or self.body.marks.is_packed or self.body.pack == 1
        asked = self.asked(member.marks)
        if width == 0:
            self.at = -(-start // (8 * size)) * 8 * size
            return
        if not is_packed and start // (8 * size) != (start + width - 1) // (8 * size):
            start = -(-start // (8 * align)) * 8 * align
        if asked > 1:
            start = -(-start // (8 * asked)) * 8 * asked
        if member.name:
            self.align = max(self.align, self.natural(align, member))
            unit = start // (8 * size) * size
            self.members[member.name] = Placed(unit, ctype, width)
        self.take(start, width)

    def type_of(self, member: MemberDeclaration, index: int) -> CType:
        if member.body is not None:
            return self.measures.name_body(f"{self.name}::{member.name or index}", member.body)
        if member.ctype is None:
            raise LayoutError(f"the type of a member of {self.name} is not known")
        return member.ctype

    def name_it(self, member: MemberDeclaration, ctype: CType, offset: int) -> None:
        """Make the member known, or what is in it when it has no name."""
        if not member.name:
            inner = self.measures.members_of(ctype)
            for name, placed in inner.items():
                self.members[name] = placed._replace(offset=offset + placed.offset)
            return
        lengths = tuple(str(self.measures.number(a)) if a else "" for a in member.lengths)
        whole = CType(ctype.base, ctype.pointers, (*lengths, *ctype.array), ctype.qualifiers)
        self.members[member.name] = Placed(offset, whole)


def lay_out(name: str, body: StructBody, measures: Measures) -> StructLayout:
    """Lay out a struct or union; LayoutError when a member's size is not known."""
    return _Layer(name, body, measures).finish()
