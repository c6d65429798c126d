"""A text of records that is still being written: `trace_pipe`, or a file that grows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.tracefile.container import DamageLog, PartsContainer
from tracepoint.tracefile.filebytes import close_bytes
from tracepoint.tracefile.textfile import TextReader

if TYPE_CHECKING:
    from pathlib import Path

    from tracepoint.tracefile.filebytes import Bytes
    from tracepoint.tracefile.live import Live


class LiveText:
    """The records of a text as they come."""

    def __init__(self, file: Live, path: str, folder: Path | None, log: DamageLog) -> None:
        self._file = file
        self._path = path
        self._log = log
        self._opened: list[Bytes] = []
        self._reader = TextReader(folder, self._opened, log.report)

    @property
    def lost(self) -> int:
        """How many events the lines say were lost; LOST_UNKNOWN (-1): some."""
        return self._reader.lost

    def take(self, *, is_pause: bool, is_last: bool = False) -> PartsContainer:
        """Return the records of the whole lines that were read; a container for each call.

        With `is_pause` the record of the last line is complete: there is no other line of it now.  With
        `is_last` what follows the last newline is reported and left out.
        """
        for data in self._opened:
            close_bytes(data)
        self._opened.clear()
        self._reader.feed(self._file.take(len(self._file.waiting)))
        if is_last:
            self._reader.end()
        elif is_pause:
            self._reader.end_record()
        parts = self._reader.parts()
        return PartsContainer(self._path, "text that is followed", lambda _: parts, [], self._log)
