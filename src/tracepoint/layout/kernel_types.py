"""What the kernel's structs and length constants mean: the data of `sizes`; names are in `source.types`.

Facts learnt from include/linux/types.h, include/uapi and arch/*/include.  What depends on the configuration
is not here: it needs BTF or the headers.
"""

from __future__ import annotations

# Words in types that are macros everywhere: sparse's marks are empty in a kernel build
# (include/linux/compiler_types.h), and one type is a #define (include/linux/types.h).
TYPE_MACROS: dict[str, str] = {
    **dict.fromkeys(("__user", "__kernel", "__iomem", "__percpu", "__rcu"), ""),
    **dict.fromkeys(("__force", "__nocast", "__safe", "__private", "__bitwise"), ""),
    "pgoff_t": "unsigned long",
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
    "atomic_t": ("int",),
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
