"""`trace_printk()` records: arguments stored as bytes, the format known by its address.

lib/vsprintf.c: vbin_printf() writes them: integers aligned to their size (at most 4 bytes),
strings in place, `%p` with most extensions already as text.
"""

from __future__ import annotations

import struct

from tracepoint.printk import ops
from tracepoint.printk.conversion import (
    ABSENT,
    STAR,
    Conversion,
    conversion_type,
    format_number,
    format_text,
    parse_format,
    split_width,
)
from tracepoint.printk.facts import UnknownPartError
from tracepoint.printk.memory import RecordMemory, c_string
from tracepoint.printk.pointers import PointerArgument, lower_pointer
from tracepoint.printk.twin.run import text_function
from tracepoint.printk.values import constant
from tracepoint.record.field import unpacker
from tracepoint.source.types import CHAR, INT, IntType

# The extensions that show the address itself; all others were text when the record was made.
_RAW_POINTERS = frozenset("SsxKe")
_MAX_WIDTH = 4096


class _Reader:
    """Takes the stored arguments one by one."""

    def __init__(self, machine: ops.RecordMachine, record: RecordMemory, at: int) -> None:
        self.machine = machine
        self.record = record
        self.base = at
        self.at = at

    def integer(self, kind: IntType) -> int:
        # The kernel aligns addresses; the first argument is aligned.
        self.at += -(self.at - self.base) % min(kind.size, 4)
        unpack = unpacker(kind, is_big_endian=self.machine.is_big_endian)
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
                number = self.integer(conversion_type(piece, self.machine.long_size))
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
        kind = IntType(self.machine.long_size, is_signed=False)
        argument = PointerArgument(
            piece.letters,
            flags,
            None if width == ABSENT else ops.Const(width),
            None if precision == ABSENT else ops.Const(precision),
            constant(self.integer(kind), kind),
            self.machine,
        )
        lowered = lower_pointer(argument)
        return (text_function(lowered, self.machine, {})(self.record) if lowered is not None else None) or ""


def stored_text(record: RecordMemory, address: int, at: int, is_big: int, long_size: int) -> str:
    """Return the text of a stored printk: `address` that of its format, `at` the offset of its arguments."""
    fmt = record.facts.printk_formats.get(address)
    if fmt is None:
        raise UnknownPartError("the format, which printk_formats would give")
    reader = _Reader(ops.RecordMachine(bool(is_big), long_size), record, at)
    return "".join(
        piece if isinstance(piece, str) else reader.conversion(piece) for piece in parse_format(fmt)
    )
