"""Heat maps: how many samples there are by time and length."""

from __future__ import annotations

from array import array
from math import log2
from typing import TYPE_CHECKING, Any

from tracepoint.analysis.sched.rows import RowFlag

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tracepoint.analysis.coverage import Coverage
    from tracepoint.decode.table import ColumnTable
    from tracepoint.report.pack import Pack

_COLUMNS = 180
# A row is a quarter of an octave: its ends differ by a fifth.
_ROWS_BY_OCTAVE = 4
# A wait whose begin and end are known: no loss cut it, and its waking was seen.
_RAN = int(RowFlag.RAN)
_EXACT = int(RowFlag.RAN | RowFlag.CUT | RowFlag.LATE)
_OPEN = -1


class HeatMap:
    """How many samples of a kind there are by time and length."""

    def __init__(self, key: str, title: str, coverage: Coverage) -> None:
        self.key = key
        self.title = title
        self._start, self._span = coverage.start, max(coverage.duration, 1)
        self._counts: dict[int, array[int]] = {}

    def add(self, samples: Iterable[tuple[int, int]]) -> None:
        """Count samples: when they began and how long they took, in ns."""
        counts, start, span = self._counts, self._start, self._span
        for ts, length in samples:
            row = row_of(length)
            own = counts.get(row)
            if own is None:
                own = counts[row] = array("I", bytes(4 * _COLUMNS))
            own[min(max((ts - start) * _COLUMNS // span, 0), _COLUMNS - 1)] += 1

    def facts(self, pack: Pack) -> dict[str, Any] | None:
        """Return what the page's script draws the map from; None without samples."""
        if not self._counts:
            return None
        low, high = min(self._counts), max(self._counts)
        empty = array("I", bytes(4 * _COLUMNS))
        counts = array("I")
        for row in range(low, high + 1):
            counts.extend(self._counts.get(row, empty))
        return {
            "key": self.key,
            "title": self.title,
            "columns": _COLUMNS,
            "low": low,
            "by_octave": _ROWS_BY_OCTAVE,
            "n_rows": high - low + 1,
            "n": sum(counts),
            "counts": pack.add(counts),
        }


class HeatMaps:
    """The maps of a report: of rows of each table that has lengths, of threads those of waits for a CPU."""

    def __init__(self, coverage: Coverage) -> None:
        self._coverage = coverage
        self.all: dict[str, HeatMap] = {}

    def add(self, tables: Mapping[str, ColumnTable]) -> None:
        """Count the rows of tables, or of a part of them."""
        if "thread_state" in tables:
            states = tables["thread_state"]
            rows = zip(states["ts"].numbers, states["dur"].numbers, states["flags"].numbers, strict=True)
            found = ((ts, dur) for ts, dur, flags in rows if flags & _EXACT == _RAN)
            self._map("waits", "Waits for a CPU").add(found)
            return
        for table in tables.values():
            if {"ts", "dur"} <= set(table.columns):
                lengths = table["dur"].numbers
                # Of points in time there may be millions, and none is a sample.
                if set(lengths) != {_OPEN}:
                    both = zip(table["ts"].numbers, lengths, strict=True)
                    found = ((ts, dur) for ts, dur in both if dur != _OPEN)
                    self._map(table.name, table.name.replace("_", " ")).add(found)

    def _map(self, key: str, title: str) -> HeatMap:
        if key not in self.all:
            self.all[key] = HeatMap(key, title, self._coverage)
        return self.all[key]


def row_of(ns: int) -> int:
    """Return the row of a length: four to each doubling, those below 1 ns in row 0.

    >>> row_of(0), row_of(1), row_of(2), row_of(1024)
    (0, 0, 4, 40)
    """
    return int(log2(ns) * _ROWS_BY_OCTAVE) if ns > 1 else 0
