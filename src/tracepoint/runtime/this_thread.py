"""What the kernel knows of this thread: its name, and the CPU that it runs on."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Callable


def comm_of_thread() -> bytes:
    """Return the kernel's name of this thread."""
    try:
        with open("/proc/thread-self/comm", "rb") as file:  # noqa: PTH123 - as early and as light as can be
            return file.read().rstrip(b"\n")
    except OSError:
        return b"<...>"


@functools.cache
def _sched_getcpu() -> Callable[[], int]:
    try:
        import ctypes  # noqa: PLC0415 - not every Python has it

        found = ctypes.CDLL(None).sched_getcpu
        found.restype = ctypes.c_int
    except (ImportError, OSError, AttributeError):
        return lambda: 0
    else:
        return cast("Callable[[], int]", found)


def current_cpu() -> int:
    """Return the number of the CPU that this thread runs on, 0 where that cannot be known."""
    return max(_sched_getcpu()(), 0)
