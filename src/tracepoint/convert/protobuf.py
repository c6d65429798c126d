"""Writing protocol buffers without schemas.

The wire format is that of https://protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

from functools import lru_cache

from tracepoint.wording import utf8

_U64 = (1 << 64) - 1
_VARINT, _BYTES = 0, 2


@lru_cache(1 << 16)
def varint(number: int) -> bytes:
    r"""Return a number as a varint; a negative one as int32 and int64 have it, in two's complement.

    >>> varint(300), len(varint(-1))
    (b'\xac\x02', 10)
    """
    number &= _U64
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def number_key(field: int) -> bytes:
    """Return what comes before a number in a message."""
    return varint(field << 3 | _VARINT)


def bytes_key(field: int) -> bytes:
    """Return what comes before the length of a text or message in another."""
    return varint(field << 3 | _BYTES)


def number(field: int, value: int) -> bytes:
    r"""Return a number with its key.

    >>> number(1, 150)
    b'\x08\x96\x01'
    """
    return number_key(field) + varint(value)


def message(field: int, data: bytes) -> bytes:
    """Return a message, or bytes, with its key and length."""
    return bytes_key(field) + varint(len(data)) + data


def text(field: int, value: str) -> bytes:
    r"""Return a text with its key; bytes that are not UTF-8 become U+FFFD.

    >>> text(2, "testing")
    b'\x12\x07testing'
    """
    return message(field, utf8(value))
