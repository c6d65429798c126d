"""Addresses and identifiers as text: IPv4, IPv6, sockaddr, MAC, UUID, bytes, bitmaps (lib/vsprintf.c)."""

from __future__ import annotations

AF_INET, AF_INET6 = 2, 10
_UUID_ORDER = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
_GUID_ORDER = (3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15)


def ip4_text(data: bytes, letters: str = "I4", *, is_big_endian: bool = False) -> str:
    """Return four bytes as an IPv4 address: `i4` pads to three digits, `l` and host order reverse.

    >>> ip4_text(bytes([10, 0, 0, 1])), ip4_text(bytes([10, 0, 0, 1]), "i4")
    ('10.0.0.1', '010.000.000.001')
    """
    order = letters[2:3]
    if order == "l" or (order == "h" and not is_big_endian):
        data = data[::-1]
    return ".".join(f"{byte:03d}" if letters[0] == "i" else str(byte) for byte in data)


def ip6_text(data: bytes, *, colons: bool = True) -> str:
    """Return sixteen bytes as eight groups of four digits."""
    groups = [data[at : at + 2].hex() for at in range(0, 16, 2)]
    return (":" if colons else "").join(groups)


def ip6_compressed(data: bytes) -> str:
    """Return an IPv6 address in its short form (lib/vsprintf.c: ip6_compressed_string()).

    >>> ip6_compressed(bytes(15) + bytes([1]))
    '::1'
    """
    words = [int.from_bytes(data[at : at + 2], "big") for at in range(0, 16, 2)]
    is_mapped = words[:5] == [0] * 5 and words[5] == 0xFFFF
    is_isatap = (words[4] | 0x0200) == 0x0200 and words[5] == 0x5EFE
    n_words = 6 if is_mapped or is_isatap else 8
    start, length = _longest_zero_run(words[:n_words])
    tail = [ip4_text(data[12:])] if n_words == 6 else []
    if start < 0:
        return ":".join([f"{word:x}" for word in words[:n_words]] + tail)
    head = ":".join(f"{word:x}" for word in words[:start])
    rest = ":".join([f"{word:x}" for word in words[start + length : n_words]] + tail)
    return f"{head}::{rest}"


def _longest_zero_run(words: list[int]) -> tuple[int, int]:
    best, longest = -1, 1
    for start in range(len(words)):
        length = 0
        while start + length < len(words) and words[start + length] == 0:
            length += 1
        if length > longest:
            best, longest = start, length
    return best, longest


def sockaddr_text(data: bytes, letters: str, *, is_big_endian: bool) -> str | None:
    """Return a socket address as `%pIS` does, or None when `data` is too short for its family.

    Letters after `IS`: `p` port, `f` flow, `s` scope, `c` compressed.
    """
    order = "big" if is_big_endian else "little"
    family = int.from_bytes(data[:2], "big" if is_big_endian else "little")
    wants = letters[2:]
    port = int.from_bytes(data[2:4], "big")
    if family == AF_INET and len(data) >= 8:
        kind = letters[0] + "4" + next((c for c in reversed(wants) if c in "hnlb"), "")
        text = ip4_text(data[4:8], kind, is_big_endian=is_big_endian)
        return f"{text}:{port}" if "p" in wants else text
    if family == AF_INET6 and len(data) >= 28:
        address = data[8:24]
        is_short = letters[0] == "I" and "c" in wants
        text = ip6_compressed(address) if is_short else ip6_text(address, colons=letters[0] == "I")
        if any(letter in wants for letter in "pfs"):
            text = f"[{text}]"
        if "p" in wants:
            text += f":{port}"
        if "f" in wants:
            text += f"/{int.from_bytes(data[4:8], 'big') & 0x0FFFFFFF}"
        if "s" in wants:
            scope = int.from_bytes(data[24:28], "big" if order == "big" else "little")
            text += f"%{scope}"
        return text
    if family in (AF_INET, AF_INET6):
        return None
    return "(einval)"


def mac_text(data: bytes, letters: str) -> str:
    """Return six bytes as `%pM`, `%pMF`, `%pMR`, `%pm` or `%pmR`.

    >>> mac_text(bytes(range(6)), "MF")
    '00-01-02-03-04-05'
    """
    if letters.endswith("R"):
        data = data[::-1]
    if letters[0] == "m":
        return data.hex()
    return data.hex("-" if letters.endswith("F") else ":")


def uuid_text(data: bytes, letters: str) -> str:
    """Return sixteen bytes as `%pU[bBlL]`.

    >>> uuid_text(bytes(range(16)), "Ul")
    '03020100-0504-0706-0809-0a0b0c0d0e0f'
    """
    order = _GUID_ORDER if letters[1:] in ("l", "L") else _UUID_ORDER
    text = bytes(data[at] for at in order).hex()
    text = "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
    return text.upper() if letters[1:] in ("B", "L") else text


def bitmap_number(data: bytes, n_bits: int, long_size: int, *, is_big_endian: bool) -> int:
    """Return an array of unsigned long as one number of `n_bits` bits."""
    order = "big" if is_big_endian else "little"
    number = 0
    for index, at in enumerate(range(0, len(data), long_size)):
        word = int.from_bytes(data[at : at + long_size], "big" if order == "big" else "little")
        number |= word << (8 * long_size * index)
    return number & ((1 << n_bits) - 1)


def bitmap_text(number: int, n_bits: int) -> str:
    """Return a bitmap as `%*pb` does: groups of 32 bits, the first as short as it is.

    >>> bitmap_text(5, 40)
    '00,00000005'
    """
    if n_bits <= 0:
        return ""
    groups = []
    for low in range(0, n_bits, 32):
        width = min(32, n_bits - low)
        groups.append(f"{number >> low & ((1 << width) - 1):0{(width + 3) // 4}x}")
    return ",".join(reversed(groups))


def bitmap_list(number: int) -> str:
    """Return a bitmap as `%*pbl` does.

    >>> bitmap_list(0b11101)
    '0,2-4'
    """
    ranges = []
    bit = 0
    while number >> bit:
        if number >> bit & 1:
            low = bit
            while number >> bit & 1:
                bit += 1
            ranges.append(str(low) if bit == low + 1 else f"{low}-{bit - 1}")
        bit += 1
    return ",".join(ranges)
