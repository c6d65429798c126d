"""Figures as a report shows them: times with a unit, parts of a whole, bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tracepoint.analysis.distribution import Bounds

_SECOND = 1_000_000_000
_UNITS = ((_SECOND, "s"), (1_000_000, "ms"), (1_000, "us"))


def time_text(ns: float) -> str:
    """Return a time with four digits and its unit.

    >>> time_text(7), time_text(12_345), time_text(2_000_000_000)
    ('7 ns', '12.35 us', '2.000 s')
    """
    for size, unit in _UNITS:
        if abs(ns) >= size:
            value = ns / size
            return f"{value:.{3 if abs(value) < 10 else 2 if abs(value) < 100 else 1}f} {unit}"
    return f"{ns:.0f} ns"


def clock_text(ns: float) -> str:
    """Return a time of the recording's clock in seconds, with all digits.

    >>> clock_text(10_634_567_890), clock_text(-1)
    ('10.634567890', '-0.000000001')
    """
    seconds, rest = divmod(abs(int(ns)), _SECOND)
    return f"{'-' if ns < 0 else ''}{seconds}.{rest:09d}"


def percent_text(part: float, whole: float) -> str:
    """Return a part of a whole, `-` of nothing.

    >>> percent_text(1, 8), percent_text(0, 0)
    ('12.50 %', '-')
    """
    return f"{100 * part / whole:.2f} %" if whole else "-"


def bounds_text(bounds: Bounds, show: Callable[[float], str]) -> str:
    """Return the bounds of a figure: the figure itself where it is exact.

    >>> from tracepoint.analysis.distribution import Bounds
    >>> bounds_text(Bounds(1000, 2000), time_text), bounds_text(Bounds(7, None), time_text)
    ('1.000 us..2.000 us', '>= 7 ns')
    """
    if bounds.high is None:
        return f">= {show(bounds.low)}"
    low, high = show(bounds.low), show(bounds.high)
    return low if low == high else f"{low}..{high}"


def task_text(names: Mapping[int, str], tid: int) -> str:
    """Return a task as its name and id, as in the lines of `trace`.

    >>> task_text({7: "sh"}, 7), task_text({}, 8)
    ('sh-7', '<...>-8')
    """
    return f"{names.get(tid, '<...>')}-{tid}"
