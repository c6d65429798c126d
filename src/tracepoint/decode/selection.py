"""What of a recording is read: times, events, CPUs, tasks and filters."""

from __future__ import annotations

from typing import NamedTuple

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
