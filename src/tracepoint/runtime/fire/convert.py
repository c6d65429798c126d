"""From Python values to the bytes of a record: the twin of `csrc/module_convert.c`."""

from __future__ import annotations

import itertools
import math
import operator
import struct
import sys
from typing import TYPE_CHECKING, SupportsIndex, cast

from tracepoint.record.field import LOCATION_SIZE, pack_location
from tracepoint.runtime.declare.plan import REL, SIGNED, FieldKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tracepoint.runtime.declare.plan import FieldPlan

MAX_RECORD = 4072
MAX_ELEMENTS = 0xFFFF
WORD = 8


class ConvertError(ValueError):
    """A value that does not go into its field; the message names the field."""


def make_record(
    fields: Sequence[FieldPlan], values: Sequence[object], size: int, dynamic: int, head: tuple[int, int]
) -> bytes:
    """Return the record of `values`; `head` are the event's id and the thread's.

    `size` is that of the fixed part, `dynamic` where dynamic data begins.  Raises ConvertError.
    """
    record = bytearray(size)
    struct.pack_into("<HxxI", record, 0, head[0] & 0xFFFF, head[1] & 0xFFFFFFFF)
    converted = []
    total = size
    for field in fields:
        if field.source >= len(values):
            raise TypeError(f"no value for field {field.name}")
        try:
            data = convert(field, values[field.source])
        except Exception as error:  # noqa: BLE001 - whatever a value's own methods raise
            raise ConvertError(f"field {field.name}: {_said_by(error)}") from None
        total += len(data) if field.kind.is_dynamic else 0
        if total > MAX_RECORD:
            raise ConvertError(f"field {field.name}: the record would be longer than {MAX_RECORD} bytes")
        converted.append((field, data))
    record.extend(bytes(total - size))
    for field, data in converted:
        if field.kind.is_dynamic:
            origin = field.offset + LOCATION_SIZE if field.flags & REL else 0
            struct.pack_into("<I", record, field.offset, pack_location(dynamic, len(data), origin))
            record[dynamic : dynamic + len(data)] = data
            dynamic += len(data)
        else:
            record[field.offset : field.offset + field.size] = data.ljust(field.size, b"\0")
    return bytes(record)


def _said_by(error: Exception) -> str:
    """Return what an exception says, or its type where it says nothing or cannot."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - whatever its own method raises
        text = ""
    return text or type(error).__name__


def convert(field: FieldPlan, value: object) -> bytes:
    """Return the bytes of one value; raises what says why it does not fit."""
    return _CONVERTERS[field.kind](field, value)


def _float(field: FieldPlan, value: object) -> bytes:
    # Not float(), which reads texts too.
    number = math.ldexp(cast("float", value), 0)
    if field.size == WORD:
        return struct.pack("<d", number)
    try:
        return struct.pack("<f", number)
    except OverflowError:
        raise OverflowError("the number is too large for a float") from None


def _integer(value: object, size: int, *, is_signed: bool) -> bytes:
    number = operator.index(cast("SupportsIndex", value))
    try:
        return number.to_bytes(size, "little", signed=is_signed)
    except OverflowError:
        raise OverflowError(f"{number} does not fit {'s' if is_signed else 'u'}{size * 8}") from None


def _text(value: object) -> bytes:
    if isinstance(value, str):
        # As the core reads it, whatever a class of the program's makes of it.
        return str.encode(value, errors="surrogateescape")
    if value is None:
        # What the kernel stores for a NULL string (include/trace/stages/stage5_get_offsets.h).
        return b"(null)"
    if _is_buffer(value):
        return memoryview(cast("bytes", value)).tobytes()
    raise TypeError(f"expected str or bytes, not {type(value).__name__}")


def _is_buffer(value: object) -> bool:
    if sys.version_info >= (3, 12):
        # A class of the program's may have one that fails: it is a buffer all the same, as for the core.
        return any("__buffer__" in vars(base) for base in type(value).__mro__)
    try:
        memoryview(cast("bytes", value)).release()
    except TypeError:
        return False
    return True


def _bytes(field: FieldPlan, value: object) -> bytes:
    if not _is_buffer(value):
        raise TypeError(f"expected bytes, not {type(value).__name__}")
    data = memoryview(cast("bytes", value)).tobytes()
    if field.kind.is_dynamic:
        element = WORD if field.kind is FieldKind.BITMASK else field.element
        if len(data) % element:
            raise ValueError(f"{len(data)} bytes are not whole elements of {element}")
    elif len(data) > field.size:
        raise ValueError(f"{len(data)} bytes for {field.size}")
    return data


def _elements(field: FieldPlan, value: object) -> bytes:
    if field.kind is FieldKind.BYTES or _is_buffer(value):
        return _bytes(field, value)
    items = _take_items(value, field.size // field.element if field.kind is FieldKind.ARRAY else MAX_ELEMENTS)
    if field.kind is FieldKind.ARRAY and len(items) * field.element > field.size:
        raise ValueError(f"{len(items)} elements for {field.size // field.element}")
    if len(items) > MAX_ELEMENTS:
        raise ValueError(f"{len(items)} elements are too many")
    is_signed = bool(field.flags & SIGNED)
    return b"".join(_integer(item, field.element, is_signed=is_signed) for item in items)


def _take_items(value: object, most: int) -> tuple[object, ...]:
    """Return the items, but no more than `most` and one more: there may be no end of them."""
    if hasattr(type(value), "__next__"):
        raise TypeError("an iterator would be used up; give a list of what it gives")
    return tuple(itertools.islice(cast("Iterable[object]", value), most + 1))


def _bitmask(field: FieldPlan, value: object) -> bytes:
    if _is_buffer(value):
        return _bytes(field, value)
    number = operator.index(cast("SupportsIndex", value))
    size = max(-(-number.bit_length() // 64), field.element) * WORD
    if size > MAX_ELEMENTS:
        raise ValueError(f"a mask of {size} bytes is too long")
    return number.to_bytes(size, "little")


_CONVERTERS: dict[FieldKind, Callable[[FieldPlan, object], bytes]] = {
    FieldKind.INT: lambda f, v: _integer(v, f.size, is_signed=bool(f.flags & SIGNED)),
    FieldKind.BOOL: lambda f, v: bool(v).to_bytes(f.size, "little"),
    FieldKind.FLOAT: _float,
    FieldKind.CHARS: lambda f, v: _text(v)[: f.size - 1],
    FieldKind.BYTES: _elements,
    FieldKind.ARRAY: _elements,
    FieldKind.STRING: lambda _f, v: _text(v) + b"\0",
    FieldKind.DYNAMIC: _elements,
    FieldKind.BITMASK: _bitmask,
}
