"""Recording to files one after the other, of which the newest are kept."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from collections import deque
from typing import TYPE_CHECKING

from tracepoint.control.readers import Readers
from tracepoint.control.recording import check_target, numbered
from tracepoint.errors import TracepointError
from tracepoint.tracefile.compression import compressor_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tracepoint.control.array import ArrayFiles
    from tracepoint.control.limits import RecordLimits, Rotation
    from tracepoint.control.part import RecordedPart
    from tracepoint.control.status import RecordStatus
    from tracepoint.tracefile.recording import Recording

_LOOK_S = 0.01


def record_files(
    array: ArrayFiles,
    path: str | os.PathLike[str],
    limits: RecordLimits,
    rotation: Rotation,
    *,
    starts: bool = False,
    replace: bool = False,
    compression: str = "none",
    watch: Callable[[RecordStatus], None] | None = None,
    tell: Callable[[Recording], None] = lambda _: None,
) -> tuple[Recording, ...]:
    """Save what an array records as files one after the other: `web.001.dat` and so on for `web.dat`.

    At `max_bytes`, and when a file has lasted for the rotation's seconds, each reader goes on with the next
    file where it has left the last one, so nothing is lost or saved twice there; a file is written while the
    next one is recorded.  Of more files than are kept the oldest is removed.  Names that are there are passed
    over unless `replace`.  `tell` gets each file that is complete, in a thread of its own; all of them are
    returned.  Everything else is as in `record.record`; files stay where a later one cannot be written.
    """
    limits.check()
    rotation.check(limits)
    compressor_named(compression)
    target = os.fspath(path)
    check_target(target, replace=True)
    saver = _Saver(numbered(target, replace=replace), rotation.n_kept, tell)
    try:
        with Readers(
            array, target, starts=starts, compression=compression, finished=saver.finished.put
        ) as readers:
            over = threading.Event()
            threads = [threading.Thread(target=saver.save_all, args=(readers,), daemon=True)]
            if rotation.seconds is not None:
                turns = threading.Thread(target=_turn, args=(readers, rotation.seconds, over), daemon=True)
                threads.append(turns)
            for thread in threads:
                thread.start()
            try:
                readers.collect(limits, watch)
            finally:
                over.set()
                saver.finished.put(None)
                for thread in threads:
                    thread.join()
    except OSError as error:
        saver.error = error
    return saver.result(target)


def _turn(readers: Readers, seconds: float, over: threading.Event) -> None:
    """End each part when it has lasted for its time."""
    while not readers.has_begun.wait(_LOOK_S):
        if over.is_set():
            return
    part = readers.newest_part
    while not over.wait(max(part.began + seconds - time.monotonic(), _LOOK_S)):
        if time.monotonic() >= part.began + seconds:
            part.end()
        part = readers.newest_part


class _Saver:
    """What writes parts that are finished, and removes the oldest files."""

    def __init__(self, names: Iterator[str], n_kept: int, tell: Callable[[Recording], None]) -> None:
        self.saved: list[Recording] = []
        self.finished: queue.SimpleQueue[RecordedPart | None] = queue.SimpleQueue()
        self.error: OSError | TracepointError | None = None
        self._names, self._n_kept, self._tell = names, n_kept, tell
        self._kept: deque[str] = deque()

    def result(self, target: str) -> tuple[Recording, ...]:
        """Return what was saved; raises TracepointError where something could not be."""
        if self.error is None:
            return tuple(self.saved)
        reason = getattr(self.error, "strerror", None) or self.error
        raise TracepointError(
            f"{target}: {reason}; {len(self.saved)} files were saved before"
        ) from self.error

    def save_all(self, readers: Readers) -> None:
        """Save each part that is finished until there are no more."""
        try:
            while (part := self.finished.get()) is not None:
                # Where the end comes when a part has just ended, the next one has nothing.
                if not (part.is_last and self.saved and readers.is_empty(part)):
                    self._keep(readers.save(part, next(self._names), lambda _: None))
                readers.remove(part)
                readers.make_spare()
        except (OSError, TracepointError) as error:
            self.error = error
            readers.stop()

    def _keep(self, saved: Recording) -> None:
        self.saved.append(saved)
        self._kept.append(saved.name)
        self._tell(saved)
        while self._n_kept and len(self._kept) > self._n_kept:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._kept.popleft())
