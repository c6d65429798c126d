"""What a print format is lowered in: its record, the names and types it may use, what remained unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.layout.kernel_structs import kernel_layout
from tracepoint.printk import ops
from tracepoint.printk.values import IntValue, Value, unknown
from tracepoint.source.ctype import CType
from tracepoint.source.cvalue import int_type_of, is_build_check
from tracepoint.source.types import CHAR, LLONG, UCHAR, IntType

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.layout.format import EventFormat
    from tracepoint.layout.structs import Placed, StructLayout

    #: A struct or union by name.
    Layouts = Callable[[str], StructLayout | None]


class Scope:
    """The names, types and layouts of one print format.

    `reasons` collects what could not be understood, in the order it was met; `locals` are the variables of
    the output function and of the statement expression at hand.
    """

    def __init__(self, form: EventFormat, constants: Callable[[str], int | None], layouts: Layouts) -> None:
        self.form = form
        self.layouts = layouts
        self.constants = constants
        self.machine = ops.RecordMachine(form.is_big_endian, form.long_size)
        self.long_size = form.long_size
        # Plain char is unsigned since Linux 6.2 (-funsigned-char): the fields tell.
        chars = (f.is_signed for f in form.fields if f.element_ctype in ("char", "const char"))
        self.char = CHAR if next(chars, True) else UCHAR
        self.ulong = IntType(form.long_size, is_signed=False)
        self.reasons: list[str] = []
        self.locals: dict[str, Value] = {}

    def unknown(self, reason: str) -> IntValue:
        """Return a value that cannot be known, and remember why."""
        if reason not in self.reasons:
            self.reasons.append(reason)
        return unknown(reason, LLONG)

    def as_integer(self, value: Value, what: str = "a pointer") -> IntValue:
        """Return a value as an integer; an address of the record itself is not known."""
        return value if isinstance(value, IntValue) else self.unknown(f"{what} used as a number")

    def kind_of(self, ctype: CType) -> IntType | None:
        """Return the integer type of a C type on this ABI."""
        if ctype.base == "char" and not ctype.pointers and not ctype.array:
            return self.char
        return int_type_of(ctype, self.long_size)

    def size_of(self, ctype: CType) -> int | None:
        """Return the size in bytes of a type, None when it is not known."""
        if ctype.array:
            inner = self.size_of(CType(ctype.base, ctype.pointers, ctype.array[1:]))
            return inner * int(ctype.array[0]) if inner is not None and ctype.array[0].isdigit() else None
        if ctype.pointers:
            return self.long_size
        if ctype.base == "void":
            return 1
        if is_build_check(ctype):
            return 0
        layout = self.layout_of(ctype.base)
        if layout is not None:
            return layout.size
        kind = int_type_of(ctype, self.long_size)
        return kind.size if kind else None

    def layout_of(self, name: str) -> StructLayout | None:
        """Return the layout of a struct or union that is in the kernel's list or was given, else None."""
        return kernel_layout(name, self.long_size) or self.layouts(name)

    def member_of(self, struct: str, member: str) -> Placed | None:
        """Return where a struct's member is, if its layout is known and it is not a bit-field."""
        layout = self.layout_of(struct)
        placed = layout.members.get(member) if layout is not None else None
        return placed if placed is not None and not placed.bits else None
