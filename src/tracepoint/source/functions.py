"""Kernel functions that are pure functions of numbers: the types they take and return, and what they compute.

Sources: include/linux/{minmax,kdev_t,math,math64,err,log2,bits,kernel,bitops,ktime,stat,swab}.h and
byteorder/generic.h.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, reduce
from typing import TYPE_CHECKING

from tracepoint.source.cvalue import common_type, divide
from tracepoint.source.types import INT, LLONG, UINT, ULLONG, USHORT, IntType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_ERRNO = 4095

#: Functions and macros that return what they were given, as far as a value is concerned.
TRANSPARENT = frozenset(
    {
        "READ_ONCE",
        "ACCESS_ONCE",
        "rcu_dereference",
        "rcu_dereference_raw",
        "rcu_dereference_check",
        "rcu_dereference_protected",
        "rcu_dereference_bh",
        "rcu_dereference_sched",
        "rcu_access_pointer",
        "likely",
        "unlikely",
        "data_race",
        "__perf_count",
        "__perf_task",
        "__builtin_expect",
        "no_printk",
    }
)
#: Functions and macros that store nothing.
QUIET = frozenset(
    {
        "rcu_read_lock",
        "rcu_read_unlock",
        "might_sleep",
        "WARN_ON",
        "WARN_ON_ONCE",
        "BUILD_BUG_ON",
        "BUG_ON",
        "barrier",
        "smp_mb",
        "preempt_disable_notrace",
        "preempt_enable_notrace",
    }
)


@dataclass(frozen=True, slots=True)
class PureFunction:
    """A function of numbers.

    `arguments` are the types to which the arguments are converted, `result` that of the value; None
    is the common type of all arguments, as C's arithmetic conversions find it.  `compute` raises
    ArithmeticError where the kernel's function has no value.
    """

    arguments: tuple[IntType | None, ...]
    result: IntType | None
    compute: Callable[..., int]

    def call(self, *values: tuple[int, IntType]) -> tuple[int, IntType]:
        """Return the value and its type for values of some types.

        Raises ArithmeticError where there is none.

        >>> pure_functions()["max"].call((-1, INT), (1, UINT))
        (4294967295, IntType(size=4, is_signed=False))
        """
        kinds = [want or kind for (_, kind), want in zip(values, self.arguments, strict=True)]
        common = reduce(common_type, kinds, INT)
        numbers = [(want or common).wrap(v) for (v, _), want in zip(values, self.arguments, strict=True)]
        result = self.result or common
        return result.wrap(self.compute(*numbers)), result


@dataclass(frozen=True, slots=True)
class ByteOrder:
    """A function that puts the bytes of a number in another order.

    `is_big` is the order that it converts from or to (both are the same), None for one that always
    swaps; `is_pointer` says that it takes the number's address.
    """

    kind: IntType
    is_big: bool | None
    is_pointer: bool = False

    def swaps(self, *, is_big_endian: bool) -> bool:
        """Return whether the bytes are swapped on a machine of this order."""
        return self.is_big is None or self.is_big != is_big_endian

    def call(self, value: int, *, is_big_endian: bool = False) -> int:
        """Return the converted number.

        >>> hex(BYTE_ORDERS["ntohs"].call(0x1234))
        '0x3412'
        """
        value = self.kind.wrap(value)
        swaps = self.swaps(is_big_endian=is_big_endian)
        return int.from_bytes(value.to_bytes(self.kind.size, "little"), "big") if swaps else value


def _byte_orders() -> dict[str, ByteOrder]:
    made: dict[str, ByteOrder] = {}
    for bits, kind in ((16, USHORT), (32, UINT), (64, ULLONG)):
        for form in ("__builtin_bswap", "__fswab", "swab", "__swab", "__arch_swab", "___constant_swab"):
            made[f"{form}{bits}"] = ByteOrder(kind, None)
        for order, is_big in (("be", True), ("le", False)):
            for name in (f"{order}{bits}_to_cpu", f"cpu_to_{order}{bits}"):
                made[name] = made[f"__{name}"] = ByteOrder(kind, is_big)
                made[f"{name}p"] = made[f"__{name}p"] = ByteOrder(kind, is_big, is_pointer=True)
            made[f"get_unaligned_{order}{bits}"] = ByteOrder(kind, is_big, is_pointer=True)
    for name, kind in (("ntohs", USHORT), ("htons", USHORT), ("ntohl", UINT), ("htonl", UINT)):
        made[name] = ByteOrder(kind, is_big=True)
    return made


BYTE_ORDERS: Mapping[str, ByteOrder] = _byte_orders()

#: `min_t(type, a, b)` and the like: the name without the type's `_t`.
TYPED: Mapping[str, str] = {"min_t": "min", "max_t": "max", "clamp_t": "clamp"}


def _logarithm(value: int) -> int:
    if value <= 0:
        raise ArithmeticError("the logarithm of 0")
    return value.bit_length() - 1


def _shifted_bit(number: int) -> int:
    if not 0 <= number < 64:
        raise ArithmeticError(f"a shift by {number}")
    return 1 << number


def _mask(high: int, low: int) -> int:
    if high < low:
        raise ArithmeticError(f"a mask from bit {high} to bit {low}")
    return 2 * _shifted_bit(high) - _shifted_bit(low)


def _round(value: int, step: int, *, is_up: bool) -> int:
    if step <= 0:
        raise ZeroDivisionError
    return (value + step - 1 if is_up else value) // step * step


def _round_up(value: int, step: int) -> int:
    return _round(value, step, is_up=True)


def _round_down(value: int, step: int) -> int:
    return _round(value, step, is_up=False)


def _of_mode(wanted: int) -> PureFunction:
    return PureFunction((USHORT,), INT, lambda mode: int(mode & 0o170000 == wanted))


def _itself(value: int) -> int:
    return value


_FUNCTIONS = {
    "min": PureFunction((None, None), None, min),
    "max": PureFunction((None, None), None, max),
    "umin": PureFunction((None, None), None, min),
    "umax": PureFunction((None, None), None, max),
    "clamp": PureFunction((None, None, None), None, lambda value, low, high: min(max(value, low), high)),
    "abs": PureFunction((None,), None, abs),
    "MAJOR": PureFunction((UINT,), UINT, lambda dev: dev >> 20),
    "MINOR": PureFunction((UINT,), UINT, lambda dev: dev & 0xFFFFF),
    "MKDEV": PureFunction((UINT, UINT), UINT, lambda major, minor: major << 20 | minor),
    "lower_32_bits": PureFunction((ULLONG,), UINT, _itself),
    "upper_32_bits": PureFunction((ULLONG,), UINT, lambda n: n >> 32),
    "lower_16_bits": PureFunction((UINT,), USHORT, _itself),
    "upper_16_bits": PureFunction((UINT,), USHORT, lambda n: n >> 16),
    "ilog2": PureFunction((None,), INT, _logarithm),
    "order_base_2": PureFunction((None,), INT, lambda n: (n - 1).bit_length() if n > 1 else 0),
    "hweight8": PureFunction((IntType(1, is_signed=False),), UINT, int.bit_count),
    "hweight16": PureFunction((USHORT,), UINT, int.bit_count),
    "hweight32": PureFunction((UINT,), UINT, int.bit_count),
    "hweight64": PureFunction((ULLONG,), UINT, int.bit_count),
    "BIT_ULL": PureFunction((INT,), ULLONG, _shifted_bit),
    "GENMASK_ULL": PureFunction((INT, INT), ULLONG, _mask),
    "DIV_ROUND_UP": PureFunction((LLONG, LLONG), LLONG, lambda a, b: -(-a // b)),
    "round_up": PureFunction((LLONG, LLONG), LLONG, _round_up),
    "round_down": PureFunction((LLONG, LLONG), LLONG, _round_down),
    "roundup": PureFunction((LLONG, LLONG), LLONG, _round_up),
    "ALIGN": PureFunction((LLONG, LLONG), LLONG, _round_up),
    **dict.fromkeys(
        ("div_u64", "div64_u64", "div64_ul"), PureFunction((ULLONG, ULLONG), ULLONG, lambda a, b: a // b)
    ),
    **dict.fromkeys(("div_s64", "div64_s64"), PureFunction((LLONG, LLONG), LLONG, divide)),
    "ktime_sub": PureFunction((LLONG, LLONG), LLONG, lambda a, b: a - b),
    "ktime_add": PureFunction((LLONG, LLONG), LLONG, lambda a, b: a + b),
    "ktime_to_ns": PureFunction((LLONG,), LLONG, _itself),
    "ns_to_ktime": PureFunction((LLONG,), LLONG, _itself),
    "ktime_to_us": PureFunction((LLONG,), LLONG, lambda n: divide(n, 1000)),
    "ktime_to_ms": PureFunction((LLONG,), LLONG, lambda n: divide(n, 1_000_000)),
    "ktime_us_delta": PureFunction((LLONG, LLONG), LLONG, lambda a, b: divide(a - b, 1000)),
    "ktime_ms_delta": PureFunction((LLONG, LLONG), LLONG, lambda a, b: divide(a - b, 1_000_000)),
    "S_ISDIR": _of_mode(0o040000),
    "S_ISREG": _of_mode(0o100000),
    "S_ISLNK": _of_mode(0o120000),
    "S_ISBLK": _of_mode(0o060000),
    "S_ISCHR": _of_mode(0o020000),
}


@cache
def pure_functions(long_size: int = 8) -> Mapping[str, PureFunction]:
    """Return the functions by name, for a `long` of 4 or 8 bytes.

    >>> pure_functions(4)["BIT"].call((31, INT))
    (2147483648, IntType(size=4, is_signed=False))
    """
    ulong, long = IntType(long_size, is_signed=False), IntType(long_size, is_signed=True)
    least_error = (1 << 8 * long_size) - MAX_ERRNO
    is_error = PureFunction((ulong,), INT, lambda n: int(n >= least_error))
    return {
        **_FUNCTIONS,
        "hweight_long": PureFunction((ulong,), UINT, int.bit_count),
        "BIT": PureFunction((INT,), ulong, _shifted_bit),
        "GENMASK": PureFunction((INT, INT), ulong, _mask),
        "IS_ERR": is_error,
        "IS_ERR_VALUE": is_error,
        "IS_ERR_OR_NULL": PureFunction((ulong,), INT, lambda n: int(n == 0 or n >= least_error)),
        "PTR_ERR": PureFunction((long,), long, _itself),
        "PTR_ERR_OR_ZERO": PureFunction((ulong,), INT, lambda n: n if n >= least_error else 0),
    }
