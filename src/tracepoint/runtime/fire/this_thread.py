"""What is known of this thread: its name, and the CPU that it runs on."""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Callable


COMM_LENGTH = 15


def comm_of_thread() -> bytes:
    """Return the name of this thread: the kernel's, or what `name_of` makes of it."""
    return name_of(threading.current_thread(), kernel_comm())


def kernel_comm(of: str = "thread-self") -> bytes:
    """Return the kernel's name of this thread, or of the process (`self`)."""
    try:
        with open(f"/proc/{of}/comm", "rb") as file:  # noqa: PTH123 - as early and as light as can be
            return file.read().rstrip(b"\n")
    except OSError:
        return b"<...>"


def name_of(thread: threading.Thread, comm: bytes) -> bytes:
    """Return Python's name of a thread, as long as a comm; csrc/module_names.c is its twin.

    The first thread has the name of the process, and a name that was set in the kernel counts, as does
    that of a thread which Python did not make.
    """
    is_foreign = type(thread).__name__ == "_DummyThread"
    if is_foreign or thread is threading.main_thread() or comm != kernel_comm("self"):
        return comm
    short = thread.name.encode(errors="replace")[:COMM_LENGTH].decode(errors="ignore")
    shown = "".join("?" if char < " " or char == "\x7f" else char for char in short)
    return shown.encode() or comm


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
