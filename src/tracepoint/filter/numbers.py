"""Numbers, CPU lists and character classes as the kernel reads them."""

from __future__ import annotations

import re

U64_MAX = (1 << 64) - 1
S64_MIN = -(1 << 63)
# No machine that runs Linux has more: CONFIG_NR_CPUS.
MAX_CPUS = 8192

SPACE = frozenset(b" \t\n\v\f\r\xa0")
DIGITS = frozenset(b"0123456789")
# lib/ctype.c counts the letters of Latin-1 too, but for the multiplication and division signs.
ALNUM = (
    DIGITS
    | frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    | (frozenset(range(0xC0, 0x100)) - {0xD7, 0xF7})
)
NAME = ALNUM | frozenset(b"_")

_DIGITS_OF = {8: re.compile(rb"[0-7]+"), 10: re.compile(rb"[0-9]+"), 16: re.compile(rb"[0-9a-fA-F]+")}
_HEX = re.compile(rb"0[xX](?=[0-9a-fA-F])")


def read_u64(text: bytes) -> int | None:
    """Return the value of `text` as kstrtoull() with base 0 reads it, or None where it refuses.

    >>> read_u64(b"0x10"), read_u64(b"010"), read_u64(b"08"), read_u64(b"-1")
    (16, 8, None, None)
    """
    text = text.removeprefix(b"+")
    base = 10
    if hexadecimal := _HEX.match(text):
        base, text = 16, text[hexadecimal.end() :]
    elif text.startswith(b"0"):
        base = 8
    digits = _DIGITS_OF[base].match(text)
    if digits is None or text[digits.end() :] not in (b"", b"\n"):
        return None
    value = int(digits[0], base)
    return value if value <= U64_MAX else None


def read_s64(text: bytes) -> int | None:
    """Return the value of `text` as kstrtoll() with base 0 reads it, or None where it refuses.

    >>> read_s64(b"-1"), read_s64(b"0xffffffffffffffff"), read_s64(b"--1")
    (-1, None, None)
    """
    if text.startswith(b"-"):
        value = None if text[1:2] == b"+" else read_u64(text[1:])
        return None if value is None or -value < S64_MIN else -value
    value = read_u64(text)
    return value if value is not None and value <= -(S64_MIN + 1) else None


_REGION = re.compile(rb"(?P<all>all)|(?P<start>N|[0-9]+)(?:-(?P<end>N|[0-9]+))?", re.IGNORECASE)
_PATTERN = re.compile(rb":(?P<off>N|[0-9]+)/(?P<group>N|[0-9]+)")
_GAP = b" \t\n\v\f\r\xa0,"


def read_cpulist(text: bytes, n_cpus: int) -> int | None:
    """Return the bits of a CPU list such as `0-3,7` or `0-31:2/4`, or None where it is wrong.

    Kernel: bitmap_parselist() in lib/bitmap.c.

    >>> bin(read_cpulist(b"0-1,3", 8)), read_cpulist(b"8", 8), bin(read_cpulist(b"all", 2))
    ('0b1011', None, '0b11')
    """
    mask = 0
    rest = text.split(b"\n", 1)[0].lstrip(_GAP)
    while rest:
        region = _REGION.match(rest)
        if region is None or region[0].startswith(b"n"):
            return None
        last = n_cpus - 1
        start, end = (0, last) if region["all"] else (_cpu(region["start"], last), 0)
        if not region["all"]:
            end = _cpu(region["end"], last) if region["end"] else start
        rest = rest[region.end() :]
        offset = group = end + 1
        pattern = _PATTERN.match(rest) if region["all"] or region["end"] else None
        if pattern is not None:
            offset, group = _cpu(pattern["off"], last), _cpu(pattern["group"], last)
            rest = rest[pattern.end() :]
        elif rest and rest[:1] not in _GAP:
            return None
        if start > end or group == 0 or offset > group or end >= n_cpus:
            return None
        for first in range(start, end + 1, group):
            for cpu in range(first, min(first + offset, end + 1)):
                mask |= 1 << cpu
        rest = rest.lstrip(_GAP)
    return mask


def _cpu(text: bytes, last: int) -> int:
    return last if text == b"N" else int(text)
