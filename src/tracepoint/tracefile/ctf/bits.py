"""Values at bits of a packet: where the reader is, and functions that read one type from there."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Literal

from tracepoint.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.tracefile.ctf.types import CtfFloat, CtfInteger
    from tracepoint.tracefile.filebytes import FileBytes

    ReadInteger = Callable[["PacketBits"], int]
    Order = Literal["big", "little"]

#: What one record may have: a page holds 16 KiB.
MAX_ELEMENTS = 1 << 16


class PacketBits:
    """A place in a packet: `at` and `end` are bits from its first byte, which is `base` in `data`.

    `place` is where `data` begins in the file.

    `numbers` holds the integers that lengths and tags refer to, `comm` the name of a task; `n_left` counts
    the elements that an event may still have; `cycles` and `event_id` are what its header says.
    """

    __slots__ = ("at", "base", "comm", "cycles", "data", "end", "event_id", "n_left", "numbers", "place")

    def __init__(self, data: bytes | FileBytes) -> None:
        self.data = data
        self.place = self.base = self.at = self.end = 0
        self.cycles = self.event_id = 0
        self.numbers: dict[tuple[str, ...], int] = {}
        self.comm: bytes | None = None
        self.n_left = MAX_ELEMENTS

    def skip(self, align: int, n_bits: int) -> int:
        """Go to an alignment and pass over bits; return where they begin."""
        at = (self.at + align - 1) & -align
        end = at + n_bits
        if end > self.end:
            raise self.wrong("an event goes on after the content of its packet")
        self.at = end
        return at

    def take(self, align: int, n_bytes: int) -> bytes:
        """Pass over whole bytes, at an alignment of at least 8, and return them."""
        # As skip() does, which this is called as often as: a call would take a fifth more.
        at = (self.at + align - 1) & -align
        self.at = at + 8 * n_bytes
        if self.at > self.end:
            raise self.wrong("an event goes on after the content of its packet")
        start = self.base + (at >> 3)
        return self.data[start : start + n_bytes]

    def string(self) -> bytes:
        """Pass over a string and its NUL, and return it without."""
        start = self.base + (self.skip(8, 0) >> 3)
        stop = self.data.find(b"\0", start, self.base + (self.end >> 3))
        if stop < 0:
            raise self.wrong("a string that does not end in its packet")
        self.at = (stop + 1 - self.base) << 3
        return self.data[start:stop]

    def element(self) -> None:
        """Count an element of an array."""
        self.n_left -= 1
        if self.n_left < 0:
            raise self.wrong(f"an event with more than {MAX_ELEMENTS} elements of arrays")

    def wrong(self, reason: str) -> DecodeError:
        """Make the error that says what is wrong here."""
        return DecodeError(reason, offset=self.place + self.base + (self.at >> 3))


def order_of(*, is_big_endian: bool) -> Order:
    """Return the name of a byte order."""
    return "big" if is_big_endian else "little"


def integer_reader(kind: CtfInteger, *, is_big_endian: bool) -> ReadInteger:
    """Return the function that reads an integer; `is_big_endian` is the byte order of the trace."""
    is_big = is_big_endian if kind.is_big_endian is None else kind.is_big_endian
    size, align, is_signed = kind.size, kind.align, kind.is_signed
    order = order_of(is_big_endian=is_big)
    if align % 8 == 0 and size % 8 == 0:
        n_bytes, from_bytes = size // 8, int.from_bytes
        return lambda bits: from_bytes(bits.take(align, n_bytes), order, signed=is_signed)
    mask, top = (1 << size) - 1, 1 << (size - 1) if is_signed else 0

    def read(bits: PacketBits) -> int:
        at = bits.skip(align, size)
        first, last = at >> 3, (at + size + 7) >> 3
        word = int.from_bytes(bits.data[bits.base + first : bits.base + last], order)
        # The first bit is the lowest of a byte in little-endian traces, and the highest in big-endian ones.
        word = word >> (8 * last - at - size if is_big else at & 7) & mask
        return word - ((word & top) << 1)

    return read


def float_reader(kind: CtfFloat, *, is_big_endian: bool) -> Callable[[PacketBits], float]:
    """Return the function that reads a floating point number."""
    is_big = is_big_endian if kind.is_big_endian is None else kind.is_big_endian
    unpack = struct.Struct((">" if is_big else "<") + ("f" if kind.size == 32 else "d")).unpack
    align, n_bytes = kind.align, kind.size // 8

    def read(bits: PacketBits) -> float:
        number: Any = unpack(bits.take(align, n_bytes))[0]
        return float(number)

    return read
