"""Arrays of numbers that are computed from others, in C or with the twins here."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

from tracepoint.record.decode import DECODE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import Buffer

_OPEN = -1
_FITTING = {"i": "bBhHi", "q": "bBhHiIq", "Q": "BHIQ"}


def view_numbers(buffer: Buffer, code: str) -> memoryview[int]:
    """Return a buffer as the numbers of a `struct` code.

    >>> list(view_numbers(array("i", [1, 2]), "i"))
    [1, 2]
    """
    data: Any = memoryview(buffer).cast("B")
    numbers: memoryview[int] = data.cast(code)
    return numbers


def numbers_of(values: Iterable[int], code: str) -> memoryview[int]:
    """Return numbers as an array of a `struct` code, not copied where they are one.

    Raises OverflowError for a number that does not fit.
    """
    if isinstance(values, memoryview) and values.format == code and values.contiguous:
        return values
    is_one = isinstance(values, array) and values.typecode == code
    return view_numbers(values if is_one else array(code, values), code)  # type: ignore[arg-type]


def fit_numbers(numbers: memoryview[int], code: str) -> memoryview[int]:
    """Return whole numbers that all fit in those of a `struct` code: i, q or Q.

    A recording may say of a field that it has another size or sign than in the kernel: such numbers keep
    their low bits, as in C.

    >>> list(fit_numbers(numbers_of([-1, 5], "q"), "Q")), list(fit_numbers(numbers_of([1 << 32], "q"), "i"))
    ([18446744073709551615, 5], [0])
    """
    if numbers.format in _FITTING[code]:
        return numbers
    n_bits = 8 * array(code).itemsize
    sign, mask = 0 if code == "Q" else 1 << n_bits - 1, (1 << n_bits) - 1
    return numbers_of(((value + sign & mask) - sign for value in numbers), code)


def sort_numbers(values: Iterable[int]) -> tuple[memoryview[int], int]:
    """Return int64 numbers in order, and their sum; raises OverflowError for one that does not fit.

    >>> numbers, total = sort_numbers([3, -1, 2])
    >>> list(numbers), total
    ([-1, 2, 3], 4)
    """
    given = numbers_of(values, "q")
    if DECODE is None:
        return view_numbers(array("q", sorted(given)), "q"), sum(given)
    found, total = DECODE.sort_numbers(given)
    return view_numbers(found, "q"), total


def null_bits(numbers: memoryview[int], null: int) -> tuple[int, Buffer]:
    r"""Return how many numbers are `null`, and a bit for each, 0 where it is; the lowest of a byte first.

    >>> n, bits = null_bits(view_numbers(array("i", [5, -1, 7]), "i"), -1)
    >>> n, bytes(bits)[0] & 0b111
    (1, 5)
    """
    if DECODE is None:
        flags = [value != null for value in numbers]
        return len(flags) - sum(flags), bits_of(flags)
    found: tuple[int, Buffer] = DECODE.null_bits(numbers, numbers.itemsize, null)
    return found


def count_up(n: int) -> memoryview[int]:
    """Return the numbers below `n` as int64.

    >>> list(count_up(3))
    [0, 1, 2]
    """
    return view_numbers(array("q", range(n)) if DECODE is None else DECODE.count_up(n), "q")


def add_lengths(starts: memoryview[int], lengths: memoryview[int]) -> memoryview[int]:
    """Return where int64 intervals end; where they start when their length is -1, not known.

    >>> list(add_lengths(count_up(3), numbers_of([5, -1, 0], "q")))
    [5, 1, 2]
    """
    if DECODE is None:
        pairs = zip(starts, lengths, strict=True)
        return numbers_of((start + (0 if length == _OPEN else length) for start, length in pairs), "q")
    return view_numbers(DECODE.add_lengths(starts, lengths), "q")


def keep_below(numbers: memoryview[int], limit: int) -> memoryview[int]:
    """Return int32 numbers with 0 in place of those that are negative, or not below a limit.

    >>> list(keep_below(numbers_of([2, -1, 7], "i"), 5))
    [2, 0, 0]
    """
    if DECODE is None:
        return numbers_of((number if 0 <= number < limit else 0 for number in numbers), "i")
    return view_numbers(DECODE.remap(numbers, array("i", range(limit))), "i")


def bits_of(flags: Iterable[bool]) -> bytes:
    r"""Return a bit for each flag, the lowest of a byte first.

    >>> bits_of([True, False, True])
    b'\x05'
    """
    digits = "".join("1" if flag else "0" for flag in flags)[::-1]
    return int(digits or "0", 2).to_bytes(len(digits) + 7 >> 3, "little")
