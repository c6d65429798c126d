"""The timeline of a page: lanes by cells for every zoom, and each slice where there is room for them."""

from __future__ import annotations

import re
from collections import Counter
from heapq import nlargest
from itertools import chain
from operator import sub
from typing import TYPE_CHECKING, Any

from tracepoint.named import NamedTuple
from tracepoint.record.page import LOST_UNKNOWN
from tracepoint.report.cells import MAX_WORDS, NOTHING, band_cells, grid_for, word_cells

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tracepoint.analysis.coverage import Coverage
    from tracepoint.report.lanes import Lane, LaneGroup
    from tracepoint.report.pack import Pack

# In all lanes of a group: a page of 10 M events is to have 5 MB.
_MAX_WORD_CELLS, _MAX_BAND_CELLS = 1 << 18, 1 << 18
_MAX_SLICES = 120_000
_N_WINDOWS = 8
_MAX_LOSSES = 20_000
_MAX_LEGEND = 8
# What the script leaves out of a word before it makes a colour of it.
_NUMBERS = re.compile(r"[0-9/:.-]+")
# What words of one colour end in.
_LAST = "0123456789/:.-"


class SliceWindow(NamedTuple):
    """A time in ns of which a page has each slice."""

    start: int
    stop: int


def timeline_facts(groups: Sequence[LaneGroup], coverage: Coverage, pack: Pack) -> dict[str, Any]:
    """Return what the page's script draws the timeline from; columns go to `pack`."""
    return {
        "start": coverage.start,
        "span": coverage.duration,
        "groups": [_group_facts(group, coverage, pack, len(groups)) for group in groups if group.lanes],
        "losses": [
            [cpu, max(gap.start - coverage.start, 0), gap.stop - coverage.start, gap.n_lost]
            for cpu, gaps in coverage.gaps.items()
            for gap in gaps
        ][:_MAX_LOSSES],
        "unknown": LOST_UNKNOWN,
    }


def _group_facts(group: LaneGroup, coverage: Coverage, pack: Pack, n_groups: int) -> dict[str, Any]:
    words, group = _used_words(group)
    most = (_MAX_BAND_CELLS if group.bands else _MAX_WORD_CELLS) * 2 // max(n_groups, 2)
    grid = grid_for(coverage.start, coverage.stop, len(group.lanes), most)
    windows = windows_of(group.lanes, coverage, _MAX_SLICES * 2 // max(n_groups, 2))
    lanes = []
    weights: Counter[int] = Counter()
    for lane in group.lanes:
        facts: dict[str, Any] = {"name": lane.name, "n": len(lane)}
        if group.bands:
            bands, counts = band_cells(lane, group.bands, grid)
            facts |= {"bands": [pack.add(own) for own in bands], "counts": pack.add(counts)}
        else:
            cells = word_cells(lane, grid)
            facts |= {"totals": pack.add(cells.totals), "counts": pack.add(cells.counts)}
            facts["keys"] = [pack.add(own) for own in cells.keys]
            facts["tops"] = [pack.add(own) for own in cells.tops]
            for word, share in zip(cells.keys[-1], cells.tops[-1], strict=True):
                # Points in time, such as page faults, fill nothing and have a colour.
                weights[word] += share or 1
        lanes.append(facts | _slice_facts(lane, windows, coverage.start, pack))
    return {
        "key": group.key,
        "title": group.title,
        "events": list(group.events),
        "words": words,
        "bands": list(group.bands),
        "legend": legend_of(words, weights),
        "more": group.n_more,
        "hidden": group.n_hidden,
        "width": grid.width,
        "n": grid.n,
        "windows": [[window.start - coverage.start, window.stop - coverage.start] for window in windows],
        "lanes": lanes,
    }


def _slice_facts(lane: Lane, windows: Sequence[SliceWindow], start: int, pack: Pack) -> dict[str, Any]:
    """Return the columns of the slices that a page has, each from the end of the one before."""
    slices = list(_slices_in(lane, windows))
    deltas, last = [], start
    for begin, stop, _ in slices:
        deltas.append(max(begin - last, 0))
        last = stop
    return {
        "starts": pack.add_varints(deltas),
        "lengths": pack.add_varints(stop - begin for begin, stop, _ in slices),
        "words": pack.add_varints(word for _, _, word in slices),
    }


def legend_of(words: Sequence[str], weights: Mapping[int, int]) -> list[list[str]]:
    """Return what the colours of words mean, those that fill most first: a word of each colour, and its name.

    Words that differ in numbers only have one colour.  `weights` are how much each word fills, by its number.

    >>> legend_of(["sh-7", "a-b-8", "a-b-9"], {0: 5, 1: 3, 2: 4})
    [['a-b-8', 'a-b…'], ['sh-7', 'sh-7']]
    """
    sums: Counter[str] = Counter()
    own: dict[str, set[int]] = {}
    for word, weight in weights.items():
        if word != NOTHING and weight:
            key = _NUMBERS.sub("", words[word])
            sums[key] += weight
            own.setdefault(key, set()).add(word)
    found = []
    for key, _ in sums.most_common(_MAX_LEGEND):
        first = words[min(own[key])]
        found.append([first, first if len(own[key]) == 1 else f"{first.rstrip(_LAST)}…"])
    return found


def _used_words(group: LaneGroup) -> tuple[list[str], LaneGroup]:
    """Return the words that slices have, and the group with their numbers."""
    places: dict[int, int] = {}
    for lane in group.lanes:
        for word in lane.used_words():
            places.setdefault(word, min(len(places), MAX_WORDS - 1))
    for lane in group.lanes:
        lane.renumber(places)
    bands = [group.bands[word] for word in places] if group.bands else ()
    return [group.words[word] for word in places], group._replace(bands=bands)


def windows_of(lanes: Sequence[Lane], coverage: Coverage, most: int) -> list[SliceWindow]:
    """Return the times of which a page has each slice: all, or around the longest slices that are short.

    `most` is about how many slices there may be in them.
    """
    n = sum(map(len, lanes))
    if n <= most:
        return [SliceWindow(coverage.start, coverage.stop)]
    length = coverage.duration * most // n // _N_WINDOWS
    wanted = _N_WINDOWS * 4
    found = chain.from_iterable(_lengths(lane, length // 2, wanted) for lane in lanes)
    longest = nlargest(wanted, found)
    windows: list[SliceWindow] = []
    for ns, start in longest:
        window = SliceWindow(start - (length - ns) // 2, start + (length + ns) // 2)
        is_apart = all(window.stop <= other.start or other.stop <= window.start for other in windows)
        if is_apart and len(windows) < _N_WINDOWS:
            windows.append(window)
    return sorted(windows)


def _lengths(lane: Lane, longest: int, wanted: int) -> Iterator[tuple[int, int]]:
    """Yield lengths, not above `longest`, and begins of the slices that may be among the largest `wanted`."""
    for starts, stops, _ in lane.blocks():
        if starts == stops:
            # Of points in time these are the last ones.
            yield from ((0, start) for start in starts[-wanted:])
        else:
            pairs = zip(map(sub, stops, starts), starts, strict=True)
            yield from (pair for pair in pairs if pair[0] <= longest)


def _slices_in(lane: Lane, windows: Sequence[SliceWindow]) -> Iterator[tuple[int, int, int]]:
    if not windows:
        return
    at = 0
    for starts, stops, words in lane.blocks():
        # Most are in none.
        if not starts or stops[-1] < windows[at].start:
            continue
        for start, stop, word in zip(starts, stops, words, strict=True):
            while at < len(windows) and windows[at].stop < start:
                at += 1
            if at == len(windows):
                return
            if stop >= windows[at].start:
                yield start, stop, word
