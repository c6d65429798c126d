"""How the filter language of one kernel differs from that of another."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class FilterType(enum.Enum):
    """What a filter may do with a field: FILTER_* in include/linux/trace_events.h."""

    OTHER = "other"
    STATIC_STRING = "static string"
    DYN_STRING = "dynamic string"
    RDYN_STRING = "relative dynamic string"
    PTR_STRING = "pointer to string"
    CPUMASK = "cpumask"
    CPU = "cpu"
    COMM = "comm"
    STACKTRACE = "stacktrace"

    @property
    def is_string(self) -> bool:
        """Whether the field compares with a quoted value (is_string_field() in kernel/trace/trace.h)."""
        return self in _STRINGS


_STRINGS = frozenset(
    {
        FilterType.STATIC_STRING,
        FilterType.DYN_STRING,
        FilterType.RDYN_STRING,
        FilterType.PTR_STRING,
        FilterType.COMM,
    }
)


@dataclass(frozen=True, slots=True)
class FilterProfile:
    """The words one kernel understands.

    `rejects_incomplete`: an expression that ends in an operator is an error; `has_cpus` and
    `has_function`: `CPUS{...}` and `.function`; `generic` the fields that every event has beside
    the common ones, by name.
    """

    name: str
    rejects_incomplete: bool = True
    has_cpus: bool = False
    has_function: bool = False
    generic: tuple[tuple[str, FilterType], ...] = ()

    def assign_type(self, ctype: str) -> FilterType:
        """Return the filter type of a field by its C type.

        Kernel: filter_assign_type() in kernel/trace/trace_events_filter.c.

        >>> KERNEL_6_1.assign_type("char[16]")
        <FilterType.STATIC_STRING: 'static string'>
        """
        if "__data_loc" in ctype:
            if "char" in ctype:
                return FilterType.DYN_STRING
            if self.has_cpus and "cpumask_t" in ctype:
                return FilterType.CPUMASK
        if "char" in ctype:
            if "__rel_loc" in ctype:
                return FilterType.RDYN_STRING
            if "[" in ctype:
                return FilterType.STATIC_STRING
        if ctype in ("char *", "const char *"):
            return FilterType.PTR_STRING
        return FilterType.OTHER


_GENERIC_6_1 = (
    ("CPU", FilterType.CPU),
    ("cpu", FilterType.CPU),
    ("common_cpu", FilterType.CPU),
    ("COMM", FilterType.COMM),
    ("comm", FilterType.COMM),
)
_GENERIC_6_12 = (
    *_GENERIC_6_1,
    ("stacktrace", FilterType.STACKTRACE),
    ("STACKTRACE", FilterType.STACKTRACE),
)

KERNEL_6_1_187 = FilterProfile("6.1.187", rejects_incomplete=False, generic=_GENERIC_6_1)
KERNEL_6_1 = FilterProfile("6.1", generic=_GENERIC_6_1)
KERNEL_6_12 = FilterProfile("6.12", has_cpus=True, has_function=True, generic=_GENERIC_6_12)
