"""What of a recording is read: times, events, CPUs, tasks and filters."""

from __future__ import annotations

import operator

from tracepoint.named import NamedTuple
from tracepoint.tracefile.sieve import ALL_TIMES, Window

#: The system in the name of an event whose format the recording does not have.
UNKNOWN_SYSTEM = "unknown"


def unknown_name(number: int) -> str:
    """Return the name of the event with an id that has no format.

    >>> unknown_name(17)
    'unknown:17'
    """
    return f"{UNKNOWN_SYSTEM}:{number}"


def check_texts(what: str, *values: object) -> None:
    """Raise TypeError for a value that is not a str.

    >>> check_texts("an event", "sched_switch")
    """
    for value in values:
        if not isinstance(value, str):
            raise TypeError(f"{what} is a str, not {value!r}")


def check_filter(text: str) -> None:
    """Raise TypeError for a filter that is not a str, ValueError for an empty one or one with a NUL.

    >>> check_filter("prev_prio < 100")
    """
    check_texts("a filter", text)
    if not text.strip():
        raise ValueError("an empty filter: name a field and its value, prev_prio < 100")
    if "\0" in text:
        raise ValueError(f"a filter ends at a NUL, which is character {text.index(chr(0))} of this one")


def time_of(value: object) -> int:
    """Return a time in ns; raises TypeError for what is not a whole number of them.

    >>> time_of(1_500_000_000)
    1500000000
    """
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(
            f"a time is an int in ns, not {value!r}: give int(seconds * 1e9), or None for no limit"
        ) from None


def check_cpus(cpus: tuple[object, ...]) -> None:
    """Raise TypeError or ValueError for what is not the number of a CPU.

    >>> check_cpus((0, 7))
    """
    for cpu in cpus:
        if isinstance(cpu, bool) or not isinstance(cpu, int):
            raise TypeError(f"a CPU is an int from 0 on, not {cpu!r}")
        if cpu < 0:
            raise ValueError(f"no CPU has the number {cpu}: they count from 0")


class Selection(NamedTuple):
    """The records to read: those for which all of this holds.

    `patterns` of events are as in `set_event`, one of each group has to match; `cpus` and `pids`
    are None for all; `where` are filters in the kernel's language.
    """

    window: Window = ALL_TIMES
    patterns: tuple[tuple[str, ...], ...] = ()
    cpus: frozenset[int] | None = None
    pids: frozenset[int] | None = None
    where: tuple[str, ...] = ()

    @property
    def is_by_record(self) -> bool:
        """Whether records are chosen by more than their time."""
        return bool(self.patterns or self.where) or self.cpus is not None or self.pids is not None
