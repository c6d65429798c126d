"""Priorities of the kernel as the classes that people know them by."""

from __future__ import annotations

UNKNOWN_CLASS = "unknown"
#: The classes, the most urgent first.
# include/linux/sched/prio.h: MAX_DL_PRIO 0, MAX_RT_PRIO 100, DEFAULT_PRIO 120, MAX_PRIO 140; deadline is -1.
CLASSES = {
    "deadline": range(-1, 0),
    "real-time": range(100),
    "nice -20..-1": range(100, 120),
    "nice 0": range(120, 121),
    "nice 1..19": range(121, 140),
}


def priority_class(priority: int) -> str:
    """Return the class of a task's `prio`, as in sched_switch.

    SCHED_BATCH and SCHED_IDLE are not in it: their tasks have the numbers of their nice values
    (__normal_prio() of kernel/sched/syscalls.c).

    >>> [priority_class(priority) for priority in (-1, 98, 100, 120, 139, 500)]
    ['deadline', 'real-time', 'nice -20..-1', 'nice 0', 'nice 1..19', 'unknown']
    """
    return next((name for name, own in CLASSES.items() if priority in own), UNKNOWN_CLASS)
