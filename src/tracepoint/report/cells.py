"""The level of detail of a timeline: what fills each of equal parts of time, at every zoom."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from operator import itemgetter
from typing import TYPE_CHECKING

from tracepoint.named import NamedTuple
from tracepoint.report.lanes import BANDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tracepoint.report.lanes import Lane

#: A share of a cell is a part of this.
WHOLE = 65_535
#: The key of a cell in which nothing is.
NOTHING = 65_535
MAX_WORDS = NOTHING
_FEWEST, _MOST = 256, 32_768
_COARSEST = 256


class Grid(NamedTuple):
    """`n` cells of `width` ns each, from `start` on."""

    start: int
    width: int
    n: int

    def parts(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Yield the cells that a time covers, each with how much of it in ns.

        >>> list(Grid(100, 10, 4).parts(105, 125))
        [(0, 5), (1, 10), (2, 5)]
        """
        low, high = max(start - self.start, 0), min(stop - self.start, self.width * self.n)
        if low >= high:
            return
        first, last = low // self.width, (high - 1) // self.width
        if first == last:
            yield first, high - low
            return
        yield first, (first + 1) * self.width - low
        for cell in range(first + 1, last):
            yield cell, self.width
        yield last, high - last * self.width


def grid_for(start: int, stop: int, n_lanes: int, most: int) -> Grid:
    """Return cells for the time of a trace, a power of two of them, at most `most` in all lanes.

    >>> grid_for(0, 1_000_000, 4, 8192)
    Grid(start=0, width=489, n=2048)
    """
    n = _MOST
    while n > _FEWEST and n * max(n_lanes, 1) > most:
        n //= 2
    span = max(stop - start, 1)
    return Grid(start, -(-span // n), n)


class WordCells(NamedTuple):
    """A lane by cells: how full each is, how many slices begin there, and what fills most of it.

    `keys` and `tops` have a column for each zoom, the finest first, each half as long as the one before.
    """

    totals: array[int]
    counts: array[int]
    keys: list[array[int]]
    tops: list[array[int]]


def word_cells(lane: Lane, grid: Grid) -> WordCells:
    """Return the cells of a lane whose slices have words."""
    cells: list[dict[int, int]] = [{} for _ in range(grid.n)]
    counts = array("I", bytes(4 * grid.n))
    width = grid.width
    for starts, stops, words in lane.blocks():
        # Points in time fill nothing, and there may be millions of them.
        if starts == stops:
            _count_points(cells, counts, grid, starts, words)
        else:
            _fill(cells, counts, grid, zip(starts, stops, words, strict=True))
    totals = array("H", (_share(sum(own.values()), width) for own in cells))
    found = WordCells(totals, counts, [], [])
    while True:
        best = [_fullest(own) for own in cells]
        found.keys.append(array("H", (NOTHING if top is None else min(top[0], NOTHING - 1) for top in best)))
        found.tops.append(array("H", (0 if top is None else _share(top[1], width) for top in best)))
        if len(cells) <= _COARSEST:
            return found
        cells = [_joined(a, b) for a, b in zip(cells[::2], cells[1::2], strict=True)]
        width *= 2


def _count_points(
    cells: list[dict[int, int]], counts: array[int], grid: Grid, times: Sequence[int], words: Sequence[int]
) -> None:
    """Count points that come by time, those of a cell at once."""
    at = bisect_left(times, grid.start)
    while at < len(times) and (cell := (times[at] - grid.start) // grid.width) < grid.n:
        end = bisect_left(times, grid.start + (cell + 1) * grid.width, at)
        counts[cell] += end - at
        for word in dict.fromkeys(words[at:end]):
            cells[cell].setdefault(word, 0)
        at = end


def _fill(
    cells: list[dict[int, int]], counts: array[int], grid: Grid, slices: Iterable[tuple[int, int, int]]
) -> None:
    first, width, n = grid.start, grid.width, grid.n
    for start, stop, word in slices:
        at = (start - first) // width
        if 0 <= at < n:
            counts[at] += 1
            if stop - first <= (at + 1) * width:
                own = cells[at]
                own[word] = own.get(word, 0) + stop - start
                continue
        for cell, ns in grid.parts(start, stop):
            own = cells[cell]
            own[word] = own.get(word, 0) + ns


def _fullest(own: dict[int, int]) -> tuple[int, int] | None:
    if len(own) > 1:
        return max(own.items(), key=itemgetter(1))
    # Of millions of cells most have one word or none.
    return next(iter(own.items()), None)


def _joined(first: dict[int, int], second: dict[int, int]) -> dict[int, int]:
    small, large = (first, second) if len(first) <= len(second) else (second, first)
    for word, ns in small.items():
        large[word] = large.get(word, 0) + ns
    return large


def band_cells(lane: Lane, bands: Sequence[int], grid: Grid) -> tuple[list[array[int]], array[int]]:
    """Return how much of each cell the thread was in each of BANDS, and how often it began to run."""
    sums = [array("q", bytes(8 * grid.n)) for _ in BANDS]
    counts = array("I", bytes(4 * grid.n))
    first, width, n = grid.start, grid.width, grid.n
    for start, stop, word in lane:
        band = bands[word]
        own = sums[band]
        at = (start - first) // width
        if 0 <= at < n:
            if band == 0:
                counts[at] += 1
            if stop - first <= (at + 1) * width:
                own[at] += stop - start
                continue
        for cell, ns in grid.parts(start, stop):
            own[cell] += ns
    return [array("H", (_share(ns, grid.width) for ns in own)) for own in sums], counts


def _share(ns: int, width: int) -> int:
    return min(round(ns * WHOLE / width), WHOLE)
