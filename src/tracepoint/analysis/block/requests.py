"""Requests by what happens to them: queued, issued, given back, merged, done in parts.

A request has no number: its device and the sector where it begins are its key, and the oldest with that
key counts (block/blk-mq.c, block/blk-merge.c).
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.analysis.coverage import join_gaps
from tracepoint.analysis.growing import GrowingRows
from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tracepoint.analysis.coverage import Gap
    from tracepoint.analysis.growing import ClosedPart
    from tracepoint.analysis.numbered import Numbered

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

    `cpu` and `tid` are where its first event was written.  `n_done` are the sectors that are done, in
    `n_parts`; `is_cut` says that a loss may hide an event of it, `is_start_unknown` that a loss may hide when
    it was queued.
    """

    dev: int
    sector: int
    n_sectors: int
    rwbs: str
    ts: int
    cpu: int
    tid: int
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


class RequestRows(NamedTuple):
    """Requests that are over or will not be, with the fields of `BlockRequest`; `rwbs` numbers words."""

    dev: array[int]
    sector: array[int]
    n_sectors: array[int]
    rwbs: array[int]
    ts: array[int]
    cpu: array[int]
    tid: array[int]
    inserted: array[int]
    first_issue: array[int]
    issue: array[int]
    done: array[int]
    error: array[int]
    n_done: array[int]
    n_parts: array[int]
    n_requeues: array[int]
    is_merged: array[int]
    is_cut: array[int]
    is_start_unknown: array[int]


def no_requests() -> RequestRows:
    """Return no rows."""
    return RequestRows(*(array(code) for code in "qQqiqiqqqqqqqiibbb"))


_FIELDS = RequestRows._fields
_RWBS = _FIELDS.index("rwbs")


class RequestMachine:
    """Takes the events of requests by time; what no event can change is handed over on the way.

    >>> from tracepoint.analysis.numbered import Numbered
    >>> machine = RequestMachine({}, Numbered())
    >>> machine.issue(Place(8, 100, 8, "R"), (5, 0, 7))
    >>> machine.complete(Place(8, 100, 8, "R"), 0, 25)
    >>> rows = machine.finish(30).rows
    >>> [done - issue for done, issue in zip(rows.done, rows.issue)]
    [20]
    """

    def __init__(self, gaps: Mapping[int, Sequence[Gap]], words: Numbered[str]) -> None:
        self._gaps = join_gaps(gap for own in gaps.values() for gap in own)
        self._words = words
        # Each with its number.
        self._queued: dict[Key, list[tuple[int, BlockRequest]]] = {}
        self._flying: dict[Key, list[tuple[int, BlockRequest]]] = {}
        self._rows = GrowingRows(no_requests())
        self.n_orphans = 0
        self.n_bio_merges: dict[int, int] = {}

    def _values(self, request: BlockRequest) -> list[int]:
        values = [getattr(request, name) for name in _FIELDS]
        values[_RWBS] = self._words[request.rwbs]
        return values

    def _write(self, number: int, request: BlockRequest) -> None:
        at = self._rows.place(number)
        for column, value in zip(self._rows.columns, self._values(request), strict=True):
            column[at] = value

    def _is_hidden(self, request: BlockRequest, ts: int) -> bool:
        return self._gaps.is_between(request.ts, ts)

    def _take(
        self, where: dict[Key, list[tuple[int, BlockRequest]]], key: Key, ts: int
    ) -> tuple[int, BlockRequest] | None:
        """Take the oldest request with a key; those that a loss may have ended are cut."""
        found = where.get(key)
        while found:
            number, request = found.pop(0)
            if not found:
                del where[key]
            if not self._is_hidden(request, ts):
                return number, request
            request.is_cut = True
            self._write(number, request)
        return None

    def _new(self, place: Place, at: tuple[int, int, int]) -> tuple[int, BlockRequest]:
        request = BlockRequest(place.dev, place.sector, place.n_sectors, place.rwbs, *at)
        for column, value in zip(self._rows.columns, self._values(request), strict=True):
            column.append(value)
        return self._rows.last, request

    def insert(self, place: Place, at: tuple[int, int, int]) -> None:
        """A request goes into a queue at a time, by a CPU and a task; one that was given back may again."""
        found = self._take(self._queued, place.key, at[0]) or self._new(place, at)
        request = found[1]
        if request.inserted == NEVER and request.first_issue == NEVER:
            request.inserted = at[0]
        self._queued.setdefault(place.key, []).append(found)

    def issue(self, place: Place, at: tuple[int, int, int]) -> None:
        """A request goes to the device, from a queue or at once."""
        ts = at[0]
        found = self._take(self._queued, place.key, ts)
        if found is None:
            found = self._new(place, at)
            gap = self._gaps.starts[0] if self._gaps.starts else ts
            found[1].is_start_unknown = gap < ts
        request = found[1]
        request.issue = ts
        if request.first_issue == NEVER:
            request.first_issue = ts
        # It may have grown in the queue.
        request.sector, request.n_sectors = place.sector, place.n_sectors
        self._flying.setdefault(place.key, []).append(found)

    def requeue(self, place: Place, ts: int) -> None:
        """The device gives a request back."""
        found = self._take(self._flying, place.key, ts)
        if found is not None:
            found[1].n_requeues += 1
            self._queued.setdefault(place.key, []).append(found)

    def merge(self, place: Place, ts: int) -> None:
        """Another request takes in a queued one, which is gone."""
        found = self._take(self._queued, place.key, ts)
        if found is not None:
            found[1].is_merged = True
            self._write(*found)

    def add_bio(self, place: Place, ts: int, *, is_in_front: bool) -> None:
        """Data is added to a queued request; in front, its first sector is another."""
        self.n_bio_merges[place.dev] = self.n_bio_merges.get(place.dev, 0) + 1
        if not is_in_front:
            return
        found = self._take(self._queued, (place.dev, place.sector + place.n_sectors), ts)
        if found is not None:
            found[1].sector = place.sector
            self._queued.setdefault(place.key, []).append(found)

    def complete(self, place: Place, error: int, ts: int) -> None:
        """The device is done with a request, or with its next sectors."""
        found = self._take(self._flying, place.key, ts)
        if found is None:
            self.n_orphans += 1
            return
        request = found[1]
        request.n_parts += 1
        request.n_done += place.n_sectors
        request.error = request.error or error
        if request.n_done < request.n_sectors and place.n_sectors:
            self._flying.setdefault((place.dev, place.sector + place.n_sectors), []).append(found)
        else:
            request.done = ts
            self._write(*found)

    def _open(self) -> Iterator[tuple[int, BlockRequest]]:
        for where in (self._queued, self._flying):
            for found in where.values():
                yield from found

    def closed(self, ts: int) -> ClosedPart[RequestRows]:
        """Hand over the requests that no event after a time can change; others stay."""
        for where in (self._queued, self._flying):
            for key, found in list(where.items()):
                # The next event of this key would find the same.
                while found and self._is_hidden(found[0][1], ts):
                    number, request = found.pop(0)
                    request.is_cut = True
                    self._write(number, request)
                if not found:
                    del where[key]
        return self._rows.close({number for number, _ in self._open()})

    def finish(self, ts: int) -> ClosedPart[RequestRows]:
        """Hand over the other requests, at the time of the end of the trace."""
        for number, request in self._open():
            request.is_cut = request.is_cut or self._is_hidden(request, ts)
            self._write(number, request)
        return self._rows.finish()
