"""What a lowered sub-expression is: an integer, memory that we hold, a struct in it, or made text.

Each holds the op that gives it and what C knows of its type.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tracepoint.printk import ops
from tracepoint.source.ctype import CType

if TYPE_CHECKING:
    from tracepoint.source.types import IntType

CHAR_TYPE = CType("char")
VOID_TYPE = CType("void")


@dataclass(frozen=True, slots=True)
class IntValue:
    """An integer or an address: `ctype` is set when it is a pointer."""

    kind: IntType
    op: ops.NumberOp
    ctype: CType | None = None
    is_unknown: bool = False

    @property
    def constant(self) -> int | None:
        """The number, when it is known now."""
        return self.op.value if isinstance(self.op, ops.Const) else None


@dataclass(frozen=True, slots=True)
class MemoryValue:
    """A pointer into bytes that we hold.

    `ctype` is what it points to; `extent` the bytes of the whole array for `sizeof`.
    """

    ctype: CType
    op: ops.PlaceOp
    extent: int | None = None
    is_array: bool = False
    literal: str | None = None


@dataclass(frozen=True, slots=True)
class PlaceValue:
    """A struct or union in memory."""

    ctype: CType
    op: ops.PlaceOp
    extent: int | None = None


@dataclass(frozen=True, slots=True)
class TextValue:
    """A string that a helper makes."""

    op: ops.TextOp


Value = IntValue | MemoryValue | PlaceValue | TextValue


def constant(value: int, kind: IntType, ctype: CType | None = None) -> IntValue:
    """Return a value known now."""
    return IntValue(kind, ops.Const(value), ctype)


def literal(text: str) -> MemoryValue:
    """Return a string literal as the memory it is."""
    data = text.encode("latin-1", "replace") + b"\0"
    return MemoryValue(CHAR_TYPE, ops.Bytes(data), len(data), is_array=True, literal=text)


def unknown(reason: str, kind: IntType) -> IntValue:
    """Return a value that cannot be known."""
    return IntValue(kind, ops.Unknown(reason), is_unknown=True)


def with_ctype(value: MemoryValue, ctype: CType) -> MemoryValue:
    """Return the same memory seen as another type, as a pointer cast does."""
    return replace(value, ctype=ctype, extent=None, is_array=False, literal=None)


def place_of(value: Value) -> ops.PlaceOp:
    """Return the memory a pointer value points to; that at a kernel address is not in the record."""
    if isinstance(value, MemoryValue | PlaceValue):
        return value.op
    return ops.BytesOf(value.op) if isinstance(value, TextValue) else ops.KernelPlace(value.op)


def text_of(value: Value, limit: ops.NumberOp | None = None) -> ops.TextOp:
    """Return the text of a `%s` argument; `limit` is the precision in bytes."""
    if isinstance(value, TextValue):
        return value.op
    if isinstance(value, IntValue):
        return ops.KernelString(value.op)
    if isinstance(value.op, ops.Bytes) and limit is None:
        return ops.Literal(value.op.data.partition(b"\0")[0].decode("latin-1"))
    return ops.String(value.op, limit)


def is_set(value: Value) -> ops.NumberOp:
    """Return whether a pointer is not NULL, or the number itself."""
    return value.op if isinstance(value, IntValue) else ops.IsSet(value.op)


def moved(place: ops.PlaceOp, count: ops.NumberOp, size: int) -> ops.PlaceOp:
    """Return a place moved by a number of elements; one that is fixed stays fixed."""
    if isinstance(count, ops.Const) and isinstance(place, ops.At):
        return ops.At(place.offset + count.value * size)
    return ops.Moved(place, count, size)
