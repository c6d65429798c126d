"""Columns of numbers in a page: one compressed block in base64, and where each column is in it."""

from __future__ import annotations

import base64
import sys
import zlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterable

# Of a page of the largest size each level above costs seconds, and saves a hundredth.
_LEVEL = 6
_SIZES = {"B": 1, "H": 2, "I": 4}


class Pack:
    """Columns that are added one after the other; `add` returns what the page's script finds one by.

    >>> from array import array
    >>> pack = Pack()
    >>> pack.add(array("H", [1, 256]))
    ['H', 0, 2]
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, numbers: array[int]) -> list[Any]:
        """Add a column of 8, 16 or 32 bits: the first bytes of all numbers, then the second, and so on."""
        size = _SIZES[numbers.typecode]
        if sys.byteorder == "big":
            numbers = numbers[:]
            numbers.byteswap()
        data = numbers.tobytes()
        place = [numbers.typecode, self._size, len(numbers)]
        self._parts += [data[byte::size] for byte in range(size)]
        self._size += len(data)
        return place

    def add_varints(self, numbers: Iterable[int]) -> list[Any]:
        """Add a column of numbers from 0 on that need few bytes each: seven bits a byte, the lowest first."""
        data = bytearray()
        n = 0
        for number in numbers:
            n += 1
            value = number
            while value > 127:
                data.append(value & 127 | 128)
                value >>= 7
            data.append(value)
        place = ["v", self._size, n, len(data)]
        self._parts.append(bytes(data))
        self._size += len(data)
        return place

    def text(self) -> str:
        """Return the block as text."""
        return base64.b64encode(zlib.compress(b"".join(self._parts), _LEVEL)).decode()
