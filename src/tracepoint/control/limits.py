"""When a recording ends, and when it goes on in the next file."""

from __future__ import annotations

import threading
import time

from tracepoint.errors import TracepointError
from tracepoint.named import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_LOOK = 0.05
_MAX_SECONDS = 1e6


class RecordLimits(NamedTuple):
    """When a recording ends: see `record.record`.  `max_bytes` is that of each file."""

    seconds: float | None = None
    until: threading.Event | None = None
    during: Callable[[], object] | None = None
    max_bytes: int | None = None
    newest_ns: int | None = None
    while_on: bool = False

    def check(self) -> None:
        """Raise TracepointError for a recording that would not end, and for a wrong number."""
        if self.seconds is None and self.until is None and self.during is None:
            raise TracepointError("say when the recording ends: seconds, until or during")
        if self.seconds is not None and not 0 <= self.seconds <= _MAX_SECONDS:
            raise TracepointError(f"{self.seconds:g} seconds: 0 to {_MAX_SECONDS:g}")
        if self.max_bytes is not None and self.max_bytes < 1:
            raise TracepointError(f"a recording of at most {self.max_bytes} bytes: at least 1 is needed")
        if self.newest_ns is not None and self.newest_ns < 0:
            raise TracepointError(f"the newest {self.newest_ns} ns of a recording: 0 or more")

    def wait(self, is_done: Callable[[], bool]) -> None:
        """Wait until one of the limits is reached, or nothing more can come."""
        if self.during is not None:
            self.during()
            return
        stop = self.until or threading.Event()
        end = time.monotonic() + (_MAX_SECONDS if self.seconds is None else self.seconds)
        while not is_done():
            left = end - time.monotonic()
            if left <= 0 or stop.wait(min(left, _LOOK)):
                break


class Rotation(NamedTuple):
    """When a recording goes on in the next file, besides `max_bytes`, and how many are kept: 0 is all."""

    n_kept: int = 0
    seconds: float | None = None

    def check(self, limits: RecordLimits) -> None:
        """Raise TracepointError for one that never comes, and for a wrong number."""
        if self.seconds is None and limits.max_bytes is None:
            raise TracepointError("say when the next file begins: after a time, or at a size (max_bytes)")
        if self.seconds is not None and not 0 < self.seconds <= _MAX_SECONDS:
            raise TracepointError(
                f"a file for {self.seconds:g} seconds: more than 0, at most {_MAX_SECONDS:g}"
            )
        if self.n_kept < 0:
            raise TracepointError(f"the newest {self.n_kept} files: 0 (all) or more")
