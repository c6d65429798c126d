"""One port of a guest seen from here: bytes in and out until a deadline, and errors that end the guest."""

from __future__ import annotations

import select
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from tracepoint.errors import LabError

_CHUNK = 1 << 20


class Channel:
    """A port's socket and the data that was received but not read yet.

    Deadlines are times of `time.monotonic`.  `broken` makes the error to raise from a sentence about
    the problem: no answer in time, or the other side is gone.
    """

    def __init__(self, port: socket.socket, broken: Callable[[str], LabError]) -> None:
        self._port = port
        self._broken = broken
        self._received = bytearray()

    @property
    def has_line(self) -> bool:
        """Whether a whole line has been received."""
        return b"\n" in self._received

    def is_readable(self, seconds: float) -> bool:
        """Wait for bytes or the end, up to a time limit."""
        poll = select.poll()
        poll.register(self._port, select.POLLIN)
        return bool(poll.poll(max(seconds, 0) * 1000))

    def send(self, message: bytes, deadline: float) -> None:
        """Send all bytes."""
        try:
            self._port.settimeout(max(deadline - time.monotonic(), 0.1))
            self._port.sendall(message)
        except OSError:
            raise self._broken("the guest does not take requests") from None

    def receive(self, deadline: float) -> None:
        """Wait for more bytes and keep them."""
        try:
            self._port.settimeout(max(deadline - time.monotonic(), 0.01))
            data = self._port.recv(_CHUNK)
        except TimeoutError:
            raise self._broken("the guest hangs: no answer in time") from None
        except OSError:
            data = b""
        if not data:
            raise self._broken("the guest is gone")
        self._received += data

    def read_line(self, deadline: float) -> bytes:
        """Return the next line without its end."""
        while not self.has_line:
            self.receive(deadline)
        return self._take(self._received.index(b"\n") + 1)[:-1]

    def read_bytes(self, size: int, patience: float) -> bytes:
        """Return the next `size` bytes; between two that arrive, `patience` seconds may pass."""
        while len(self._received) < size:
            self.receive(time.monotonic() + patience)
        return self._take(size)

    def copy_until(self, mark: bytes, write: Callable[[bytes], None], deadline: float) -> None:
        """Pass all bytes up to `mark` to `write` as they arrive; the mark itself is read and dropped."""
        while True:
            at = self._received.find(mark)
            ready = self._take(at if at >= 0 else len(self._received) - _begun(self._received, mark))
            if ready:
                write(ready)
            if at >= 0:
                self._take(len(mark))
                return
            self.receive(deadline)

    def close(self) -> None:
        """Close the socket."""
        self._port.close()

    def _take(self, size: int) -> bytes:
        data = bytes(memoryview(self._received)[:size])
        del self._received[:size]
        return data


def _begun(data: bytearray, mark: bytes) -> int:
    """Return how many bytes at the end of `data` may be the beginning of `mark`.

    >>> _begun(bytearray(b"words EN"), b"END")
    2
    """
    return next((size for size in range(len(mark) - 1, 0, -1) if data.endswith(mark[:size])), 0)
