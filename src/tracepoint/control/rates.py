"""How often events fire, counted by `hist` triggers in the kernel: nothing is read but the sums."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.control.hist import Named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.control.hist import HistTable, Value
    from tracepoint.control.instance import TraceArray

#: What counts are kept by, beside the event: the key of the histogram.
KEYS = {"event": "common_cpu", "cpu": "common_cpu", "task": "common_pid.execname"}


@dataclass(frozen=True, slots=True)
class EventRate:
    """One event, of one CPU or task (empty for all): how often it fired a second, and since the start.

    `pid` is that of the task, None where counts are not by task.
    """

    event: str
    of: str
    pid: int | None
    rate: float
    total: int


class EventRates:
    """The counts of events of an array: `by` is `event`, `cpu` or `task`.

    Sets a trigger for each event, which the removal of the array removes.  `n_dropped` counts what had no
    room in a histogram (2048 CPUs or tasks an event).  Raises TracefsError where the kernel has no
    histograms.
    """

    def __init__(self, array: TraceArray, names: Sequence[str], by: str = "event") -> None:
        self._by = by
        self._events = {name: array.event(name) for name in names}
        self._before: dict[tuple[str, str, int | None], int] = {}
        self.n_dropped = 0
        # What fired before is in the first counts only.
        self._at = time.monotonic()
        for event in self._events.values():
            event.add_trigger(f"hist:keys={KEYS[by]}")

    def read(self) -> tuple[float, list[EventRate]]:
        """Return the seconds since the last call, and the events that fired, the most frequent first."""
        now = time.monotonic()
        seconds, self._at = max(now - self._at, 1e-9), now
        counts: dict[tuple[str, str, int | None], int] = {}
        self.n_dropped = 0
        for name, event in self._events.items():
            for table in event.histograms()[-1:]:
                self.n_dropped += table.dropped
                self._add(name, table, counts)
        found = [
            EventRate(*key, (total - self._before.get(key, 0)) / seconds, total)
            for key, total in counts.items()
        ]
        self._before = counts
        return seconds, sorted(found, key=lambda one: (-one.rate, -one.total, one.event, one.of))

    def _add(self, name: str, table: HistTable, counts: dict[tuple[str, str, int | None], int]) -> None:
        if self._by == "event":
            if table.hits:
                counts[name, "", None] = table.hits
            return
        for row in table.rows:
            of, pid = _named(next(iter(row.keys.values())))
            n = row.values["hitcount"]
            counts[name, of, pid] = counts.get((name, of, pid), 0) + (n if isinstance(n, int) else 0)


def _named(value: Value) -> tuple[str, int | None]:
    return (value.name, value.number) if isinstance(value, Named) else (str(value), None)
