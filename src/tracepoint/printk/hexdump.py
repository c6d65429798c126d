"""Rows of hex as print_hex_dump() makes them (lib/hexdump.c: hex_dump_to_buffer())."""

from __future__ import annotations


def _row(data: bytes, row_size: int, group_size: int, *, has_ascii: bool, is_big_endian: bool) -> str:
    if len(data) % group_size or group_size & (group_size - 1):
        group_size = 1
    groups = []
    for at in range(0, len(data), group_size):
        group = data[at : at + group_size]
        groups.append((group if is_big_endian else group[::-1]).hex())
    text = " ".join(groups)
    if not has_ascii:
        return text
    column = row_size * 2 + row_size // group_size + 1
    printable = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in data)
    return f"{text:<{column}}{printable}"


def hex_dump(
    data: bytes,
    *,
    prefix: str = "",
    has_offset: bool = False,
    row_size: int = 16,
    group_size: int = 1,
    has_ascii: bool = False,
    is_big_endian: bool = False,
) -> str:
    r"""Return the rows of a hex dump, a newline after each.

    `row_size` is 16 or 32 bytes (anything else counts as 16), `group_size` 1, 2, 4 or 8 bytes
    shown as one number.

    >>> hex_dump(b"abcd", group_size=2, has_ascii=True)
    '6261 6463                                abcd\n'
    """
    if row_size not in (16, 32):
        row_size = 16
    if group_size not in (1, 2, 4, 8):
        group_size = 1
    rows = []
    for at in range(0, len(data), row_size):
        row = _row(
            data[at : at + row_size], row_size, group_size, has_ascii=has_ascii, is_big_endian=is_big_endian
        )
        where = f"{at:08x}: " if has_offset else ""
        rows.append(f"{prefix}{where}{row}\n")
    return "".join(rows)
