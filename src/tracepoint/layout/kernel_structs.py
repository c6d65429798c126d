"""Structs of the kernel that records hold whole, or that formats and assignments look into: the one list.

Their layout is part of the user ABI or never changed.  Facts learnt from include/uapi/linux/in.h, in6.h,
socket.h, time_types.h, errqueue.h and uuid.h; include/linux/uidgid.h, uuid.h, time64.h, types.h and
swapops.h; include/rdma/ib_verbs.h, net/sctp/structs.h, drm/drm_rect.h; fs/afs/afs.h; page*.h of asm.
What depends on the configuration is not here: it needs BTF or the headers.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from tracepoint.errors import LayoutError
from tracepoint.layout.structs import Placed, StructLayout, lay_out
from tracepoint.source.ctype import CType
from tracepoint.source.cvalue import int_type_of
from tracepoint.source.lexer import lex
from tracepoint.source.structs import StructText, read_struct
from tracepoint.source.text import SourceFile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.source.lexer import Token
    from tracepoint.source.structs import StructBody

_UUID = "u8 b[16];"
_STORAGE = "union { struct { u16 ss_family; char __data[126]; }; void *__align; };"

STRUCTS = {
    "struct in_addr": "__be32 s_addr;",
    # `s6_addr` and its like are macros for members of `in6_u`; types without a tag have one here.
    "struct in6_addr": """union { union in6_u in6_u; u8 s6_addr[16]; __be16 s6_addr16[8];
        __be32 s6_addr32[4]; };""",
    "union in6_u": "u8 u6_addr8[16]; __be16 u6_addr16[8]; __be32 u6_addr32[4];",
    "struct sockaddr": "u16 sa_family; char sa_data[14];",
    "struct sockaddr_in": "u16 sin_family; __be16 sin_port; struct in_addr sin_addr; u8 __pad[8];",
    "struct sockaddr_in6": """u16 sin6_family; __be16 sin6_port; __be32 sin6_flowinfo;
        struct in6_addr sin6_addr; u32 sin6_scope_id;""",
    "struct sockaddr_storage": _STORAGE,
    "struct __kernel_sockaddr_storage": _STORAGE,
    "union sctp_addr": "struct sockaddr_in v4; struct sockaddr_in6 v6; struct sockaddr sa;",
    "struct sock_extended_err": """u32 ee_errno; u8 ee_origin; u8 ee_type; u8 ee_code; u8 ee_pad; u32 ee_info;
        u32 ee_data;""",
    "struct __kernel_timespec": "s64 tv_sec; s64 tv_nsec;",
    "struct timespec64": "s64 tv_sec; long tv_nsec;",
    "struct mac_addr": "u8 addr[6];",
    "struct afs_fid": "u64 vid; u64 vnode; u32 vnode_hi; u32 unique;",
    "struct drm_rect": "int x1; int y1; int x2; int y2;",
    "union ib_gid": "u8 raw[16]; struct ib_gid_global global;",
    "struct ib_gid_global": "__be64 subnet_prefix; __be64 interface_id;",
    # Its other member names the bits.
    "union ifs_status": "u64 data;",
    **dict.fromkeys(("uuid_t", "guid_t", "uuid_le", "uuid_be"), _UUID),
    "kuid_t": "uid_t val;",
    "kgid_t": "gid_t val;",
    "kprojid_t": "projid_t val;",
    "atomic_t": "int counter;",
    "swp_entry_t": "unsigned long val;",
}
#: What has this form where a long has 8 bytes; others choose by their configuration.
_WORD64 = {
    "pte_t": "pteval_t pte;",
    "pmd_t": "pmdval_t pmd;",
    "pud_t": "pudval_t pud;",
    "pgd_t": "pgdval_t pgd;",
}


@cache
def kernel_struct(name: str, long_size: int = 8) -> StructBody | None:
    """Return the members of a struct, union or typedef for one; None when it is not in the list.

    `long_size` is 4 or 8 bytes.

    >>> [member.name for member in kernel_struct("struct timespec64").members]
    ['tv_sec', 'tv_nsec']
    """
    text = STRUCTS.get(name)
    if text is None and long_size == 8:
        text = _WORD64.get(name)
    if text is None:
        return None
    keyword = "union" if name.startswith("union ") else "struct"
    tokens = lex(SourceFile(f"<{name}>", f"{keyword} {{ {text} }};"))
    return read_struct(StructText(tuple(tokens[:-1])))


@cache
def kernel_layout(name: str, long_size: int = 8) -> StructLayout | None:
    """Return the layout of a struct of the list, where 64-bit integers are aligned to 8 bytes; else None.

    `long_size` is 4 or 8 bytes.

    >>> layout = kernel_layout("struct sockaddr_in6", 4)
    >>> layout.size, layout.members["sin6_addr"].offset, kernel_layout("struct page")
    (28, 8, None)
    """
    body = kernel_struct(name, long_size)
    return None if body is None else lay_out(name, body, _Listed(long_size))


class _Listed:
    """Measures with nothing but the list and the integer types."""

    def __init__(self, long_size: int) -> None:
        self.long_size = long_size
        self.bodies: dict[str, StructBody] = {}

    def layout(self, ctype: CType) -> StructLayout | None:
        body = self.bodies.get(ctype.base)
        return kernel_layout(ctype.base, self.long_size) if body is None else lay_out(ctype.base, body, self)

    def size_and_align(self, ctype: CType) -> tuple[int, int]:
        kind = int_type_of(ctype, self.long_size)
        if kind is not None:
            return kind.size, kind.size
        inner = self.layout(ctype)
        if inner is None:
            raise LayoutError(f"the size of '{ctype}' is not known")
        return inner.size, inner.align

    def number(self, tokens: Sequence[Token]) -> int:
        return int(tokens[0].text)

    def members_of(self, ctype: CType) -> Mapping[str, Placed]:
        inner = self.layout(ctype)
        return inner.members if inner is not None else {}

    def name_body(self, name: str, body: StructBody) -> CType:
        self.bodies[name] = body
        return CType(name)
