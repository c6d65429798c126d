"""Texts that the facts give for addresses, as a hash table that the C reader looks them up in."""

from __future__ import annotations

import struct

from tracepoint.printk.symbols import IP, REPORTED

#: How a text belongs to an address: as a string of the kernel, or as a symbol with these letters.
KERNEL_STRING = 1
_SYMBOLS = {IP: 2, "S": 3, "s": 4, "B": 5, REPORTED["S"]: 6, REPORTED["s"]: 7}
_SLOT = struct.Struct("=QIIII")
_HEAD = struct.Struct("=QQ")
_FACTOR = 0x9E3779B97F4A7C15
_U64 = (1 << 64) - 1
_MOST = 1 << 17


def symbol_style(letters: str) -> int:
    """Return how `%p` with letters shows a symbol, as a number; 0 when that is more than a text."""
    if letters == IP or letters in REPORTED.values():
        return _SYMBOLS[letters]
    return 0 if letters.endswith("b") else _SYMBOLS.get(letters[:1], 0)


class AddressTexts:
    """What addresses are shown as, by address and style; `packed` is the table.

    It grows with what the twin finds, but not without limit: then a record is left to the twin again.
    No symbol has an address below `lowest`.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[int, int], str] = {}
        self._n_missed = 0
        self.packed = b""
        self.lowest = 0

    def add(self, style: int, address: int, text: str) -> None:
        """Add a text that C did not know."""
        self._n_missed += 1
        if style and len(self._found) < _MOST:
            self._found[address, style] = text

    def pack(self) -> None:
        """Rebuild the table when an eighth of its size was missed since, repeated misses included."""
        n_found = len(self._found)
        if n_found and self._n_missed > n_found // 8:
            self.packed = self._table(1 << (2 * n_found - 1).bit_length())
            self._n_missed = 0

    def _table(self, n_slots: int) -> bytes:
        slots = bytearray(n_slots * _SLOT.size)
        data = bytearray()
        shift = 65 - n_slots.bit_length()
        for (address, style), text in self._found.items():
            at = ((address ^ style) * _FACTOR & _U64) >> shift
            while any(slots[at * _SLOT.size + 8 : at * _SLOT.size + 12]):
                at = (at + 1) % n_slots
            encoded = text.encode("latin-1", "replace")
            _SLOT.pack_into(slots, at * _SLOT.size, address, style, len(data), len(encoded), 0)
            data += encoded
        return _HEAD.pack(n_slots, self.lowest) + bytes(slots) + bytes(data)
