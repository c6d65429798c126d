"""C types for LTTng's field macros."""

from __future__ import annotations

import enum

from tracepoint.errors import SourceError
from tracepoint.source.ctype import parse_ctype
from tracepoint.source.cvalue import int_type_of

_NETWORK = frozenset(f"{prefix}be{bits}" for prefix in ("__", "") for bits in (16, 32, 64))
_LITTLE = frozenset(f"{prefix}le{bits}" for prefix in ("__", "") for bits in (16, 32, 64))
# Structs after a name of one word: include/linux/uuid.h, uidgid.h, types.h, include/linux/mm_types.h.
_STRUCTS = frozenset(
    "uuid_t guid_t uuid_le kuid_t kgid_t kprojid_t atomic_t atomic64_t atomic_long_t spinlock_t rwlock_t "
    "swp_entry_t pte_t pmd_t pud_t p4d_t pgd_t cpumask_t nodemask_t fsid_t sigset_t".split()
)


class LttngKind(enum.Enum):
    """What a value is to LTTng.

    `NETWORK` and `LITTLE` are integers whose byte order is not the machine's choice; `POINTER` is
    recorded as an unsigned long; `BYTES` is what has no name in CTF (structs, 128 bit integers) and
    is recorded byte by byte; `INTEGER` is all the rest, types with unknown names too.
    """

    INTEGER = "integer"
    NETWORK = "network"
    LITTLE = "little"
    POINTER = "pointer"
    BYTES = "bytes"


def kind_of(ctype: str) -> LttngKind:
    """Return what a value of type `ctype` is to LTTng.

    >>> kind_of("__be16"), kind_of("struct in6_addr"), kind_of("const char *")
    (<LttngKind.NETWORK: 'network'>, <LttngKind.BYTES: 'bytes'>, <LttngKind.POINTER: 'pointer'>)
    """
    try:
        parsed = parse_ctype(ctype)
    except SourceError:
        return LttngKind.INTEGER
    if parsed.pointers:
        return LttngKind.POINTER
    if parsed.base in _NETWORK:
        return LttngKind.NETWORK
    if parsed.base in _LITTLE:
        return LttngKind.LITTLE
    if parsed.array or parsed.base in _STRUCTS or parsed.base.startswith(("struct ", "union ")):
        return LttngKind.BYTES
    known = int_type_of(parsed)
    return LttngKind.BYTES if known is not None and known.size > 8 else LttngKind.INTEGER


def is_text(ctype: str) -> bool:
    """Return whether elements of this type are characters.

    >>> is_text("char"), is_text("unsigned char")
    (True, False)
    """
    try:
        parsed = parse_ctype(ctype)
    except SourceError:
        return False
    return parsed.base == "char" and not parsed.pointers


def is_byte(ctype: str) -> bool:
    """Return whether an element takes one byte, so that lengths in elements and in bytes are the same."""
    try:
        parsed = parse_ctype(ctype)
        known = int_type_of(parsed)
    except SourceError:
        return False
    return known is not None and known.size == 1 and not parsed.pointers
