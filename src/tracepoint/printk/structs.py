"""Structs that print formats look into, and whose layout is part of the user ABI or never changes.

Each member is its offset and its C type; `sizeof` follows from `SIZES`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.layout.structs import Placed
from tracepoint.source.ctype import parse_ctype

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.layout.structs import StructLayout

    #: A struct or union by name.
    Layouts = Callable[[str], StructLayout | None]

_TEXT = {
    "struct in_addr": (4, "0 __be32 s_addr"),
    "struct in6_addr": (
        16,
        """0 struct in6_addr in6_u; 0 u8[16] s6_addr; 0 u8[16] u6_addr8; 0 __be16[8] s6_addr16;
        0 __be16[8] u6_addr16; 0 __be32[4] s6_addr32; 0 __be32[4] u6_addr32""",
    ),
    "struct sockaddr": (16, "0 u16 sa_family; 2 char[14] sa_data"),
    "struct sockaddr_in": (16, "0 u16 sin_family; 2 __be16 sin_port; 4 struct in_addr sin_addr"),
    "struct sockaddr_in6": (
        28,
        """0 u16 sin6_family; 2 __be16 sin6_port; 4 __be32 sin6_flowinfo; 8 struct in6_addr sin6_addr;
        24 u32 sin6_scope_id""",
    ),
    "struct sockaddr_storage": (128, "0 u16 ss_family"),
    "struct __kernel_sockaddr_storage": (128, "0 u16 ss_family"),
    "uuid_t": (16, "0 u8[16] b"),
    "guid_t": (16, "0 u8[16] b"),
    "struct timespec64": (16, "0 s64 tv_sec; 8 s64 tv_nsec"),
    "struct __kernel_timespec": (16, "0 s64 tv_sec; 8 s64 tv_nsec"),
    "kuid_t": (4, "0 u32 val"),
    "kgid_t": (4, "0 u32 val"),
    "kprojid_t": (4, "0 u32 val"),
    "union ib_gid": (16, "0 u8[16] raw"),
    "struct mac_addr": (6, "0 u8[6] addr"),
    "pte_t": (8, "0 u64 pte"),
    "pmd_t": (8, "0 u64 pmd"),
    "pud_t": (8, "0 u64 pud"),
    "pgd_t": (8, "0 u64 pgd"),
    "swp_entry_t": (8, "0 u64 val"),
}


def _read() -> tuple[dict[str, int], dict[str, dict[str, Placed]]]:
    sizes: dict[str, int] = {}
    members: dict[str, dict[str, Placed]] = {}
    for name, (size, text) in _TEXT.items():
        sizes[name] = size
        members[name] = {}
        for item in text.split(";"):
            offset, _, rest = item.strip().partition(" ")
            ctype, _, member = rest.rpartition(" ")
            members[name][member] = Placed(int(offset), parse_ctype(ctype))
    return sizes, members


SIZES, MEMBERS = _read()
