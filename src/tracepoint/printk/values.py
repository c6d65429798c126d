"""What a compiled sub-expression is: an integer, memory that we hold, a struct in it, or made text.

A `read` function takes the `Record` being rendered.  Text is carried one character a byte
(latin-1), so that precision and padding count bytes as the kernel's do.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn

from tracepoint.printk.facts import UnknownPartError
from tracepoint.source.ctype import CType

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.printk.facts import RenderFacts
    from tracepoint.source.cvalue import IntType

    Location = tuple[bytes, int]


class Record:
    """The record at hand: its bytes from `common_type` on, the facts, and notes made so far."""

    __slots__ = ("data", "facts", "notes")

    def __init__(self, data: bytes, facts: RenderFacts) -> None:
        self.data = data
        self.facts = facts
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        """Add a note once."""
        if text not in self.notes:
            self.notes.append(text)


CHAR_TYPE = CType("char")
VOID_TYPE = CType("void")


@dataclass(frozen=True, slots=True)
class IntValue:
    """An integer or an address: `ctype` is set when it is a pointer, `constant` when it is known now."""

    kind: IntType
    read: Callable[[Record], int]
    constant: int | None = None
    ctype: CType | None = None
    is_unknown: bool = False


@dataclass(frozen=True, slots=True)
class MemoryValue:
    """A pointer into bytes that we hold; `read` gives buffer and offset, None when it is NULL.

    `ctype` is what it points to; `extent` the bytes of the whole array for `sizeof`.
    """

    ctype: CType
    read: Callable[[Record], Location | None]
    extent: int | None = None
    is_array: bool = False
    literal: str | None = None


@dataclass(frozen=True, slots=True)
class PlaceValue:
    """A struct or union that stands in memory."""

    ctype: CType
    read: Callable[[Record], Location | None]
    extent: int | None = None


@dataclass(frozen=True, slots=True)
class TextValue:
    """A string that a helper makes; None is NULL."""

    read: Callable[[Record], str | None]


Value = IntValue | MemoryValue | PlaceValue | TextValue

_CODES = {(1, True): "b", (1, False): "B", (2, True): "h", (2, False): "H",
          (4, True): "i", (4, False): "I", (8, True): "q", (8, False): "Q"}  # fmt: skip


def unpacker(kind: IntType, *, is_big_endian: bool) -> Callable[[bytes, int], tuple[int]]:
    """Return the function that reads an integer of a type at an offset."""
    code = _CODES[(kind.size, kind.is_signed)]
    return struct.Struct((">" if is_big_endian else "<") + code).unpack_from


def constant(value: int, kind: IntType, ctype: CType | None = None) -> IntValue:
    """Return a value known now."""
    return IntValue(kind, lambda _: value, value, ctype)


def literal(text: str) -> MemoryValue:
    """Return a string literal as the memory it is."""
    data = text.encode("latin-1", "replace") + b"\0"
    place = (data, 0)
    return MemoryValue(CHAR_TYPE, lambda _: place, len(data), is_array=True, literal=text)


def unknown(reason: str, kind: IntType) -> IntValue:
    """Return a value that cannot be known; reading it raises `UnknownPartError`."""

    def read(_: Record) -> NoReturn:
        raise UnknownPartError(reason)

    return IntValue(kind, read, is_unknown=True)


def c_string(data: bytes, at: int, limit: int = -1) -> str:
    """Return the string at an offset up to its NUL, or `limit` bytes of it when that comes first."""
    end = data.find(0, at)
    if at < 0 or at > len(data):
        raise UnknownPartError("a string begins outside the record")
    if end < 0:
        if limit < 0 or at + limit > len(data):
            raise UnknownPartError("a string runs past the end of the record")
        end = at + limit
    elif 0 <= limit < end - at:
        end = at + limit
    return data[at:end].decode("latin-1")


def take(place: Location | None, size: int) -> bytes:
    """Return `size` bytes at a place; raises `UnknownPartError` when the record does not hold them."""
    if place is None:
        raise UnknownPartError("a NULL pointer is dereferenced")
    data, at = place
    if at < 0 or size < 0 or at + size > len(data):
        raise UnknownPartError("bytes outside the record are shown")
    return data[at : at + size]


def with_ctype(value: MemoryValue, ctype: CType) -> MemoryValue:
    """Return the same memory seen as another type, as a pointer cast does."""
    return replace(value, ctype=ctype, extent=None, is_array=False, literal=None)


def memory_of(value: Value) -> Callable[[Record], Location | None]:
    """Return the function that gives the memory a pointer value points to; None for NULL.

    Kernel addresses hold memory that the record does not carry: reading them raises.
    """
    if isinstance(value, MemoryValue | PlaceValue):
        return value.read
    read = value.read
    if isinstance(value, TextValue):

        def text_memory(record: Record) -> Location | None:
            text = read(record)
            return None if text is None else (str(text).encode("latin-1", "replace") + b"\0", 0)

        return text_memory

    def address_memory(record: Record) -> Location | None:
        if read(record) == 0:
            return None
        raise UnknownPartError("memory that a kernel pointer points to")

    return address_memory


def text_of(value: Value, limit: Callable[[Record], int] | None = None) -> Callable[[Record], str | None]:
    """Return the function that gives a `%s` argument's text; `limit` is the precision in bytes."""
    if isinstance(value, TextValue):
        return value.read
    if isinstance(value, IntValue):
        return _text_of_address(value)
    where = value.read

    def read(record: Record) -> str | None:
        place = where(record)
        if place is None:
            return None
        return c_string(place[0], place[1], -1 if limit is None else limit(record))

    return read


def _text_of_address(value: IntValue) -> Callable[[Record], str | None]:
    where = value.read

    def read(record: Record) -> str | None:
        address = where(record)
        if address == 0:
            return None
        text = record.facts.printk_formats.get(address)
        if text is None:
            raise UnknownPartError(f"the string at kernel address {address:#x}")
        return text

    return read
