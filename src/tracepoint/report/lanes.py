"""What the timeline shows: for each CPU, task or track the slices of time that an analysis has rows of."""

from __future__ import annotations

import tempfile
from array import array
from collections import Counter
from functools import cached_property
from io import SEEK_END
from itertools import chain, islice
from operator import le
from typing import IO, TYPE_CHECKING

from tracepoint.decode.plan import ColumnKind
from tracepoint.named import NamedTuple
from tracepoint.tracefile.sieve import MIN_TIME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Self, TypeAlias

    from tracepoint.analysis.report import Report
    from tracepoint.decode.column import Column
    from tracepoint.decode.table import ColumnTable

    TakeTables: TypeAlias = Callable[[Mapping[str, ColumnTable]], None]

#: What a part of a lane is drawn as, where its words are states of threads.
BANDS = ("running", "runnable", "uninterruptible", "asleep")
MAX_LANES = 48
#: How many rows that overlap a lane shows below each other.
MAX_DEPTH = 4
# So many slices of a lane are kept together in the file of a spool.
_BLOCK = 1 << 14
_OPEN = -1
#: The columns that say which lane a row is in, and what a lane is called.
_TRACKS = {"utid": "task ", "tid": "task ", "pid": "task ", "cpu": "CPU ", "dev": "device "}
_TASKS = ("tid", "pid")
_WORDS = ("name", "key", "what", "state", "vector", "kind", "type")


class LaneSpool:
    """A temporary file for slices of lanes that have many, so that a page needs no memory for them."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failed: object) -> None:
        if self._file is not None:
            self._file.close()

    def keep(self, columns: Sequence[array[int]]) -> int:
        """Write columns, and return where they are."""
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="tracepoint-")  # noqa: SIM115 - until the page is made
        at = self._file.seek(0, SEEK_END)
        for column in columns:
            column.tofile(self._file)
        return at

    def read(self, at: int, codes: str, n: int) -> Iterator[array[int]]:
        """Yield columns of `n` numbers that were written."""
        if self._file is None:
            return
        self._file.seek(at)
        # Another lane may be read between.
        yield from [_from_file(self._file, code, n) for code in codes]


def _from_file(file: IO[bytes], code: str, n: int) -> array[int]:
    found = array(code)
    found.fromfile(file, n)
    return found


class Lane:
    """Slices that do not overlap, by time: when they begin and end in ns, and the number of their word.

    `starts`, `stops` and `words` are those of the last ones; with a spool, many others are in its file.
    """

    def __init__(self, name: str, spool: LaneSpool | None = None) -> None:
        self.name = name
        #: Where the last slice ends.
        self.end = MIN_TIME
        self.starts, self.stops, self.words = array("q"), array("q"), array("i")
        self._spool = spool
        self._kept: list[int] = []
        self._used: dict[int, None] = {}
        self._numbers: Mapping[int, int] | None = None

    def __len__(self) -> int:
        return len(self.starts) + len(self._kept) * _BLOCK

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        """Yield the begin, the end and the word of each slice."""
        return chain.from_iterable(zip(*block, strict=True) for block in self.blocks())

    def add(self, start: int, stop: int, word: int) -> None:
        """Add a slice that does not begin before the last one ends."""
        self.starts.append(start)
        self.stops.append(stop)
        self.words.append(word)
        self.end = stop
        if len(self.starts) == _BLOCK:
            self._keep()

    def add_points(self, times: Sequence[int], words: Sequence[int]) -> None:
        """Add points in time, by time: one or more, none before the last slice ends."""
        at = 0
        while at < len(times):
            to = at + max(_BLOCK - len(self.starts), 1)
            self.starts.extend(times[at:to])
            self.stops.extend(times[at:to])
            self.words.extend(words[at:to])
            at = to
            if len(self.starts) == _BLOCK:
                self._keep()
        self.end = times[-1]

    def _keep(self) -> None:
        if self._spool is not None:
            self._used |= dict.fromkeys(self.words)
            self._kept.append(self._spool.keep((self.starts, self.stops, self.words)))
            self.starts, self.stops, self.words = array("q"), array("q"), array("i")

    def used_words(self) -> Iterable[int]:
        """Return the words of the slices, in the order in which they come."""
        return self._used | dict.fromkeys(self.words)

    def renumber(self, numbers: Mapping[int, int]) -> None:
        """Give the words other numbers, once."""
        self._numbers = numbers
        self.words = array("i", map(numbers.__getitem__, self.words))

    def blocks(self) -> Iterator[tuple[array[int], array[int], array[int]]]:
        """Yield begins, ends and words of slices, some at a time; the last ones may be none."""
        for at in self._kept:
            if self._spool is not None:
                starts, stops, words = self._spool.read(at, "qqi", _BLOCK)
                if self._numbers is not None:
                    words = array("i", map(self._numbers.__getitem__, words))
                yield starts, stops, words
        yield self.starts, self.stops, self.words


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
    report: Report,
    events: Sequence[str],
    tasks: Mapping[int, str] | None = None,
    spool: LaneSpool | None = None,
    *takes: TakeTables,
) -> Iterator[LaneGroup]:
    """Yield what the timeline shows of a report: its tables whose rows have a time and a length.

    `events` are those that the rows come from, `tasks` the names of tasks by id.  A first reading of the
    tables finds which lanes are drawn, and gives the tables to `takes` too; a second one draws them.
    """
    drawers: dict[str, _LaneDrawer] = {}

    def weigh(tables: Mapping[str, ColumnTable]) -> None:
        for table in tables.values():
            if {"ts", "dur"} <= set(table.columns):
                drawer = drawers.get(table.name)
                if drawer is None:
                    threads = thread_names(tables.get("thread"))
                    drawer = drawers[table.name] = _LaneDrawer(table, threads, spool)
                drawer.weigh(table)

    def draw(tables: Mapping[str, ColumnTable]) -> None:
        for table in tables.values():
            if table.name in drawers:
                drawers[table.name].draw(table, report.coverage.stop)

    report.read_tables(weigh, *takes)
    report.read_tables(draw)
    for drawer in drawers.values():
        if drawer.n_rows:
            yield drawer.group(tasks or {})._replace(events=events)


def thread_names(table: ColumnTable | None) -> dict[int, str]:
    """Return what threads are called, by their `utid`: `sh-104`; idle ones an empty name."""
    if table is None:
        return {}
    columns = [table[name].tolist() for name in ("utid", "tid", "name")]
    found = {}
    for utid, tid, name in zip(*columns, strict=True):
        found[utid] = f"{name}-{tid}" if tid else ""
    return found


class _Rows:
    """The rows of a part of a table: which are in each track, when, how long, and their words."""

    def __init__(self, table: ColumnTable, track: str | None, of_row: Sequence[int]) -> None:
        self.table = table
        self.of_row = of_row
        self.times, self.lengths = table["ts"].numbers, table["dur"].numbers
        #: Whether none has an end.
        self.are_points = set(self.lengths) <= {_OPEN}
        self.by_track = _rows_by(table[track].numbers if track is not None else [0] * len(table))

    @cached_property
    def _are_by_time(self) -> bool:
        return all(map(le, self.times, islice(self.times, 1, None)))

    def in_order(self, rows: Sequence[int]) -> Sequence[int]:
        """Return rows of a track by their begin."""
        # As the rows of most tables are; there may be millions.
        return rows if self._are_by_time else sorted(rows, key=self.times.__getitem__)


class _LaneDrawer:
    """Makes the lanes of a table, of which there may be several parts; each is weighed, and then drawn."""

    def __init__(self, table: ColumnTable, threads: Mapping[int, str], spool: LaneSpool | None) -> None:
        self._name = table.name
        self._track = _track_of(table)
        self._threads = threads
        self._spool = spool
        self._words: list[str] = []
        # What never has an end is a point in time: a page fault among other traps.
        self._lasting: set[int] = set()
        #: How many rows each track has.
        self.n_rows: Counter[int] = Counter()
        self._weights: dict[int, int] = {}
        self._drawn: dict[int, list[Lane]] = {}
        self._n_drawn: Counter[int] = Counter()
        self._n_hidden = 0
        # The part that was weighed last: where it is the only one, it is drawn as it is.
        self._rows: _Rows | None = None

    @cached_property
    def _chosen(self) -> list[int]:
        """The tracks, those that are drawn first."""
        return sorted(self._weights, key=lambda number: (-self._weights[number], number))

    def weigh(self, table: ColumnTable) -> None:
        """Look at which lanes a part has, and how much is in them."""
        words, of_row = _words(table, self._threads)
        rows = self._rows = _Rows(table, self._track, self._numbered(words, of_row))
        if not rows.are_points:
            self._lasting |= {
                word for word, length in zip(rows.of_row, rows.lengths, strict=True) if length != _OPEN
            }
        weigh = self._weigher(rows)
        for number, own in rows.by_track.items():
            self.n_rows[number] += len(own)
            # Only lanes that are shown are made.
            if number in self._weights or any(rows.of_row[row] >= 0 for row in own):
                self._weights[number] = self._weights.get(number, 0) + weigh(own)

    def _numbered(self, words: list[str], of_row: Sequence[int]) -> Sequence[int]:
        """Return the words of rows by their numbers in all parts."""
        known = self._words
        if words[: len(known)] == known:
            self._words = words
            return of_row
        places = {word: number for number, word in reversed([*enumerate(known)])}
        numbers = [places.setdefault(word, len(places)) for word in words]
        self._words = known + list(places)[len(known) :]
        return array("i", (numbers[word] if word >= 0 else word for word in of_row))

    def _weigher(self, rows: _Rows) -> Callable[[Sequence[int]], int]:
        """Return what gives the weight of a lane by the numbers of its rows: those with most come first.

        Threads have the time that they ran, other tasks the number of their rows; all others have none.
        """
        if self._name == "thread_state":
            running = self._words.index("Running") if "Running" in self._words else -1
            lengths, of_row = rows.lengths, rows.of_row
            return lambda own: sum(max(lengths[row], 0) for row in own if of_row[row] == running)
        return len if self._track in _TASKS else lambda _own: 0

    def draw(self, table: ColumnTable, stop: int) -> None:
        """Add the slices of a part to the lanes that are shown; rows without an end may last until `stop`."""
        rows = self._rows
        if rows is None or rows.table is not table:
            words, of_row = _words(table, self._threads)
            rows = _Rows(table, self._track, self._numbered(words, of_row))
        for number in self._chosen[:MAX_LANES]:
            if number in rows.by_track:
                self._stack(number, rows, stop)

    def _stack(self, number: int, rows: _Rows, stop: int) -> None:
        """Add the slices of a track by time to lanes in which none overlap.

        A row without an end lasts until `stop` when it is the last and its word is one of those that have
        ends; before others nobody knows when it ended.
        """
        own = rows.by_track[number]
        lanes = self._drawn.setdefault(number, [])
        times, lengths, of_row = rows.times, rows.lengths, rows.of_row
        n = self._n_drawn[number] = self._n_drawn[number] + len(own)
        in_order = rows.in_order(own)
        if not self._lasting and self._add_points(lanes, in_order, rows):
            return
        last = in_order[-1] if n == self.n_rows[number] else None
        for row in in_order:
            word = of_row[row]
            if word < 0:
                continue
            start, length = times[row], lengths[row]
            end = start
            if length != _OPEN:
                end = max(start, start + length)
            elif row == last and word in self._lasting:
                end = max(start, stop)
            for lane in lanes:
                if lane.end <= start:
                    break
            else:
                if len(lanes) == MAX_DEPTH:
                    self._n_hidden += 1
                    continue
                lane = Lane("", self._spool)
                lanes.append(lane)
            lane.add(start, end, word)

    def _add_points(self, lanes: list[Lane], in_order: Sequence[int], rows: _Rows) -> bool:
        """Add rows of which none has an end to the first lane, in which they all have a place.

        False where some are not shown, or before what is there.
        """
        words = array("i", map(rows.of_row.__getitem__, in_order))
        starts = array("q", map(rows.times.__getitem__, in_order))
        lane = lanes[0] if lanes else Lane("", self._spool)
        if min(words) < 0 or starts[0] < lane.end:
            return False
        if not lanes:
            lanes.append(lane)
        lane.add_points(starts, words)
        return True

    def group(self, tasks: Mapping[int, str]) -> LaneGroup:
        """Return the lanes with their names; `tasks` are those of tasks by id."""
        shown = []
        for number in self._chosen[:MAX_LANES]:
            name = self._name_of(number, tasks)
            for depth, lane in enumerate(self._drawn.get(number, ())):
                lane.name = name if depth == 0 else f"{name} ({depth + 1})"
                shown.append(lane)
        band = _BANDS_OF.get(self._name)
        bands = [band(word) for word in self._words] if band else []
        title = _TITLES.get(self._name, self._name.replace("_", " "))
        n_more = max(len(self._chosen) - MAX_LANES, 0)
        return LaneGroup(self._name, title, shown, self._words, bands, n_more, self._n_hidden)

    def _name_of(self, number: int, tasks: Mapping[int, str]) -> str:
        if self._track is None:
            return self._name
        own = self._threads.get(number) if self._track == "utid" else None
        if self._track in _TASKS and number in tasks:
            own = f"{tasks[number]}-{number}"
        return own or f"{_TRACKS[self._track]}{number}"


def _rows_by(tracks: Iterable[int]) -> dict[int, array[int]]:
    """Return the numbers of the rows of each track, which take less memory than the rows."""
    found: dict[int, array[int]] = {}
    adders: dict[int, Callable[[int], None]] = {}
    for row, number in enumerate(tracks):
        try:
            adders[number](row)
        except KeyError:
            own = found[number] = array("q", [row])
            adders[number] = own.append
    return found


def _track_of(table: ColumnTable) -> str | None:
    """Return the column that says which lane a row is in; None: all rows are in one."""
    if table.name == "sched":
        return "cpu"
    numbers = (name for name in _TRACKS if name in table.columns)
    return next((name for name in numbers if table[name].plan.kind is ColumnKind.NUMBER), None)


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
