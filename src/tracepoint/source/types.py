"""What the names of C types mean: the one table, and the integer types they come down to.

A name maps to a basic type (`unsigned long`), whose size and sign an ABI decides.  Facts learnt from
include/linux/types.h, include/uapi and arch/*/include.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class IntType:
    """An integer type: its size in bytes (1, 2, 4, 8 or 16) and whether it is signed."""

    size: int
    is_signed: bool

    def wrap(self, value: int) -> int:
        """Return the value that a store into this type keeps.

        >>> IntType(1, is_signed=True).wrap(200)
        -56
        """
        bits = 8 * self.size
        value &= (1 << bits) - 1
        if self.is_signed and value >> (bits - 1):
            value -= 1 << bits
        return value


CHAR, UCHAR = IntType(1, is_signed=True), IntType(1, is_signed=False)
SHORT, USHORT = IntType(2, is_signed=True), IntType(2, is_signed=False)
INT, UINT = IntType(4, is_signed=True), IntType(4, is_signed=False)
LLONG, ULLONG = IntType(8, is_signed=True), IntType(8, is_signed=False)
BOOL = UCHAR


class Basic(NamedTuple):
    """A basic integer type: bytes (0: those of a long), sign (None: the ABI decides), printk conversion."""

    size: int
    is_signed: bool | None
    conversion: str


BASIC = {
    "char": Basic(1, None, "%d"),
    "signed char": Basic(1, True, "%d"),
    "unsigned char": Basic(1, False, "%u"),
    "bool": Basic(1, False, "%d"),
    "short": Basic(2, True, "%d"),
    "unsigned short": Basic(2, False, "%u"),
    "int": Basic(4, True, "%d"),
    "unsigned int": Basic(4, False, "%u"),
    "long": Basic(0, True, "%ld"),
    "unsigned long": Basic(0, False, "%lu"),
    "long long": Basic(8, True, "%lld"),
    "unsigned long long": Basic(8, False, "%llu"),
    "__int128": Basic(16, True, ""),
    "unsigned __int128": Basic(16, False, ""),
}


def _names(table: dict[str, str]) -> dict[str, str]:
    return {name: basic for basic, names in table.items() for name in names.split()}


# What <linux/types.h> declares, so that every trace header has it.
_COMMON = _names(
    {
        "bool": "_Bool",
        "signed char": "s8 __s8 int8_t",
        "unsigned char": "u8 __u8 uint8_t u_int8_t unchar u_char",
        "short": "s16 __s16 int16_t",
        "unsigned short": "u16 __u16 uint16_t u_int16_t ushort u_short __le16 __be16 __sum16 umode_t",
        "int": "s32 __s32 int32_t pid_t key_t timer_t clockid_t mqd_t daddr_t __kernel_pid_t "
        "__kernel_timer_t __kernel_clockid_t __kernel_mqd_t __kernel_daddr_t",
        "unsigned int": "u32 __u32 uint32_t u_int32_t uint u_int __le32 __be32 __wsum __poll_t dev_t nlink_t "
        "uid_t gid_t gfp_t slab_flags_t fmode_t __kernel_dev_t __kernel_uid32_t __kernel_gid32_t",
        "long": "ssize_t ptrdiff_t intptr_t off_t clock_t suseconds_t __kernel_long_t __kernel_ssize_t "
        "__kernel_off_t __kernel_clock_t __kernel_suseconds_t",
        "unsigned long": "ulong u_long size_t uintptr_t pgoff_t ino_t irq_hw_number_t __kernel_size_t "
        "__kernel_ulong_t __kernel_ino_t",
        "long long": "s64 __s64 int64_t loff_t __kernel_loff_t __kernel_time64_t",
        "unsigned long long": "u64 __u64 uint64_t u_int64_t __le64 __be64 sector_t blkcnt_t",
    }
)
_OTHERS = _names(
    {
        "__int128": "s128",
        "unsigned __int128": "u128",
        "unsigned char": "blk_status_t xfs_dqtype_t",
        "unsigned short": "sa_family_t __kernel_sa_family_t",
        "int": "key_serial_t rwf_t __kernel_rwf_t dma_cookie_t",
        "unsigned int": "qid_t projid_t blk_opf_t blk_qc_t blk_mq_req_flags_t req_flags_t vm_fault_t "
        "oom_flags_t xa_mark_t errseq_t depot_stack_handle_t acpi_status rxrpc_seq_t rxrpc_serial_t "
        "ext4_lblk_t ext4_group_t xfs_agnumber_t xfs_agblock_t xfs_agino_t xfs_extlen_t xfs_dahash_t "
        "xfs_exntst_t xfs_btnum_t xfs_lookup_t xlog_tid_t",
        "long": "snd_pcm_sframes_t",
        "unsigned long": "kernel_ulong_t vm_flags_t aio_context_t snd_pcm_uframes_t gva_t",
        "long long": "ktime_t time64_t xfs_daddr_t xfs_lsn_t xfs_fsize_t xfs_off_t",
        "unsigned long long": "netdev_features_t gpa_t gfn_t hpa_t hfn_t kvm_pfn_t ext4_fsblk_t xfs_ino_t "
        "xfs_fsblock_t xfs_fileoff_t xfs_filblks_t",
        "void *": "fl_owner_t initcall_t xen_mc_callback_fn_t cap_user_header_t cap_user_data_t "
        "xfs_failaddr_t",
    }
)
#: Names for other types, whatever the architecture.
TYPEDEFS = _COMMON | _OTHERS
#: What they are with 64-bit longs.  On 32-bit machines bus addresses follow the configuration (PAE, LPAE),
#: and page-table values the architecture.
WORD64_TYPEDEFS = _names(
    {
        "unsigned long": "pteval_t pmdval_t pudval_t p4dval_t pgdval_t",
        "unsigned long long": "dma_addr_t phys_addr_t resource_size_t",
    }
)
#: The names that every trace header has through <linux/types.h>.
COMMON_TYPES = frozenset(_COMMON) - {"_Bool"} | {"bool", "dma_addr_t", "phys_addr_t", "resource_size_t"}
_BASICS = (
    {name: name for name in BASIC}
    | {name: basic for name, basic in TYPEDEFS.items() if basic in BASIC}
    | WORD64_TYPEDEFS
)
#: The words that types of integers are made of.
INTEGER_WORDS = frozenset(word for name in _BASICS for word in name.split()) | {"signed"}
_CONVERSIONS = {"size_t": "%zu", "ssize_t": "%zd", "gfp_t": "%#x"}


def _sized(long_size: int) -> dict[str, IntType]:
    facts = {name: BASIC[basic] for name, basic in _BASICS.items()}
    return {name: IntType(f.size or long_size, f.is_signed is not False) for name, f in facts.items()}


_INT_TYPES = {long_size: _sized(long_size) for long_size in (4, 8)}


def int_type_named(name: str, long_size: int = 8) -> IntType | None:
    """Return the integer type that a name without qualifiers has, None when it is none or not known.

    `long_size` is 4 or 8 bytes; plain `char` is signed.

    >>> int_type_named("size_t", 4)
    IntType(size=4, is_signed=False)
    """
    return _INT_TYPES[long_size].get(name)


def int_types(long_size: int = 8) -> Mapping[str, IntType]:
    """Return all integer types by name, for a `long` of 4 or 8 bytes."""
    return _INT_TYPES[long_size]


def conversion_of(name: str) -> str:
    """Return how printk shows an integer type on every machine, an empty string when that is not known.

    >>> conversion_of("u64"), conversion_of("struct page")
    ('%llu', '')
    """
    basic = BASIC.get(TYPEDEFS.get(name, name))
    return _CONVERSIONS.get(name) or (basic.conversion if basic is not None else "")
