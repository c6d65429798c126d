"""The `%p` family: one entry an extension, as lib/vsprintf.c: pointer() dispatches them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.printk import addresses
from tracepoint.printk.conversion import ABSENT, format_number, format_text, split_width
from tracepoint.printk.errnames import ERROR_NAMES
from tracepoint.printk.facts import UnknownPartError
from tracepoint.printk.values import IntValue, Record, Value, memory_of, take, text_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.printk.conversion import Conversion
    from tracepoint.printk.evaluate import Evaluator
    from tracepoint.printk.values import Location

    Text = Callable[[Record], str]
    Number = Callable[[Record], int]

_MAX_ERRNO = 4095


@dataclass(frozen=True, slots=True)
class PointerArgument:
    """One `%p...` with its argument: flags, width and precision readers, ABI."""

    letters: str
    flags: str
    width: Number
    precision: Number
    value: Value
    long_size: int
    is_big_endian: bool

    @property
    def where(self) -> Callable[[Record], Location | None]:
        """The memory that it points to."""
        return memory_of(self.value)

    @property
    def address(self) -> Number:
        """The address itself, for extensions that print or look it up."""
        if isinstance(self.value, IntValue):
            return self.value.read

        def read(_: Record) -> int:
            raise UnknownPartError("the address of a part of the record")

        return read

    def pad(self, record: Record, text: str) -> str:
        """Pad as the conversion's width asks."""
        flags, width = split_width(self.width(record), self.flags)
        return format_text(text, flags, width, self.precision(record))

    def integer(self, data: bytes, *, is_signed: bool = False) -> int:
        """Read an integer in the record's byte order."""
        return int.from_bytes(data, "big" if self.is_big_endian else "little", signed=is_signed)


def _of_bytes(size: int, make: Callable[[PointerArgument, bytes], str]) -> Callable[[PointerArgument], Text]:
    """Make the compiler of an extension that shows a fixed number of bytes."""

    def compile_it(argument: PointerArgument) -> Text:
        where = argument.where

        def read(record: Record) -> str:
            place = where(record)
            if place is None:
                return argument.pad(record, "(null)")
            return argument.pad(record, make(argument, take(place, size)))

        return read

    return compile_it


# -- plain addresses --------------------------------------------------------------------------


def _address_text(argument: PointerArgument, record: Record, address: int) -> str:
    flags, width = split_width(argument.width(record), argument.flags)
    if width == ABSENT:
        width, flags = 2 * argument.long_size, flags + "0"
    return format_number(address, "p", flags, width, argument.precision(record))


def _plain(argument: PointerArgument) -> Text:
    """`%p`: the address in full width; with hashing the kernel shows another number."""
    address = argument.address
    top = (1 << 8 * argument.long_size) - _MAX_ERRNO
    mask = (1 << 8 * argument.long_size) - 1

    def read(record: Record) -> str:
        number = address(record) & mask
        if record.facts.hash_pointers and number and number < top:
            record.note("the kernel shows a hash where this line shows an address (%p)")
        return _address_text(argument, record, number)

    return read


def _raw(argument: PointerArgument) -> Text:
    """`%px`: never hashed."""
    address = argument.address
    mask = (1 << 8 * argument.long_size) - 1
    return lambda record: _address_text(argument, record, address(record) & mask)


def _restricted(argument: PointerArgument) -> Text:
    """`%pK`: by kptr_restrict; 1 is taken as read by a privileged process."""
    plain, raw = _plain(argument), _raw(argument)

    def read(record: Record) -> str:
        if record.facts.kptr_restrict == 0:
            return plain(record)
        return raw(record) if record.facts.kptr_restrict == 1 else _address_text(argument, record, 0)

    return read


def _error(argument: PointerArgument) -> Text:
    """`%pe`: the name of an error pointer, anything else as `%p`."""
    address, plain = argument.address, _plain(argument)
    bits = 8 * argument.long_size

    def read(record: Record) -> str:
        number = address(record) & ((1 << bits) - 1)
        code = (1 << bits) - number
        if not 0 < code <= _MAX_ERRNO:
            return plain(record)
        name = ERROR_NAMES.get(code)
        if name is not None:
            return argument.pad(record, f"-{name}")
        flags, width = split_width(argument.width(record), argument.flags)
        return format_number(-code, "d", flags, width, argument.precision(record))

    return read


# -- symbols ----------------------------------------------------------------------------------


def symbol_text(record: Record, address: int, letters: str) -> str:
    """Return an address as `%pS`, `%ps` or `%pB` do (kernel/kallsyms.c: __sprint_symbol())."""
    table = record.facts.kallsyms
    if table is None:
        record.note("symbols are not known (no kallsyms): addresses are shown instead")
        return f"0x{address:x}"
    back = 1 if letters[0] == "B" else 0
    found = table.lookup(address - back)
    if found is None:
        return f"0x{address:x}"
    if not found.is_sure:
        raise UnknownPartError(f"whether {address:#x}, after module {found.module}, is of it")
    text = found.name
    if letters.endswith("b"):
        record.note("build ids of symbols are not known")
    if letters[0] != "s":
        if found.size is None:
            raise UnknownPartError(f"the size of the symbol {found.name} [{found.module}]")
        text += f"+0x{found.offset + back:x}/0x{found.size:x}"
    return f"{text} [{found.module}]" if found.module else text


def _symbol(argument: PointerArgument) -> Text:
    address = argument.address
    mask = (1 << 8 * argument.long_size) - 1
    return lambda record: argument.pad(record, symbol_text(record, address(record) & mask, argument.letters))


# -- things in memory ---------------------------------------------------------------------------


def _sockaddr(argument: PointerArgument) -> Text:
    where = argument.where

    def read(record: Record) -> str:
        place = where(record)
        if place is None:
            return argument.pad(record, "(null)")
        data = place[0][max(place[1], 0) : place[1] + 28]
        text = addresses.sockaddr_text(data, argument.letters, is_big_endian=argument.is_big_endian)
        if text is None or len(data) < 2:
            raise UnknownPartError("a socket address that the record holds in part only")
        return argument.pad(record, text)

    return read


def _hex(argument: PointerArgument) -> Text:
    """`%*ph`: as many bytes as the width says, at most 64, one without a width."""
    where = argument.where

    def read(record: Record) -> str:
        flags, width = split_width(argument.width(record), argument.flags)
        if width == 0:
            return ""
        place = where(record)
        if place is None:
            return format_text("(null)", flags, width)
        return addresses.hex_text(take(place, min(width, 64) if width > 0 else 1), argument.letters)

    return read


def _bitmap(argument: PointerArgument) -> Text:
    where = argument.where
    long_size, is_big_endian = argument.long_size, argument.is_big_endian

    def read(record: Record) -> str:
        n_bits = max(split_width(argument.width(record), "")[1], 0)
        place = where(record)
        if place is None:
            return "(null)"
        size = -(-n_bits // (8 * long_size)) * long_size
        number = addresses.bitmap_number(take(place, size), n_bits, long_size, is_big_endian=is_big_endian)
        if argument.letters == "bl":
            return addresses.bitmap_list(number)
        return addresses.bitmap_text(number, n_bits)

    return read


def _fourcc(argument: PointerArgument, data: bytes) -> str:
    code = argument.integer(data)
    shown = code & 0x7FFFFFFF
    characters = [shown >> shift & 0xFF for shift in (0, 8, 16, 24)]
    letters = "".join(chr(c) if 0x20 <= c < 0x7F else "." for c in characters)
    order = "big" if code >> 31 else "little"
    return f"{letters} {order}-endian (0x{code:08x})"


def _physical(argument: PointerArgument) -> Text:
    """`%pa`, `%pap`, `%pad`: phys_addr_t or dma_addr_t by reference; both of 8 bytes here."""
    where = argument.where

    def read(record: Record) -> str:
        place = where(record)
        if place is None:
            return argument.pad(record, "(null)")
        if argument.long_size == 4:
            raise UnknownPartError("the size of phys_addr_t")
        return f"0x{argument.integer(take(place, 8)):016x}"

    return read


def _escaped(argument: PointerArgument) -> Text:
    where = argument.where

    def read(record: Record) -> str:
        width = split_width(argument.width(record), "")[1]
        if width == 0:
            return ""
        place = where(record)
        if place is None:
            return argument.pad(record, "(null)")
        if argument.letters != "E":
            raise UnknownPartError(f"the escapes of %p{argument.letters}")
        return "".join(map(_escape, take(place, width if width > 0 else 1)))

    return read


_ESCAPES = {10: "\\n", 13: "\\r", 9: "\\t", 11: "\\v", 12: "\\f", 7: "\\a", 27: "\\e", 0: "\\0"}


def _escape(byte: int) -> str:
    # lib/string_helpers.c: string_escape_mem() with ESCAPE_ANY_NP: printable bytes stay, those of
    # latin-1 included (lib/ctype.c).
    if 0x20 <= byte < 0x7F or byte >= 0xA0:
        return chr(byte)
    return _ESCAPES.get(byte) or f"\\{byte:03o}"


def _time(argument: PointerArgument) -> Text:
    from tracepoint.printk.times import rtc_text, time64_text  # noqa: PLC0415  seldom used

    size, make = (36, rtc_text) if argument.letters.startswith("tR") else (8, time64_text)

    def show(held: PointerArgument, data: bytes) -> str:
        return make(data, held.letters[2:], is_big_endian=held.is_big_endian)

    return _of_bytes(size, show)(argument)


def _user_string(argument: PointerArgument) -> Text:
    read = text_of(argument.value)
    return lambda record: argument.pad(record, _or_null(read(record)))


def _or_null(text: str | None) -> str:
    return "(null)" if text is None else text


def _ip4(argument: PointerArgument, data: bytes) -> str:
    return addresses.ip4_text(data, argument.letters, is_big_endian=argument.is_big_endian)


_EXACT: dict[str, Callable[[PointerArgument], Text]] = {
    "": _plain,
    "x": _raw,
    "K": _restricted,
    "e": _error,
    "b": _bitmap,
    "bl": _bitmap,
    "4cc": _of_bytes(4, _fourcc),
    "a": _physical,
    "ap": _physical,
    "ad": _physical,
    "ks": _user_string,
    "us": _user_string,
}
_BY_FIRST: dict[str, Callable[[PointerArgument], Text]] = {
    "S": _symbol,
    "s": _symbol,
    "B": _symbol,
    "h": _hex,
    "E": _escaped,
    "t": _time,
    "M": _of_bytes(6, lambda argument, data: addresses.mac_text(data, argument.letters)),
    "m": _of_bytes(6, lambda argument, data: addresses.mac_text(data, argument.letters)),
    "U": _of_bytes(16, lambda argument, data: addresses.uuid_text(data, argument.letters)),
}
_BY_TWO: dict[str, Callable[[PointerArgument], Text]] = {
    "I4": _of_bytes(4, _ip4),
    "i4": _of_bytes(4, _ip4),
    "I6": _of_bytes(
        16,
        lambda argument, data: (
            addresses.ip6_compressed(data) if argument.letters == "I6c" else addresses.ip6_text(data)
        ),
    ),
    "i6": _of_bytes(16, lambda _, data: addresses.ip6_text(data, colons=False)),
    "IS": _sockaddr,
    "iS": _sockaddr,
}


def _maker(letters: str) -> Callable[[PointerArgument], Text] | None:
    return _EXACT.get(letters) or _BY_TWO.get(letters[:2]) or _BY_FIRST.get(letters[:1])


def raw_pointer_text(argument: PointerArgument) -> Text:
    """Return the text of a pointer that is shown by its address: `%p`, `%px`, `%pS` and their like."""
    return (_maker(argument.letters) or _plain)(argument)


def compile_pointer(
    evaluator: Evaluator, conversion: Conversion, width: Number, precision: Number, value: Value
) -> Text:
    """Compile one `%p...`; what shows kernel memory (`%pd`, `%pV`, `%pg`) raises when it is read."""
    letters = conversion.letters
    argument = PointerArgument(
        letters, conversion.flags, width, precision, value, evaluator.long_size, evaluator.is_big_endian
    )
    maker = _maker(letters)
    if maker is not None:
        return maker(argument)
    read = evaluator.unknown(f"%p{letters}, which shows memory of the kernel").read
    return lambda record: str(read(record))
