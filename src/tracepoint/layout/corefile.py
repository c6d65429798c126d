"""Where memory stands in a core file, such as /proc/kcore."""

from __future__ import annotations

import struct

# Variables of the kernel that print formats read, and that stay as they are from its start to its end.
LASTING_VARIABLES = ("vmemmap_base", "page_offset_base", "phys_base")
_PT_LOAD = 1


def core_offset(head: bytes, address: int) -> int | None:
    """Return the offset of the memory at an address in a core file, such as /proc/kcore, or None.

    `head` are the first bytes of the file, with its program headers; 64-bit, of this machine's byte order.
    """
    if len(head) < 64 or head[:5] != b"\x7fELF\x02":
        return None
    order = ">" if head[5] == 2 else "<"
    table, entry_size, count = (
        *struct.unpack_from(order + "Q", head, 32),
        *struct.unpack_from(order + "HH", head, 54),
    )
    for index in range(count):
        at = table + index * entry_size
        if entry_size < 56 or at + 56 > len(head):
            break
        kind, offset, start, size = (
            *struct.unpack_from(order + "I", head, at),
            *struct.unpack_from(order + "QQ8xQ", head, at + 8),
        )
        if kind == _PT_LOAD and start <= address < start + size:
            return int(offset + address - start)
    return None
