"""Numbers in options: within bounds, with a message that names the bounds."""

from __future__ import annotations

import argparse
import re

from tracepoint.wording import MAX_TRACE_SECONDS, read_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

#: More than eleven days; anything that waits longer is a service.
MAX_SECONDS = 1e6
# No letter, then the powers of 1024.
_UNITS, _MAX_BYTES = " KMGT", 1 << 60
_TIME = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?")
_NO_NUMBER = float("nan")
_SECONDS = {"": 1, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}


def whole(low: int, high: int) -> Callable[[str], int]:
    """Return an argument type for whole numbers from `low` to `high`.

    >>> whole(1, 8)("4")
    4
    """

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = low - 1
        if not low <= number <= high:
            raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a whole number from {low} to {high}")
        return number

    return read


def size(text: str) -> int:
    """Read a size in bytes, with K, M, G or T for powers of 1024.

    >>> size("200"), size("1.5M")
    (200, 1572864)
    """
    unit = _UNITS.find(text[-1:].upper())
    try:
        number = float(text[:-1] if unit > 0 else text) * 1024 ** max(unit, 0)
    except (ValueError, OverflowError):
        number = _NO_NUMBER
    if not 1 <= number <= _MAX_BYTES:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a size in bytes, such as 500000, 200M or 4G")
    return int(number)


def seconds(text: str) -> float:
    """Read a time in seconds, 0 to `MAX_SECONDS`.

    >>> seconds("0.5")
    0.5
    """
    try:
        number = float(text)
    except ValueError:
        number = _NO_NUMBER
    if not 0 <= number <= MAX_SECONDS:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a time in seconds from 0 to {MAX_SECONDS:g}")
    return number


def duration(text: str) -> float:
    """Read a time with its unit (ms, s, m or h; without one, s) in seconds, more than 0.

    >>> duration("10s"), duration("500ms"), duration("2m")
    (10.0, 0.5, 120.0)
    """
    digits = text.rstrip("hms")
    try:
        number = float(digits) * _SECONDS[text[len(digits) :]]
    except (ValueError, KeyError):
        number = _NO_NUMBER
    if not 0 < number <= MAX_SECONDS:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a time, such as 500ms, 10s or 5m")
    return number


def nanoseconds(text: str) -> int:
    """Read a time of a trace in seconds, exactly, as ns.

    >>> nanoseconds("10.629676474")
    10629676474
    """
    found = read_seconds(text)
    if found is None and _TIME.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is more seconds than a time of a trace has: at most {MAX_TRACE_SECONDS}"
        )
    if found is None:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a time in seconds")
    return found


def add_jobs_argument(parser: argparse.ArgumentParser) -> None:
    """Add `--jobs` of the commands that index a tree."""
    parser.add_argument(
        "-j",
        "--jobs",
        type=whole(1, 1024),
        default=0,
        metavar="N",
        help="processes for indexing (default: one per core)",
    )
