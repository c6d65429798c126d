"""Requests by what happens to them: queued, issued, given back, merged, done in parts.

A request has no number: its device and the sector where it begins are its key, and the oldest with that
key counts (block/blk-mq.c, block/blk-merge.c).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.analysis.coverage import join_gaps
from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.analysis.coverage import Gap

    Key = tuple[int, int | str]

#: The time of what did not happen, or whose time is not known.
NEVER = -(1 << 63)
# A flush has no sector: its events show 0, or all bits set where it completes.
_FLUSH = "FF"


class Place(NamedTuple):
    """What each event of a request says: device, first sector, how many sectors, what it does (rwbs)."""

    dev: int
    sector: int
    n_sectors: int
    rwbs: str

    @property
    def key(self) -> Key:
        """What finds the request."""
        return (self.dev, _FLUSH if self.rwbs.startswith(_FLUSH) else self.sector)


@dataclass(slots=True, eq=False)
class BlockRequest:
    """One request; times are in ns, NEVER (-2**63) where it was not queued, issued or done.

    `n_done` are the sectors that are done, in `n_parts`; `is_cut` says that a loss may hide an event of it,
    `is_start_unknown` that a loss may hide when it was queued.
    """

    dev: int
    sector: int
    n_sectors: int
    rwbs: str
    row: int
    ts: int
    inserted: int = NEVER
    first_issue: int = NEVER
    issue: int = NEVER
    done: int = NEVER
    error: int = 0
    n_done: int = 0
    n_parts: int = 0
    n_requeues: int = 0
    is_merged: bool = False
    is_cut: bool = False
    is_start_unknown: bool = False

    @property
    def is_open(self) -> bool:
        """Whether nothing says that it is done."""
        return self.done == NEVER and not self.is_merged

    @property
    def is_whole(self) -> bool:
        """Whether it was seen from its begin to its end."""
        return self.done != NEVER and not self.is_cut


class RequestMachine:
    """Takes the events of requests by time.

    >>> machine = RequestMachine({})
    >>> machine.issue(Place(8, 100, 8, "R"), 0, 5)
    >>> machine.complete(Place(8, 100, 8, "R"), 0, 25)
    >>> [request.done - request.issue for request in machine.finish(30)]
    [20]
    """

    def __init__(self, gaps: Mapping[int, Sequence[Gap]]) -> None:
        self._gaps = join_gaps(gap for own in gaps.values() for gap in own)
        self._queued: dict[Key, list[BlockRequest]] = {}
        self._flying: dict[Key, list[BlockRequest]] = {}
        self._all: list[BlockRequest] = []
        self.n_orphans = 0
        self.n_bio_merges: dict[int, int] = {}

    def _is_hidden(self, request: BlockRequest, ts: int) -> bool:
        return self._gaps.is_between(request.ts, ts)

    def _take(self, where: dict[Key, list[BlockRequest]], key: Key, ts: int) -> BlockRequest | None:
        """Take the oldest request with a key; those that a loss may have ended are cut."""
        found = where.get(key)
        while found:
            request = found.pop(0)
            if not found:
                del where[key]
            if not self._is_hidden(request, ts):
                return request
            request.is_cut = True
        return None

    def _new(self, place: Place, row: int, ts: int) -> BlockRequest:
        request = BlockRequest(place.dev, place.sector, place.n_sectors, place.rwbs, row, ts)
        self._all.append(request)
        return request

    def insert(self, place: Place, row: int, ts: int) -> None:
        """A request goes into a queue; one that was given back may do so again."""
        request = self._take(self._queued, place.key, ts) or self._new(place, row, ts)
        if request.inserted == NEVER and request.first_issue == NEVER:
            request.inserted = ts
        self._queued.setdefault(place.key, []).append(request)

    def issue(self, place: Place, row: int, ts: int) -> None:
        """A request goes to the device, from a queue or at once."""
        request = self._take(self._queued, place.key, ts)
        if request is None:
            request = self._new(place, row, ts)
            gap = self._gaps.starts[0] if self._gaps.starts else ts
            request.is_start_unknown = gap < ts
        request.issue = ts
        if request.first_issue == NEVER:
            request.first_issue = ts
        # It may have grown in the queue.
        request.sector, request.n_sectors = place.sector, place.n_sectors
        self._flying.setdefault(place.key, []).append(request)

    def requeue(self, place: Place, ts: int) -> None:
        """The device gives a request back."""
        request = self._take(self._flying, place.key, ts)
        if request is not None:
            request.n_requeues += 1
            self._queued.setdefault(place.key, []).append(request)

    def merge(self, place: Place, ts: int) -> None:
        """Another request takes in a queued one, which is gone."""
        request = self._take(self._queued, place.key, ts)
        if request is not None:
            request.is_merged = True

    def add_bio(self, place: Place, ts: int, *, is_in_front: bool) -> None:
        """Data is added to a queued request; in front, its first sector is another."""
        self.n_bio_merges[place.dev] = self.n_bio_merges.get(place.dev, 0) + 1
        if not is_in_front:
            return
        request = self._take(self._queued, (place.dev, place.sector + place.n_sectors), ts)
        if request is not None:
            request.sector = place.sector
            self._queued.setdefault(place.key, []).append(request)

    def complete(self, place: Place, error: int, ts: int) -> None:
        """The device is done with a request, or with its next sectors."""
        request = self._take(self._flying, place.key, ts)
        if request is None:
            self.n_orphans += 1
            return
        request.n_parts += 1
        request.n_done += place.n_sectors
        request.error = request.error or error
        if request.n_done < request.n_sectors and place.n_sectors:
            self._flying.setdefault((place.dev, place.sector + place.n_sectors), []).append(request)
        else:
            request.done = ts

    def finish(self, ts: int) -> list[BlockRequest]:
        """Return all requests by their first event, at the time of the end of the trace."""
        for where in (self._queued, self._flying):
            for request in (request for found in where.values() for request in found):
                request.is_cut = request.is_cut or self._is_hidden(request, ts)
        return self._all
