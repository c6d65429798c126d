"""Heat maps: how many samples there are by time and length."""

from __future__ import annotations

from array import array
from math import log2
from typing import TYPE_CHECKING, Any, NamedTuple

from tracepoint.analysis.sched.rows import RowFlag

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tracepoint.analysis.coverage import Coverage
    from tracepoint.analysis.report import Report
    from tracepoint.report.pack import Pack

_COLUMNS = 180
# A row is a quarter of an octave: its ends differ by a fifth.
_ROWS_BY_OCTAVE = 4
# A wait whose begin and end are known: no loss cut it, and its waking was seen.
_RAN = int(RowFlag.RAN)
_EXACT = int(RowFlag.RAN | RowFlag.CUT | RowFlag.LATE)
_OPEN = -1


class TimedLengths(NamedTuple):
    """When something began and how long it took, in ns."""

    key: str
    title: str
    times: Sequence[int]
    lengths: Sequence[int]
    events: Sequence[str]


def samples_of(report: Report, events: Sequence[str]) -> Iterator[TimedLengths]:
    """Yield the lengths of the rows of each table that has such, of threads those of waits for a CPU.

    `events` are those that the rows come from.
    """
    tables = report.tables
    if "thread_state" in tables:
        states = tables["thread_state"]
        rows = zip(states["ts"].numbers, states["dur"].numbers, states["flags"].numbers, strict=True)
        found = ((ts, dur) for ts, dur, flags in rows if flags & _EXACT == _RAN)
        yield TimedLengths("waits", "Waits for a CPU", *_columns(found), events)
        return
    for table in tables.values():
        if {"ts", "dur"} <= set(table.columns):
            both = zip(table["ts"].numbers, table["dur"].numbers, strict=True)
            found = ((ts, dur) for ts, dur in both if dur != _OPEN)
            yield TimedLengths(table.name, table.name.replace("_", " "), *_columns(found), events)


def _columns(rows: Iterable[tuple[int, int]]) -> tuple[array[int], array[int]]:
    times, lengths = array("q"), array("q")
    for ts, dur in rows:
        times.append(ts)
        lengths.append(dur)
    return times, lengths


def row_of(ns: int) -> int:
    """Return the row of a length: four to each doubling, those below 1 ns in row 0.

    >>> row_of(0), row_of(1), row_of(2), row_of(1024)
    (0, 0, 4, 40)
    """
    return int(log2(ns) * _ROWS_BY_OCTAVE) if ns > 1 else 0


def heat_facts(samples: TimedLengths, coverage: Coverage, pack: Pack) -> dict[str, Any] | None:
    """Return what the page's script draws a heat map from; None without samples."""
    if not samples.times:
        return None
    rows = array("i", map(row_of, samples.lengths))
    low, high = min(rows), max(rows)
    counts = array("I", bytes(4 * _COLUMNS * (high - low + 1)))
    span = max(coverage.duration, 1)
    for ts, row in zip(samples.times, rows, strict=True):
        column = min(max((ts - coverage.start) * _COLUMNS // span, 0), _COLUMNS - 1)
        counts[(row - low) * _COLUMNS + column] += 1
    return {
        "key": samples.key,
        "title": samples.title,
        "columns": _COLUMNS,
        "low": low,
        "by_octave": _ROWS_BY_OCTAVE,
        "n_rows": high - low + 1,
        "n": len(rows),
        "counts": pack.add(counts),
    }
