"""Taps: the records of one event, given to a function before and after the event is recorded."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from tracepoint.record.pages import ring_records
from tracepoint.runtime.fire.probes import DEFAULT_PRIORITY

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.record.raw import RawRecord
    from tracepoint.runtime.event_control import EventControl

SCRATCH_PAGES = 4


class Tap:
    """Gives the records of one event to `run`.

    The core makes them in `buffer`, which nothing else uses, so that recording and `run` see the same bytes.
    """

    def __init__(self, event: EventControl, buffer: Any, run: Callable[[RawRecord], None]) -> None:
        self._event = event
        self._buffer = buffer
        self._run = run
        self._mine = threading.local()

    def attach(self, after: Callable[..., object]) -> None:
        """Begin; `after` is called when the event was recorded."""
        probes = self._event.probes
        entry = ("record", self._buffer, self._event.id, None)
        probes.insert(DEFAULT_PRIORITY + 2, self, entry)
        probes.insert(DEFAULT_PRIORITY + 1, self._run, ("probe", self._fire))
        probes.insert(DEFAULT_PRIORITY - 1, self._mine, ("probe", after))

    def detach(self) -> None:
        """End."""
        for key in (self, self._run, self._mine):
            self._event.probes.remove(key)

    def _ring(self) -> int | None:
        tid = threading.get_native_id()
        return next((s for s, owner, ended, *_ in self._buffer.rings() if owner == tid and not ended), None)

    def _fire(self, *_: object) -> None:
        serial = getattr(self._mine, "serial", None)
        try:
            page = None if serial is None else self._buffer.read(serial)
        except KeyError:
            serial = page = None
        if serial is None or page is None:
            serial = self._mine.serial = self._ring()
            page = None if serial is None else self._buffer.read(serial)
        while page is not None:
            for record in ring_records([page]):
                self._run(record)
            page = self._buffer.read(serial)
