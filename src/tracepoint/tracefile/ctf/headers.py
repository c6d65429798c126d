"""The headers of events: what they say of the event and of its time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracepoint.tracefile.ctf.bits import order_of
from tracepoint.tracefile.ctf.types import CtfEnum, CtfInteger, CtfStruct, CtfVariant
from tracepoint.tracefile.ctf.values import ValueReaders

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.tracefile.ctf.bits import PacketBits
    from tracepoint.tracefile.ctf.types import CtfType

    Path = tuple[str, ...]
    ReadHeader = Callable[[PacketBits], Any]


class HeaderReaders(ValueReaders):
    """Makes functions that read the header of an event: what it says of id and time goes into `bits`."""

    def integer(self, kind: CtfInteger, path: Path) -> Callable[[PacketBits], Any]:
        """Return the function that reads an integer and takes it for what its name and its clock say."""
        read = super().integer(kind, path)
        size = kind.size
        if kind.clock or path[-1] == "timestamp":

            def tell(bits: PacketBits) -> None:
                bits.cycles = extended(bits.cycles, read(bits), size)

            return tell
        if path[-1] == "id":

            def choose(bits: PacketBits) -> int:
                number: int = read(bits)
                bits.event_id = number
                return number

            return choose
        return read


def quick_header(kind: CtfType, read: ReadHeader, *, is_big_endian: bool) -> ReadHeader | None:
    """Return a function that reads LTTng's headers of one word, None for a header of another form.

    The word has an id, then a time.  An id that stands for a longer header is left to `read`.
    """
    match kind:
        case CtfStruct(
            fields=(
                ("id", CtfEnum(container=number, names=((name, low, high), *_))),
                (
                    _,
                    CtfVariant(tag=("id",), options=((option, CtfStruct(fields=(("timestamp", time),))), *_)),
                ),
            )
        ) if isinstance(time, CtfInteger) and name == option:
            sizes, aligns = (number.size, time.size), (number.align, time.align)
            are_bits = sizes == (5, 27) and aligns == (1, 1)
            are_bytes = sizes == (16, 32) and aligns == (8, 8)
            is_plain = all(one.is_big_endian is None and not one.is_signed for one in (number, time))
            if is_plain and time.clock and (are_bits or are_bytes):
                return _word_header(sizes, (low, high), kind.align, read, is_big_endian=is_big_endian)
    return None


def _word_header(
    sizes: tuple[int, int],
    short: tuple[int, int],
    align: int,
    read: ReadHeader,
    *,
    is_big_endian: bool,
) -> ReadHeader:
    """Return the function that reads an id and a time of these bits from one word, for the ids `short`."""
    n_bytes, order = sum(sizes) // 8, order_of(is_big_endian=is_big_endian)
    id_at, time_at = (sizes[1], 0) if is_big_endian else (0, sizes[0])
    id_mask, time_mask, step = (1 << sizes[0]) - 1, (1 << sizes[1]) - 1, 1 << sizes[1]
    low, high = short
    align = max(align, 8)

    def read_word(bits: PacketBits) -> None:
        at = bits.at
        word = int.from_bytes(bits.take(align, n_bytes), order)
        number = word >> id_at & id_mask
        if not low <= number <= high:
            bits.at = at
            read(bits)
            return
        bits.event_id = number
        cycles = bits.cycles
        found = (cycles & -step) | (word >> time_at & time_mask)
        bits.cycles = found + step if found < cycles else found

    return read_word


def extended(cycles: int, value: int, size: int) -> int:
    """Return the time of a clock whose lowest bits are `value`, at or after the time `cycles`.

    >>> hex(extended(0x1FE, 0x01, 8)), hex(extended(0x1FE, 0xFF, 8))
    ('0x201', '0x1ff')
    """
    if size == 64:
        return value
    step = 1 << size
    found = cycles - cycles % step + value % step
    return found + step if found < cycles else found
