"""The value of a field of a record: where its bytes are, and what they mean."""

from __future__ import annotations

import math
import re
import struct
from typing import TYPE_CHECKING, Literal

from tracepoint.errors import SourceError
from tracepoint.source.ctype import CType, parse_ctype
from tracepoint.source.cvalue import int_type_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.layout.format import EventFormat, FieldFormat
    from tracepoint.source.types import IntType

    Value = int | float | str | list[int] | None

# No kernel has them; the events of processes do.
_FLOATS = {"float": 4, "double": 8}
_CHARS = ("char", "const char")
_INTEGER_SIZES = (1, 2, 4, 8)
LOCATION_SIZE = 4


# __get_bitmask(mask), __get_rel_cpumask((mask)): include/trace/stages/stage3_trace_output.h.
_GETS_BITS = re.compile(r"__get_(?:rel_)?(?:bitmask|cpumask)\s*\(\s*\(?\s*(\w+)", re.ASCII)
_CPUMASK = "cpumask_t"


def unpack_location(word: int, origin: int = 0) -> tuple[int, int]:
    """Return the offset in the record and the length in bytes that the word of a `__data_loc` field holds.

    `origin` is the byte from which the word counts: see `location_origin`.

    >>> unpack_location(3 << 16 | 20)
    (20, 3)
    """
    return origin + (word & 0xFFFF), word >> 16 & 0xFFFF


def pack_location(offset: int, size: int, origin: int = 0) -> int:
    """Return the word of a `__data_loc` field for `size` bytes at an offset: see `unpack_location`.

    >>> pack_location(20, 3) == 3 << 16 | 20
    True
    """
    return (size & 0xFFFF) << 16 | (offset - origin) & 0xFFFF


def location_origin(field: FieldFormat) -> int:
    """Return the byte of the record from which the word of a field counts.

    That of a `__rel_loc` counts from its own end: include/trace/stages/stage6_event_callback.h.
    """
    return field.offset + LOCATION_SIZE if field.is_rel_loc else 0


def integer(form: EventFormat, data: bytes, *, is_signed: bool = False) -> int:
    """Return bytes of a record of this format as a number."""
    return int.from_bytes(data, "big" if form.is_big_endian else "little", signed=is_signed)


def unpacker(kind: IntType, *, is_big_endian: bool) -> Callable[[bytes, int], tuple[int]]:
    """Return the function that reads an integer of a type at an offset."""
    code = "bhiq"[kind.size.bit_length() - 1]
    order = ">" if is_big_endian else "<"
    return struct.Struct(order + (code if kind.is_signed else code.upper())).unpack_from


def field_bytes(form: EventFormat, field: FieldFormat, record: bytes) -> bytes | None:
    """Return the bytes of a field's value, None when the record does not hold them all.

    An array without a length goes on to the end of the record.
    """
    start, size = field.offset, field.size
    if field.is_data_loc:
        word = record[start : start + LOCATION_SIZE]
        if len(word) < LOCATION_SIZE:
            return None
        start, size = unpack_location(integer(form, word), location_origin(field))
    elif field.is_array and not size:
        size = max(len(record) - start, 0)
    return record[start : start + size] if start + size <= len(record) else None


def is_text(field: FieldFormat) -> bool:
    """Return whether a field is an array of characters."""
    return field.is_array and field.element_ctype in _CHARS


def is_bitmask(form: EventFormat, field: FieldFormat) -> bool:
    """Return whether a field is a mask of bits, such as CPUs: its type or the print format says it.

    A `__bitmask` has the type of a `__dynamic_array` of unsigned long
    (include/trace/stages/stage2_data_offsets.h).
    """
    if not field.is_data_loc:
        return False
    if field.element_ctype == _CPUMASK:
        return True
    is_words = field.is_array and field.element_ctype == "unsigned long"
    return is_words and field.name in _GETS_BITS.findall(form.print_fmt)


def set_bits(data: bytes, long_size: int, *, is_big_endian: bool) -> list[int] | None:
    """Return the numbers of the bits that are set in a mask of longs; None when they are not whole.

    >>> set_bits(bytes([5, 0, 0, 0, 0, 0, 0, 0x80]), 8, is_big_endian=False)
    [0, 2, 63]
    """
    if len(data) % long_size:
        return None
    order: Literal["big", "little"] = "big" if is_big_endian else "little"
    found = []
    for at in range(0, len(data), long_size):
        word = int.from_bytes(data[at : at + long_size], order)
        found += [8 * at + bit for bit in range(word.bit_length()) if word >> bit & 1]
    return found


def is_integer(field: FieldFormat) -> bool:
    """Return whether a field is one integer at a fixed place."""
    is_single = not field.is_array and not field.is_data_loc
    return is_single and field.size in _INTEGER_SIZES and field.ctype not in _FLOATS


def parse_field_type(field: FieldFormat) -> CType:
    """Return a field's type; one that is not a C type counts as char or an array of it, or as void."""
    try:
        return parse_ctype(field.ctype.split(" ", 1)[1] if field.is_data_loc else field.ctype)
    except SourceError:
        return CType("char", 0, (str(field.size),)) if field.is_array else CType("void")


def element_type(form: EventFormat, field: FieldFormat) -> IntType | None:
    """Return the type of one element of an array, None for structs and what else is not a number."""
    ctype = parse_field_type(field)
    return int_type_of(CType(ctype.base, ctype.pointers), form.long_size)


def field_value(form: EventFormat, field: FieldFormat, record: bytes) -> Value:
    """Return the value of one field, None when the record does not hold it; see `field_values`."""
    data = field_bytes(form, field, record)
    if data is None:
        return None
    if is_text(field):
        return data.partition(b"\0")[0].decode("utf-8", "surrogateescape")
    if is_bitmask(form, field):
        bits = set_bits(data, form.long_size, is_big_endian=form.is_big_endian)
        return data.hex() if bits is None else bits
    if field.is_array:
        kind = element_type(form, field)
        if kind is None or len(data) % kind.size:
            return data.hex()
        steps = range(0, len(data), kind.size)
        return [integer(form, data[at : at + kind.size], is_signed=kind.is_signed) for at in steps]
    if _FLOATS.get(field.ctype) == len(data):
        number = _float(form, data)
        # JSON has no other numbers.
        return number if math.isfinite(number) else str(number)
    return integer(form, data, is_signed=field.is_signed) if len(data) in _INTEGER_SIZES else data.hex()


def field_values(form: EventFormat, record: bytes) -> dict[str, Value]:
    """Return the event's own fields by name, in their order.

    `record` begins at `common_type`.  Char arrays are text up to their NUL, masks lists of the bits that are
    set, other arrays lists of numbers, structs and what else is not a number hex digits; floating point is a
    number, or `nan`, `inf`, `-inf`.
    """
    return {field.name: field_value(form, field, record) for field in form.event_fields}


def _float(form: EventFormat, data: bytes) -> float:
    code = "f" if len(data) == 4 else "d"
    number: float = struct.unpack(f"{'>' if form.is_big_endian else '<'}{code}", data)[0]
    return number
