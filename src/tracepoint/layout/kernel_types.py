"""What the kernel's type names and length constants mean: the data behind `sizes`.

Facts learnt from include/linux/types.h, include/uapi and arch/*/include; each name maps to a
basic C type that an ABI can size.  Names that depend on the configuration are not here: they
need BTF or the headers.
"""

from __future__ import annotations

# Names for other types, whatever the architecture.  `s64` and the like are basic here.
TYPEDEFS: dict[str, str] = {
    # <linux/types.h>, <asm-generic/int-ll64.h>
    **dict.fromkeys(("u8", "__u8", "uint8_t", "u_int8_t", "unchar", "u_char"), "unsigned char"),
    **dict.fromkeys(("s8", "__s8", "int8_t"), "signed char"),
    **dict.fromkeys(("u16", "__u16", "uint16_t", "u_int16_t", "ushort", "u_short"), "unsigned short"),
    **dict.fromkeys(("s16", "__s16", "int16_t"), "short"),
    **dict.fromkeys(("u32", "__u32", "uint32_t", "u_int32_t", "uint", "u_int"), "unsigned int"),
    **dict.fromkeys(("s32", "__s32", "int32_t"), "int"),
    **dict.fromkeys(("u64", "__u64", "uint64_t", "u_int64_t"), "unsigned long long"),
    **dict.fromkeys(("s64", "__s64", "int64_t"), "long long"),
    **dict.fromkeys(("__le16", "__be16", "__sum16"), "unsigned short"),
    **dict.fromkeys(("__le32", "__be32", "__wsum"), "unsigned int"),
    **dict.fromkeys(("__le64", "__be64"), "unsigned long long"),
    **dict.fromkeys(("ulong", "u_long", "uintptr_t", "pgoff_t", "irq_hw_number_t"), "unsigned long"),
    "_Bool": "bool",
    **dict.fromkeys(
        ("size_t", "__kernel_size_t", "__kernel_ulong_t", "ino_t", "__kernel_ino_t"), "unsigned long"
    ),
    **dict.fromkeys(
        (
            "ssize_t",
            "__kernel_ssize_t",
            "__kernel_long_t",
            "ptrdiff_t",
            "off_t",
            "__kernel_off_t",
            "intptr_t",
        ),
        "long",
    ),
    **dict.fromkeys(("clock_t", "__kernel_clock_t", "suseconds_t", "__kernel_suseconds_t"), "long"),
    **dict.fromkeys(("loff_t", "__kernel_loff_t", "ktime_t", "time64_t"), "long long"),
    "__kernel_time64_t": "long long",
    **dict.fromkeys(("sector_t", "blkcnt_t"), "unsigned long long"),
    **dict.fromkeys(
        ("dev_t", "__kernel_dev_t", "nlink_t", "gfp_t", "slab_flags_t", "fmode_t"), "unsigned int"
    ),
    **dict.fromkeys(
        ("uid_t", "gid_t", "__kernel_uid32_t", "__kernel_gid32_t", "qid_t", "projid_t"), "unsigned int"
    ),
    **dict.fromkeys(("blk_opf_t", "__poll_t", "vm_fault_t", "oom_flags_t", "xa_mark_t"), "unsigned int"),
    **dict.fromkeys(("pid_t", "__kernel_pid_t", "key_t", "timer_t", "clockid_t", "mqd_t"), "int"),
    **dict.fromkeys(("__kernel_timer_t", "__kernel_clockid_t", "__kernel_mqd_t", "key_serial_t"), "int"),
    **dict.fromkeys(("rwf_t", "dma_cookie_t", "daddr_t", "__kernel_daddr_t", "atomic_t"), "int"),
    **dict.fromkeys(("umode_t", "__kernel_sa_family_t", "sa_family_t"), "unsigned short"),
    "errseq_t": "unsigned int",
    "blk_status_t": "unsigned char",
    "blk_qc_t": "unsigned int",
    "blk_mq_req_flags_t": "unsigned int",
    "aio_context_t": "unsigned long",
    "depot_stack_handle_t": "unsigned int",
    "netdev_features_t": "unsigned long long",
    "vm_flags_t": "unsigned long",
    "acpi_status": "unsigned int",
    "fl_owner_t": "void *",
    "initcall_t": "void *",
    "xen_mc_callback_fn_t": "void *",
    "cap_user_header_t": "void *",
    "cap_user_data_t": "void *",
    "snd_pcm_uframes_t": "unsigned long",
    "snd_pcm_sframes_t": "long",
    # <linux/kvm_types.h>
    "gva_t": "unsigned long",
    **dict.fromkeys(("gpa_t", "gfn_t", "hpa_t", "hfn_t", "kvm_pfn_t"), "unsigned long long"),
    # <linux/nvme.h>, <linux/fs.h> and file systems: names that only one place uses
    "xfs_agnumber_t": "unsigned int",
    "xfs_agblock_t": "unsigned int",
    "xfs_agino_t": "unsigned int",
    "xfs_extlen_t": "unsigned int",
    "xfs_ino_t": "unsigned long long",
    "xfs_daddr_t": "long long",
    "xfs_lsn_t": "long long",
    "xfs_fsblock_t": "unsigned long long",
    "xfs_fileoff_t": "unsigned long long",
    "xfs_filblks_t": "unsigned long long",
    "xfs_fsize_t": "long long",
    "xfs_off_t": "long long",
    "xfs_dahash_t": "unsigned int",
    "xfs_dqtype_t": "unsigned char",
    "xfs_exntst_t": "unsigned int",
    "xfs_btnum_t": "unsigned int",
    "xfs_lookup_t": "unsigned int",
    "xlog_tid_t": "unsigned int",
    "xfs_failaddr_t": "void *",
    "ext4_lblk_t": "unsigned int",
    "ext4_fsblk_t": "unsigned long long",
    "ext4_group_t": "unsigned int",
    "rxrpc_seq_t": "unsigned int",
    "rxrpc_serial_t": "unsigned int",
}

# Words in types that are macros everywhere: sparse's marks stand for nothing in a kernel build
# (include/linux/compiler_types.h), and one type is a #define (include/linux/types.h).
TYPE_MACROS: dict[str, str] = {
    **dict.fromkeys(("__user", "__kernel", "__iomem", "__percpu", "__rcu"), ""),
    **dict.fromkeys(("__force", "__nocast", "__safe", "__private", "__bitwise"), ""),
    "pgoff_t": "unsigned long",
}

# Page-table values and bus addresses, where the architecture alone decides.  dma_addr_t and
# phys_addr_t of 32-bit machines follow the configuration (PAE, LPAE) and are left out there.
WORD64_TYPEDEFS: dict[str, str] = {
    **dict.fromkeys(("dma_addr_t", "phys_addr_t", "resource_size_t"), "unsigned long long"),
    **dict.fromkeys(("pteval_t", "pmdval_t", "pudval_t", "p4dval_t", "pgdval_t"), "unsigned long"),
}

# Structs that records hold whole, as the types of their members in order.
STRUCTS: dict[str, tuple[str, ...]] = {
    "struct in_addr": ("u32",),
    "struct in6_addr": ("u32",) * 4,
    "struct sockaddr": ("u16",) + ("u8",) * 14,
    "struct sockaddr_in": ("u16", "u16", "u32") + ("u8",) * 8,
    "struct sockaddr_in6": ("u16", "u16", "u32") + ("u32",) * 4 + ("u32",),
    # The largest member of the union is a sockaddr_in6.
    "union sctp_addr": ("u16", "u16", "u32") + ("u32",) * 4 + ("u32",),
    "struct sock_extended_err": ("u32", "u8", "u8", "u8", "u8", "u32", "u32"),
    "struct __kernel_timespec": ("s64", "s64"),
    "struct timespec64": ("s64", "long"),
    "struct afs_fid": ("u64", "u64", "u32", "u32"),
    "struct drm_rect": ("int",) * 4,
    "uuid_t": ("u8",) * 16,
    "guid_t": ("u8",) * 16,
    "uuid_le": ("u8",) * 16,
    "uuid_be": ("u8",) * 16,
    "kuid_t": ("u32",),
    "kgid_t": ("u32",),
}

# Array lengths and other constants that are the same in every kernel and configuration.
CONSTANTS: dict[str, int] = {
    "TASK_COMM_LEN": 16,
    "IFNAMSIZ": 16,
    "ETH_ALEN": 6,
    "ETH_GSTRING_LEN": 32,
    "MAX_ADDR_LEN": 32,
    "UUID_SIZE": 16,
    "UUID_STRING_LEN": 36,
    "DISK_NAME_LEN": 32,
    "BDEVNAME_SIZE": 32,
    "NAME_MAX": 255,
    "PATH_MAX": 4096,
    "INET_ADDRSTRLEN": 16,
    "INET6_ADDRSTRLEN": 48,
    "I2C_SMBUS_BLOCK_MAX": 32,
    "MII_BUS_ID_SIZE": 61,
    "IEEE80211_MAX_SSID_LEN": 32,
    "WLAN_PMKID_LEN": 16,
    "SHA1_DIGEST_SIZE": 20,
    "SHA256_DIGEST_SIZE": 32,
    "TCM_MAX_COMMAND_SIZE": 32,
    "BITS_PER_BYTE": 8,
}
