"""What an expression of an assignment can stand for, and the memory it stores into."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeGuard

if TYPE_CHECKING:
    from tracepoint.source.ast import Call, Node
    from tracepoint.source.ctype import CType
    from tracepoint.source.types import IntType


class CannotFollowError(Exception):
    """Raised inside this room when a value cannot be known; `reason` is a sentence for people.

    It never leaves the room: `program` turns it into an `Unfollowed`.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Shape:
    """How many bytes an object has and what they mean.

    A scalar has `kind`; an array has `element`; a struct has `members` when they are known.
    `size` is in bytes, 0 when it is not known.
    """

    size: int
    kind: IntType | None = None
    element: Shape | None = None
    members: dict[str, tuple[int, Shape]] | None = field(default=None, compare=False)
    is_pointer: bool = False
    name: str = ""


class Memory:
    """Bytes that the assignment may read and write, with a mark on each byte that was written."""

    __slots__ = ("data", "label", "order", "written")

    def __init__(self, data: bytes, *, is_big_endian: bool, label: str, is_written: bool = False) -> None:
        self.data = bytearray(data)
        self.written = bytearray(b"\x01" * len(data) if is_written else bytes(len(data)))
        self.order: Literal["big", "little"] = "big" if is_big_endian else "little"
        self.label = label

    def check(self, offset: int, size: int) -> None:
        """Raise CannotFollowError unless `size` bytes at `offset` lie inside."""
        if offset < 0 or size < 0 or offset + size > len(self.data):
            raise CannotFollowError(
                f"{size} bytes at offset {offset} reach outside the {len(self.data)} bytes of {self.label}"
            )

    def read(self, offset: int, size: int) -> bytes:
        """Return `size` bytes from `offset`."""
        self.check(offset, size)
        return bytes(self.data[offset : offset + size])

    def write(self, offset: int, data: bytes) -> None:
        """Store bytes at `offset` and mark them written."""
        self.check(offset, len(data))
        self.data[offset : offset + len(data)] = data
        self.written[offset : offset + len(data)] = b"\x01" * len(data)

    def read_int(self, offset: int, kind: IntType) -> int:
        """Return the integer of type `kind` at `offset`."""
        return int.from_bytes(self.read(offset, kind.size), self.order, signed=kind.is_signed)

    def write_int(self, offset: int, kind: IntType, value: int) -> None:
        """Store `value` as C would: cut to the width of `kind`."""
        self.write(offset, (value & ((1 << (8 * kind.size)) - 1)).to_bytes(kind.size, self.order))

    def string_at(self, offset: int, limit: int | None = None) -> bytes:
        """Return the bytes from `offset` up to the first NUL, the end or `limit`."""
        self.check(offset, 0)
        end = len(self.data) if limit is None else min(len(self.data), offset + limit)
        stop = self.data.find(0, offset, end)
        return bytes(self.data[offset : end if stop < 0 else stop])


@dataclass(frozen=True, slots=True)
class Int:
    """An integer of a C type; `input` is the input it came from unchanged (else empty)."""

    value: int
    kind: IntType
    input_: str = ""


@dataclass(frozen=True, slots=True)
class Slot:
    """An object in memory: something that can be stored to."""

    memory: Memory
    offset: int
    shape: Shape


@dataclass(frozen=True, slots=True)
class Pointer:
    """The address of an object in memory; `shape` is what it points to."""

    memory: Memory
    offset: int
    shape: Shape


@dataclass(frozen=True, slots=True)
class Outside:
    """An expression over what only the kernel knows; not asked for until its value is needed.

    `filler` is the call that stores there, for what a function of the kernel puts into the record.
    """

    node: Node
    ctype: CType | None = None
    filler: Call | None = None


@dataclass(frozen=True, slots=True)
class Items:
    """A local table of things that are not integers, such as names."""

    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Lost:
    """A local variable whose value could not be followed."""

    reason: str


Value: TypeAlias = Int | Slot | Pointer | Outside | Items | Lost


def is_value(answer: object) -> TypeGuard[Value]:
    """Tell an evaluated value from what an input was given as."""
    return isinstance(answer, (Int, Slot, Pointer, Outside, Items, Lost))


@dataclass(frozen=True, slots=True)
class Want:
    """What the place of use says about a value: its type, its role, the field it goes to.

    `role` is `int`, `pointer`, `string`, `bytes`, `length`, `index` or `condition`; `length` the
    number of bytes wanted; `is_swapped` that a byte-order conversion follows.
    """

    kind: IntType | None = None
    role: str = "int"
    field: str = ""
    length: int = 0
    is_swapped: bool = False
    element: int = 1


@dataclass(frozen=True, slots=True)
class Input:
    """One input of an assignment: an expression that needs the world outside.

    `text` is canonical C text; `ctype` the C type where it is known (else empty); `size` and
    `is_signed` the integer type that the place of use wants; `role` as in `Want`; `field` the
    field it is stored to when that happens directly; `length` the bytes wanted of a `bytes` input;
    `filler` the call of a function that stores it.
    """

    text: str
    node: Node = field(compare=False, repr=False)
    ctype: str = ""
    role: str = "int"
    size: int = 0
    is_signed: bool = True
    field: str = ""
    length: int = 0
    element: int = 1
    is_swapped: bool = False
    filler: Call | None = None
