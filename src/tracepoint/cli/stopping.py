"""Ctrl-C as the end of what a command does, and not of the command."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def interrupt_ends() -> Iterator[threading.Event]:
    """Yield an event that Ctrl-C sets; a command that runs in the meantime gets the signal itself."""
    stop = threading.Event()
    old = signal.signal(signal.SIGINT, lambda *_: stop.set())
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, old)
