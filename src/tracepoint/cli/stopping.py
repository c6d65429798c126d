"""Signals as the end of what a command does, and not of the command."""

from __future__ import annotations

import contextlib
import signal
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class SignalEvent(threading.Event):
    """An event that a signal handler may set while the same thread waits for it.

    `threading.Event.set` takes a lock that `wait` holds for a moment: a handler that runs then never
    returns.  Here it only releases a lock, which never waits.
    """

    def __init__(self) -> None:
        super().__init__()
        self._is_set = False
        self._closed = threading.Lock()
        self._closed.acquire()

    def is_set(self) -> bool:
        """Return whether it is set."""
        return self._is_set

    def set(self) -> None:
        """Set it, and wake what waits."""
        self._is_set = True
        self._open()

    def clear(self) -> None:
        """Wait for the next time."""
        self._is_set = False
        self._closed.acquire(blocking=False)
        if self._is_set:
            # Set again in the meantime.
            self._open()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for at most `timeout` seconds, and return whether it is set."""
        if not self._is_set and self._closed.acquire(timeout=-1 if timeout is None else max(timeout, 0)):
            # What else waits is woken too.
            self._open()
        return self._is_set

    def _open(self) -> None:
        with contextlib.suppress(RuntimeError):
            self._closed.release()


@contextlib.contextmanager
def interrupt_ends() -> Iterator[threading.Event]:
    """Yield an event that Ctrl-C sets; a command that runs in the meantime gets the signal itself."""
    stop = SignalEvent()
    old = signal.signal(signal.SIGINT, lambda *_: stop.set())
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, old)
