"""Which conditional branches of a header are read: CONFIG options and other given macros."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Options that stay off when everything else is on: they replace declarations, not add to them.
OFF_BY_DEFAULT = frozenset(
    [
        "CONFIG_CPU_BIG_ENDIAN",
        "CONFIG_X86_32",
        "CONFIG_M68K",
        "CONFIG_PREEMPT_RT",
        "CONFIG_TINY_RCU",
        "CONFIG_CC_IS_CLANG",
        "CONFIG_KMSAN",
        "CONFIG_ARCH_FORCE_MAX_ORDER",
        "CONFIG_HIGHMEM",
        "CONFIG_KASAN_HW_TAGS",
    ]
)

#: Choices of which only one can be made, and debugging, off in included files when all else is on:
#: there they change values and inline functions, they do not declare events.
OFF_IN_INCLUDES = (
    *("CONFIG_FLATMEM", "CONFIG_DISCONTIGMEM", "CONFIG_KASAN", "CONFIG_KCSAN", "CONFIG_PROFILE_"),
    *("CONFIG_TRACE_BRANCH_PROFILING", "CONFIG_DEBUG_", "CONFIG_PROVE_", "CONFIG_LOCKDEP", "CONFIG_SLOB"),
    *("CONFIG_GCC_PLUGIN", "CONFIG_UML", "CONFIG_PAGE_SIZE_", "CONFIG_MATH_EMULATION"),
)

#: Options that are numbers, as a 64-bit distribution kernel sets them.
NUMBERS_BY_DEFAULT: dict[str, str] = {
    "CONFIG_PGTABLE_LEVELS": "5",
    "CONFIG_HZ": "250",
    "CONFIG_NR_CPUS": "8192",
    "CONFIG_NODES_SHIFT": "10",
    "CONFIG_X86_L1_CACHE_SHIFT": "6",
    "CONFIG_PAGE_SHIFT": "12",
}

#: Macros that the kernel build gives to every file (and values that headers compare with).
KERNEL_DEFINES: dict[str, str] = {
    "__KERNEL__": "1",
    "CREATE_TRACE_POINTS": "1",
    "__GNUC__": "12",
    "BITS_PER_LONG": "64",
    "__BITS_PER_LONG": "64",
    "__LITTLE_ENDIAN": "1234",
    "LINUX_VERSION_CODE": "0x7f0000",
    "KERNEL_VERSION(a,b,c)": "(((a) << 16) + ((b) << 8) + (c))",
}

#: What include/linux/compiler-gcc.h, which the build puts before every file, defines with an option.
COMPILER_FEATURES: dict[str, str] = dict.fromkeys(
    ("__HAVE_BUILTIN_BSWAP16__", "__HAVE_BUILTIN_BSWAP32__", "__HAVE_BUILTIN_BSWAP64__"),
    "CONFIG_ARCH_USE_BUILTIN_BSWAP",
)


#: Annotations for sparse and the compiler that mean nothing for values and layouts.
EMPTY_MACROS = (
    *("__force", "__user", "__kernel", "__iomem", "__rcu", "__percpu", "__bitwise", "__private", "__nocast"),
    *("__must_check", "__maybe_unused", "__always_unused", "__packed", "__counted_by", "__deprecated"),
)


@dataclass(frozen=True, slots=True)
class Config:
    """The configuration under which a header is read.

    `options` maps `CONFIG_X` to its value (`y`, `m`, `n` or a number or string as in `.config`);
    an option that is not listed is on when `is_on_by_default` (a checker wants to see every
    declaration), off otherwise.  `defines` are further macros, as `-D` gives them;
    `is_for_includes` leaves out what would only change the values of included files.

    >>> Config().value("CONFIG_SMP"), Config(is_on_by_default=False).value("CONFIG_SMP")
    ('1', None)
    """

    options: Mapping[str, str] = field(default_factory=dict)
    is_on_by_default: bool = True
    defines: Mapping[str, str] = field(default_factory=dict)
    is_for_includes: bool = False

    def is_feature(self, name: str) -> bool:
        """Whether a name such as `__KVM_HAVE_IOAPIC` counts as defined: what an architecture may have."""
        return self.is_on_by_default and "_HAVE_" in name

    def is_compiler_feature(self, name: str) -> bool:
        """Whether a name such as `__HAVE_BUILTIN_BSWAP16__` is defined before the first line of any file."""
        return name in COMPILER_FEATURES and self.value(COMPILER_FEATURES[name]) is not None

    def value(self, name: str) -> str | None:
        """Return what an option's macro expands to, or None when it is not defined."""
        if name.endswith("_MODULE"):
            return "1" if self.options.get(name.removesuffix("_MODULE")) == "m" else None
        given = self.options.get(name)
        if given is None:
            is_off = name in OFF_BY_DEFAULT or (self.is_for_includes and name.startswith(OFF_IN_INCLUDES))
            is_on = self.is_on_by_default and not is_off
            return NUMBERS_BY_DEFAULT.get(name, "1") if is_on else None
        if given in {"n", "m"}:
            return None
        return "1" if given == "y" else given

    def number(self, name: str) -> int | None:
        """Return the value of an option that is a number, None when it has none."""
        text = self.options.get(name) or (NUMBERS_BY_DEFAULT.get(name) if self.is_on_by_default else None)
        try:
            return int(text, 0) if text else None
        except ValueError:
            return None

    def is_enabled(self, name: str) -> bool:
        """Return what `IS_ENABLED(name)` means: built in or a module."""
        return self.value(name) is not None or self.value(name + "_MODULE") is not None


def parse_dot_config(text: str) -> dict[str, str]:
    r"""Read the text of a `.config` or `include/config/auto.conf` into an options mapping.

    >>> parse_dot_config("CONFIG_SMP=y\n# CONFIG_NUMA is not set\nCONFIG_HZ=250\n")
    {'CONFIG_SMP': 'y', 'CONFIG_NUMA': 'n', 'CONFIG_HZ': '250'}
    """
    options: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("CONFIG_") and "=" in line:
            name, _, value = line.partition("=")
            options[name] = value.strip()
        elif line.startswith("# CONFIG_") and line.endswith(" is not set"):
            options[line[2:-11]] = "n"
    return options
