"""`trace_printk()` records: arguments stored as bytes, the format known by its address.

lib/vsprintf.c: vbin_printf() writes them: integers aligned to their size (at most 4 bytes),
strings in place, `%p` with most extensions already as text.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from tracepoint.printk.conversion import (
    STAR,
    Conversion,
    conversion_type,
    format_number,
    format_text,
    parse_format,
    split_width,
)
from tracepoint.printk.facts import UnknownPartError
from tracepoint.printk.pointers import PointerArgument, raw_pointer_text
from tracepoint.printk.values import Record, c_string, constant, unpacker
from tracepoint.source.cvalue import CHAR, INT, IntType

if TYPE_CHECKING:
    from tracepoint.layout.format import EventFormat

# The extensions that show the address itself; all others were text when the record was made.
_RAW_POINTERS = frozenset("SsxKe")
_MAX_WIDTH = 4096


class _Reader:
    """Takes the stored arguments one by one."""

    def __init__(self, form: EventFormat, record: Record, at: int) -> None:
        self.form = form
        self.record = record
        self.base = at
        self.at = at

    def integer(self, kind: IntType) -> int:
        # The kernel aligns addresses; the first argument stands aligned.
        self.at += -(self.at - self.base) % min(kind.size, 4)
        unpack = unpacker(kind, is_big_endian=self.form.is_big_endian)
        try:
            value = unpack(self.record.data, self.at)[0]
        except struct.error:
            raise UnknownPartError("arguments that the record lacks") from None
        self.at += kind.size
        return value

    def text(self) -> str:
        text = c_string(self.record.data, self.at)
        self.at += len(text) + 1
        return text

    def conversion(self, piece: Conversion) -> str:
        width = self.integer(INT) if piece.width == STAR else piece.width
        precision = max(self.integer(INT), 0) if piece.precision == STAR else piece.precision
        flags, width = split_width(max(-_MAX_WIDTH, min(width, _MAX_WIDTH)), piece.flags)
        match piece.conversion:
            case "d" | "i" | "u" | "x" | "X" | "o":
                number = self.integer(conversion_type(piece, self.form.long_size))
                return format_number(number, piece.conversion, flags, width, min(precision, _MAX_WIDTH))
            case "c":
                return format_text(chr(self.integer(CHAR) & 0xFF), flags, width)
            case "s":
                return format_text(self.text(), flags, width, precision)
            case "p":
                return self.pointer(piece, flags, width, precision)
        raise UnknownPartError(f"the conversion {piece.text}")

    def pointer(self, piece: Conversion, flags: str, width: int, precision: int) -> str:
        if piece.letters and piece.letters[0] not in _RAW_POINTERS:
            return self.text()
        kind = IntType(self.form.long_size, is_signed=False)
        argument = PointerArgument(
            piece.letters,
            flags,
            lambda _: width,
            lambda _: precision,
            constant(self.integer(kind), kind),
            self.form.long_size,
            self.form.is_big_endian,
        )
        return raw_pointer_text(argument)(self.record)


def binary_text(form: EventFormat, record: Record, fmt: str, at: int) -> str:
    """Return the text of a stored printk: `fmt` its format, `at` the offset of its arguments."""
    reader = _Reader(form, record, at)
    return "".join(
        piece if isinstance(piece, str) else reader.conversion(piece) for piece in parse_format(fmt)
    )
