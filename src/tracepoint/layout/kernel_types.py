"""What the kernel's type macros and length constants mean.

Names of types are in `source.types`, structs in `kernel_structs`.

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
