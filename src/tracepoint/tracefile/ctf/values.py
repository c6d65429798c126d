"""Values of any type as Python's own: for headers, and for what no column holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracepoint.tracefile.ctf.bits import float_reader, integer_reader
from tracepoint.tracefile.ctf.scopes import ELEMENT
from tracepoint.tracefile.ctf.types import (
    CtfArray,
    CtfEnum,
    CtfFloat,
    CtfInteger,
    CtfString,
    CtfStruct,
    CtfVariant,
    shown_name,
)
from tracepoint.tracefile.cursor import decode

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.tracefile.ctf.bits import PacketBits
    from tracepoint.tracefile.ctf.scopes import CtfScope
    from tracepoint.tracefile.ctf.types import CtfType

    Path = tuple[str, ...]
    ReadValue = Callable[[PacketBits], Any]


class ValueReaders:
    """Makes functions that read a value of a type at the place of its path.

    Integers that lengths and tags refer to are kept.
    """

    def __init__(self, scope: CtfScope, *, is_big_endian: bool) -> None:
        self._scope = scope
        self._is_big_endian = is_big_endian

    def reader(self, kind: CtfType, path: Path) -> ReadValue:
        """Return the function that reads a value."""
        match kind:
            case CtfInteger():
                return self.integer(kind, path)
            case CtfEnum():
                return self._enum(kind, path)
            case CtfFloat():
                return float_reader(kind, is_big_endian=self._is_big_endian)
            case CtfString():
                return lambda bits: decode(bits.string())
            case CtfArray():
                return self._array(kind, path)
            case CtfStruct():
                return self._struct(kind, path)
        return self._variant(kind, path)

    def integer(self, kind: CtfInteger, path: Path) -> ReadValue:
        """Return the function that reads an integer, and keeps it when something needs it."""
        read = integer_reader(kind, is_big_endian=self._is_big_endian)
        if path not in self._scope.needed:
            return read

        def keep(bits: PacketBits) -> int:
            number = bits.numbers[path] = read(bits)
            return number

        return keep

    def _enum(self, kind: CtfEnum, path: Path) -> ReadValue:
        read = self.integer(kind.container, path)
        names = kind.names

        def name(bits: PacketBits) -> int | str:
            number: int = read(bits)
            return next((name for name, low, high in names if low <= number <= high), number)

        return name

    def length(self, kind: CtfArray, path: Path) -> Callable[[PacketBits], int]:
        """Return the function that gives the number of elements."""
        if isinstance(kind.length, int):
            fixed = kind.length
            return lambda _: fixed
        target = self._scope.targets[path]

        def length(bits: PacketBits) -> int:
            number = bits.numbers.get(target, -1)
            if number < 0:
                raise bits.wrong(f"an array of {number} elements")
            return number

        return length

    def _array(self, kind: CtfArray, path: Path) -> ReadValue:
        length, align = self.length(kind, path), kind.align
        element = self.reader(kind.element, (*path, ELEMENT))
        is_text = isinstance(kind.element, CtfInteger) and kind.element.is_text and kind.element.size == 8

        def read(bits: PacketBits) -> list[Any] | str:
            bits.skip(align, 0)
            found = []
            for _ in range(length(bits)):
                bits.element()
                found.append(element(bits))
            if is_text:
                return decode(bytes(number & 0xFF for number in found).partition(b"\0")[0])
            return found

        return read

    def _struct(self, kind: CtfStruct, path: Path) -> ReadValue:
        align = kind.align
        members = [(shown_name(name), self.reader(member, (*path, name))) for name, member in kind.fields]

        def read(bits: PacketBits) -> dict[str, Any]:
            bits.skip(align, 0)
            return {name: member(bits) for name, member in members}

        return read

    def _variant(self, kind: CtfVariant, path: Path) -> ReadValue:
        target = self._scope.targets[path]
        tag = self._scope.integers[target]
        names = tag.names if isinstance(tag, CtfEnum) else ()
        options = {name: self.reader(option, (*path, name)) for name, option in kind.options}
        shorter = {shown_name(name): read for name, read in options.items()}

        def read(bits: PacketBits) -> Any:
            number = bits.numbers.get(target)
            for name, low, high in names:
                if number is not None and low <= number <= high:
                    option = options.get(name) or shorter.get(shown_name(name))
                    if option is not None:
                        return option(bits)
            raise bits.wrong(f"a variant {shown_name(path[-1])} without an option for {number}")

        return read
