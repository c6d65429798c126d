"""Signals that end the program: as with Ctrl-C, everything is cleaned up first."""

from __future__ import annotations

import contextlib
import signal
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType
    from typing import NoReturn

_ENDING = (signal.SIGTERM, signal.SIGHUP)


class Ended(BaseException):
    """The program is asked to end: not an error, so no error handler may catch it."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextlib.contextmanager
def ended_by_signal() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise `Ended` here, so that guests, builds and settings do not outlive us.

    A signal that is ignored (nohup) stays ignored; only the main thread can do this.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [number for number in _ENDING if signal.getsignal(number) is signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, _end)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def left_to_others() -> Iterator[None]:
    """Restore these signals while a C library handles them itself, as libfuse does for unhandled ones."""
    numbers = [number for number in _ENDING if signal.getsignal(number) is _end]
    for number in numbers:
        signal.signal(number, signal.SIG_DFL)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, _end)


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    # Only once: cleaning up may take some time.
    signal.signal(number, signal.SIG_IGN)
    raise Ended(number)
