"""Ops that give texts, as functions of the record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracepoint.printk import addresses, ops
from tracepoint.printk.conversion import ABSENT, format_number, format_text, split_width
from tracepoint.printk.facts import UnknownPartError
from tracepoint.printk.memory import NO_RECORD, c_string, take
from tracepoint.printk.symbols import symbol_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.printk.memory import RecordMemory
    from tracepoint.printk.twin.maker import Maker, Number, Text

_MAX_ELEMENTS = 1 << 16


def _optional(maker: Maker, op: ops.NumberOp | None) -> Number:
    """Return what gives a width or precision; `ABSENT` without one."""
    return maker.number(op) if op is not None else lambda _: ABSENT


def _literal(_: Maker, op: ops.Literal) -> Text:
    text = op.text
    return lambda _: text


def _string(maker: Maker, op: ops.String) -> Text:
    where = maker.place(op.place)
    limit = None if op.limit is None else maker.number(op.limit)

    def read(record: RecordMemory) -> str | None:
        place = where(record)
        if place is None:
            return None
        return c_string(place[0], place[1], -1 if limit is None else limit(record))

    return read


def _kernel_string(maker: Maker, op: ops.KernelString) -> Text:
    where = maker.number(op.address)

    def read(record: RecordMemory) -> str | None:
        address = where(record)
        if address == 0:
            return None
        text = record.facts.printk_formats.get(address)
        if text is None:
            raise UnknownPartError(f"the string at kernel address {address:#x}")
        return text

    return read


def _table(maker: Maker, op: ops.Flags | ops.Symbolic) -> Callable[[RecordMemory], list[tuple[int, str]]]:
    """Return what gives the numbers and names of a table: always the same where all are known now."""
    fixed = ops.static_table(op.table)
    if fixed is not None:
        return lambda _: fixed
    pairs = [(maker.number(number), maker.text(name)) for number, name in op.table]
    return lambda record: [(number(record), name(record) or "") for number, name in pairs]


def _flags(maker: Maker, op: ops.Flags) -> Text:
    value, table = maker.number(op.value), _table(maker, op)
    delimiter = maker.text(op.delimiter) if op.delimiter is not None else None

    def read(record: RecordMemory) -> str:
        left = value(record)
        names = []
        for mask, name in table(record):
            if not left:
                break
            if left & mask == mask:
                names.append(name)
                left &= ~mask
        if left:
            names.append(f"0x{left:x}")
        return ("" if delimiter is None else delimiter(record) or "").join(names)

    return read


def _symbolic(maker: Maker, op: ops.Symbolic) -> Text:
    value, table = maker.number(op.value), _table(maker, op)
    known = dict(reversed(table(NO_RECORD))) if ops.static_table(op.table) is not None else None

    def read(record: RecordMemory) -> str:
        number = value(record)
        names = known if known is not None else dict(reversed(table(record)))
        # An empty name prints the number: the kernel looks whether anything was printed.
        return names.get(number) or f"0x{number:x}"

    return read


def _pick_text(maker: Maker, op: ops.PickText) -> Text:
    which, otherwise = maker.number(op.index), maker.text(op.otherwise)
    cases = {key: maker.text(case) for key, case in op.cases}
    return lambda record: cases.get(which(record), otherwise)(record)


def _hex(maker: Maker, op: ops.Hex) -> Text:
    place, length = maker.place(op.place), maker.number(op.length)
    separator, group = op.separator, op.group

    def read(record: RecordMemory) -> str:
        count = length(record)
        data = take(place(record), count) if count > 0 else b""
        step = group or len(data) or 1
        parts = (data[at : at + step] for at in range(0, len(data), step))
        return "".join(part.hex(separator) if separator else part.hex() for part in parts)

    return read


def _numbers(maker: Maker, op: ops.Numbers) -> Text:
    place, count, size = maker.place(op.place), maker.number(op.count), op.size
    is_big = maker.is_big_endian

    def read(record: RecordMemory) -> str:
        number = count(record)
        if number <= 0:
            return "{}"
        data = take(place(record), min(number, _MAX_ELEMENTS) * size)
        values = (
            int.from_bytes(data[at : at + size], "big" if is_big else "little")
            for at in range(0, len(data), size)
        )
        return "{" + ",".join(f"0x{value:x}" for value in values) + "}"

    return read


def _bitmap(maker: Maker, op: ops.Bitmap) -> Text:
    place, size, n_bits = maker.place(op.place), maker.number(op.size), maker.number(op.n_bits)
    long_size, is_big = maker.long_size, maker.is_big_endian

    def read(record: RecordMemory) -> str:
        data, bits = take(place(record), size(record)), n_bits(record)
        number = addresses.bitmap_number(data, bits, long_size, is_big_endian=is_big)
        return addresses.bitmap_list(number) if op.is_list else addresses.bitmap_text(number, bits)

    return read


def _symbol(maker: Maker, op: ops.SymbolText) -> Text:
    address, letters = maker.number(op.address), op.letters
    return lambda record: symbol_text(record, address(record), letters)


def _character(maker: Maker, op: ops.Character) -> Text:
    read = maker.number(op.value)
    return lambda record: chr(read(record) & 0xFF)


def _padded(maker: Maker, op: ops.Padded) -> Text:
    read, flags = maker.text(op.text), op.flags
    width, precision = _optional(maker, op.width), _optional(maker, op.precision)

    def text(record: RecordMemory) -> str:
        shown = read(record)
        marks, wide = split_width(width(record), flags)
        return format_text("(null)" if shown is None else shown, marks, wide, precision(record))

    if op.width is None and op.precision is None:
        return lambda record: "(null)" if (shown := read(record)) is None else shown
    return text


def _number_text(maker: Maker, op: ops.Number) -> Text:
    read, flags, conversion = maker.number(op.value), op.flags, op.conversion
    width, precision = _optional(maker, op.width), _optional(maker, op.precision)

    def text(record: RecordMemory) -> str:
        marks, wide = split_width(width(record), flags)
        return format_number(read(record), conversion, marks, wide, max(precision(record), ABSENT))

    return text


def _if_text(maker: Maker, op: ops.IfText) -> Text:
    test, a, b = maker.number(op.test), maker.text(op.then), maker.text(op.otherwise)
    return lambda record: a(record) if test(record) else b(record)


def _joined(maker: Maker, op: ops.Joined) -> Text:
    """Return what fills a template of the `%` operator: much of a line is done by it alone."""
    template = ""
    readers: list[Callable[[RecordMemory], object]] = []
    for part in op.parts:
        if isinstance(part, ops.Literal):
            template += part.text.replace("%", "%%")
            continue
        directive = _directive(part)
        template += directive
        if isinstance(part, ops.Number) and directive != "%s":
            readers.append(maker.number(part.value))
        else:
            readers.append(maker.text(part))
    if not readers:
        text = template.replace("%%", "%")
        return lambda _: text
    if len(readers) == 1:
        only = readers[0]
        return lambda record: template % (only(record),)
    return lambda record: template % tuple([read(record) for read in readers])


def _without_newline(maker: Maker, op: ops.WithoutNewline) -> Text:
    read = maker.text(op.text)
    return lambda record: (read(record) or "").removesuffix("\n")


def _call(maker: Maker, op: ops.Call) -> Text:
    function, arguments = maker.functions[op.name], [maker.value(given) for given in op.arguments]
    return lambda record: function(record, *[read(record) for read in arguments])


def _directive(part: ops.TextOp) -> str:
    """Return what formats a number in a template as the kernel does, `%s` where Python would differ."""
    if not isinstance(part, ops.Number) or part.precision is not None or part.conversion == "p":
        return "%s"
    is_signed = part.conversion in "di"
    if not set(part.flags) <= (set("-0+ ") if is_signed else set("-0")):
        return "%s"
    if part.width is None:
        digits = ""
    elif isinstance(part.width, ops.Const):
        digits = str(part.width.value)
    else:
        return "%s"
    return f"%{part.flags}{digits}{'d' if is_signed or part.conversion == 'u' else part.conversion}"


TEXTS: dict[type[ops.PrintOp], Callable[[Maker, Any], Text]] = {
    ops.Literal: _literal,
    ops.String: _string,
    ops.KernelString: _kernel_string,
    ops.Flags: _flags,
    ops.Symbolic: _symbolic,
    ops.PickText: _pick_text,
    ops.Hex: _hex,
    ops.Numbers: _numbers,
    ops.Bitmap: _bitmap,
    ops.SymbolText: _symbol,
    ops.Character: _character,
    ops.Padded: _padded,
    ops.Number: _number_text,
    ops.IfText: _if_text,
    ops.Joined: _joined,
    ops.WithoutNewline: _without_newline,
    ops.Call: _call,
}
