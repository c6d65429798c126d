"""What the timeline shows: for each CPU, task or track the slices of time that an analysis has rows of."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from tracepoint.decode.plan import ColumnKind

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from tracepoint.analysis.report import Report
    from tracepoint.decode.column import Column
    from tracepoint.decode.table import ColumnTable

#: What a part of a lane is drawn as, where its words are states of threads.
BANDS = ("running", "runnable", "uninterruptible", "asleep")
MAX_LANES = 48
#: How many rows that overlap a lane shows below each other.
MAX_DEPTH = 4
_OPEN = -1
#: The columns that say which lane a row is in, and what a lane is called.
_TRACKS = {"utid": "task ", "tid": "task ", "pid": "task ", "cpu": "CPU ", "dev": "device "}
_TASKS = ("tid", "pid")
_WORDS = ("name", "key", "what", "state", "vector", "kind", "type")


@dataclass
class Lane:
    """Slices that do not overlap, by time: when they begin and end in ns, and the number of their word."""

    name: str
    starts: array[int] = field(default_factory=lambda: array("q"))
    stops: array[int] = field(default_factory=lambda: array("q"))
    words: array[int] = field(default_factory=lambda: array("i"))

    def __len__(self) -> int:
        return len(self.starts)


class LaneGroup(NamedTuple):
    """Lanes of one kind; `words` are what slices are called, `bands` the band of each word in BANDS.

    Without `bands`, a slice has the colour of its word.  `n_more` lanes and `n_hidden` slices are not shown.
    """

    key: str
    title: str
    lanes: Sequence[Lane]
    words: Sequence[str]
    bands: Sequence[int] = ()
    n_more: int = 0
    n_hidden: int = 0
    events: Sequence[str] = ()


def lane_groups(
    report: Report, events: Sequence[str], tasks: Mapping[int, str] | None = None
) -> Iterator[LaneGroup]:
    """Yield what the timeline shows of a report: its tables whose rows have a time and a length.

    `events` are those that the rows come from, `tasks` the names of tasks by id.
    """
    tables = report.tables
    threads = thread_names(tables)
    for table in tables.values():
        if {"ts", "dur"} <= set(table.columns) and len(table):
            yield _group(table, threads, tasks or {}, report.coverage.stop)._replace(events=events)


def thread_names(tables: Mapping[str, ColumnTable]) -> dict[int, str]:
    """Return what the threads of a report are called, by their `utid`: `sh-104`; idle ones an empty name."""
    table = tables.get("thread")
    if table is None:
        return {}
    columns = [table[name].tolist() for name in ("utid", "tid", "name")]
    found = {}
    for utid, tid, name in zip(*columns, strict=True):
        found[utid] = f"{name}-{tid}" if tid else ""
    return found


def _group(table: ColumnTable, threads: Mapping[int, str], tasks: Mapping[int, str], stop: int) -> LaneGroup:
    track = _track_of(table)
    tracks = table[track].numbers if track is not None else [0] * len(table)
    words, of_row = _words(table, threads)
    times, lengths = table["ts"].numbers, table["dur"].numbers
    # What never has an end is a point in time: a page fault among other traps.
    lasting = {word for word, length in zip(of_row, lengths, strict=True) if length != _OPEN}
    rows = _rows_by(tracks)
    weigh = _weigh(table, track, words, of_row)
    # Only lanes that are shown are made.
    weights = {number: weigh(own) for number, own in rows.items() if any(of_row[row] >= 0 for row in own)}
    chosen = sorted(weights, key=lambda number: (-weights[number], number))
    names: Mapping[int, str] = threads if track == "utid" else {}
    if track in _TASKS:
        names = {number: f"{tasks[number]}-{number}" for number in chosen if number in tasks}
    shown: list[Lane] = []
    n_hidden = 0
    for number in chosen[:MAX_LANES]:
        in_order = sorted(rows[number], key=times.__getitem__)
        slices = ((times[row], lengths[row], of_row[row]) for row in in_order)
        lanes, n = _stacked(slices, len(in_order), stop, lasting)
        name = names.get(number) or (f"{_TRACKS[track]}{number}" if track else table.name)
        shown += (_named(lane, name, depth) for depth, lane in enumerate(lanes))
        n_hidden += n
    band = _BANDS_OF.get(table.name)
    bands = [band(word) for word in words] if band else []
    title = _TITLES.get(table.name, table.name.replace("_", " "))
    return LaneGroup(table.name, title, shown, words, bands, max(len(chosen) - MAX_LANES, 0), n_hidden)


def _rows_by(tracks: Iterable[int]) -> dict[int, array[int]]:
    """Return the numbers of the rows of each track, which take less memory than the rows."""
    found: dict[int, array[int]] = {}
    for row, number in enumerate(tracks):
        own = found.get(number)
        if own is None:
            own = found[number] = array("q")
        own.append(row)
    return found


def _track_of(table: ColumnTable) -> str | None:
    """Return the column that says which lane a row is in; None: all rows are in one."""
    if table.name == "sched":
        return "cpu"
    numbers = (name for name in _TRACKS if name in table.columns)
    return next((name for name in numbers if table[name].plan.kind is ColumnKind.NUMBER), None)


def _stacked(
    rows: Iterable[tuple[int, int, int]], n: int, stop: int, lasting: Collection[int]
) -> tuple[list[Lane], int]:
    """Return `n` rows by time as lanes without overlaps, and how many had no place.

    A row without an end lasts until `stop` when it is the last and its word is one of those that have ends;
    before others nobody knows when it ended.
    """
    lanes: list[Lane] = []
    n_hidden = 0
    last = n - 1
    for at, (start, length, word) in enumerate(rows):
        if word < 0:
            continue
        end = start + length if length != _OPEN else stop if at == last and word in lasting else start
        for lane in lanes:
            if lane.stops[-1] <= start:
                break
        else:
            if len(lanes) == MAX_DEPTH:
                n_hidden += 1
                continue
            lane = Lane("")
            lanes.append(lane)
        lane.starts.append(start)
        lane.stops.append(max(start, end))
        lane.words.append(word)
    return lanes, n_hidden


def _named(lane: Lane, name: str, depth: int) -> Lane:
    lane.name = name if depth == 0 else f"{name} ({depth + 1})"
    return lane


def _weigh(
    table: ColumnTable, track: str | None, words: Sequence[str], of_row: Sequence[int]
) -> Callable[[Sequence[int]], int]:
    """Return what gives the weight of a lane by the numbers of its rows: those with most come first.

    Threads have the time that they ran, other tasks the number of their rows; all others have none.
    """
    if table.name == "thread_state":
        running, lengths = words.index("Running") if "Running" in words else -1, table["dur"].numbers
        return lambda rows: sum(max(lengths[row], 0) for row in rows if of_row[row] == running)
    if track in _TASKS:
        return len
    return lambda _rows: 0


def band_of(state: str) -> int:
    """Return the number in BANDS of a state of a thread.

    >>> [BANDS[band_of(state)] for state in ("Running", "R+", "D", "S")]
    ['running', 'runnable', 'uninterruptible', 'asleep']
    """
    if state == "Running":
        return 0
    return {"R": 1, "D": 2}.get(state[:1], 3)


def _band_of_part(kind: str) -> int:
    return BANDS.index(kind) if kind in BANDS else BANDS.index("asleep")


_TITLES = {
    "sched": "CPUs",
    "thread_state": "Tasks",
    "service_request": "Requests",
    "service_part": "What the threads of requests did",
}
#: Tables whose rows have the colours of states.
_BANDS_OF: Mapping[str, Callable[[str], int]] = {"thread_state": band_of, "service_part": _band_of_part}
#: The word of what is not drawn, as nobody knows what it was.
_UNKNOWN = "unknown"


def _words(table: ColumnTable, threads: Mapping[int, str]) -> tuple[list[str], Sequence[int]]:
    """Return what slices of a table are called, and the number of each row; -1 for one that is not shown."""
    if table.name == "sched" and threads:
        utids = list(threads)
        at = {utid: number if threads[utid] else -1 for number, utid in enumerate(utids)}
        return [threads[utid] for utid in utids], [at.get(utid, -1) for utid in table["utid"].numbers]
    first = ("kind",) if table.name == "service_part" else ()
    column = next((table[name] for name in (*first, *_WORDS) if name in table.columns), None)
    if column is None:
        return [table.name], [0] * len(table)
    words, of_row = (
        (column.words, column.numbers) if column.plan.kind is ColumnKind.TEXT else _numbered(column)
    )
    if table.name in _BANDS_OF and _UNKNOWN in words:
        unknown = words.index(_UNKNOWN)
        of_row = [-1 if word == unknown else word for word in of_row]
    return words, of_row


def _numbered(column: Column) -> tuple[list[str], Sequence[int]]:
    places: dict[str, int] = {}
    rows = [places.setdefault(str(value), len(places)) for value in column.tolist()]
    return list(places), rows
