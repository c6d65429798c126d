"""`%ptR` and `%ptT`: dates and times (lib/vsprintf.c: rtc_str(), time64_str())."""

from __future__ import annotations

import struct

from tracepoint.printk.facts import UnknownPartError


def _clock_text(year: int, month: int, day: int, clock: tuple[int, int, int], letters: str) -> str:
    is_raw = "r" in letters
    date = f"{year + (0 if is_raw else 1900):04d}-{month + (0 if is_raw else 1):02d}-{day:02d}"
    time = "{:02d}:{:02d}:{:02d}".format(*clock)
    if letters[:1] == "d":
        return date
    if letters[:1] == "t":
        return time
    return f"{date}{' ' if 's' in letters else 'T'}{time}"


def rtc_text(data: bytes, letters: str, *, is_big_endian: bool) -> str:
    """Return a struct rtc_time (nine ints) as text; `letters` follow `%ptR`."""
    second, minute, hour, day, month, year, *_ = struct.unpack(">9i" if is_big_endian else "<9i", data)
    return _clock_text(year, month, day, (hour, minute, second), letters)


def time64_text(data: bytes, letters: str, *, is_big_endian: bool) -> str:
    """Return seconds since 1970 (s64) as text; `letters` follow `%ptT`.

    >>> time64_text((86400 * 366).to_bytes(8, "little"), "", is_big_endian=False)
    '1971-01-02T00:00:00'
    """
    seconds = int.from_bytes(data, "big" if is_big_endian else "little", signed=True)
    days, rest = divmod(seconds, 86400)
    if not -(10**9) < days < 10**9:
        raise UnknownPartError("a time too far away")
    year, month, day = _civil(days)
    clock = rest // 3600, rest // 60 % 60, rest % 60
    return _clock_text(year - 1900, month - 1, day, clock, letters)


def _civil(days: int) -> tuple[int, int, int]:
    """Return year, month and day of a day counted from 1970-01-01, in the Gregorian calendar."""
    era, day_of_era = divmod(days + 719468, 146097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year_of_era + era * 400 + (month <= 2), month, day_of_year - (153 * shifted + 2) // 5 + 1
