"""From the times of requests and what their threads did to the parts of each request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.analysis.service.lanes import BLOCKED, ThreadLane, TimeKind, TimePiece
from tracepoint.analysis.spans import OPEN
from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tracepoint.decode.table import ColumnTable

_EMPTY = ThreadLane(())


class ServiceRequest(NamedTuple):
    """A request from its begin to its end, in ns; `parts` are times by `TimeKind`, which add up to `dur`.

    `tid` is the thread that began it and `end_tid` the one that ended it; `pieces` are what the first did
    meanwhile, all of the time.  Without an end `dur` is OPEN (-1) and there are no pieces.
    """

    ts: int
    dur: int
    cpu: int
    tid: int
    end_tid: int
    key: str
    is_cut: bool
    parts: Sequence[int]
    pieces: Sequence[TimePiece]

    @property
    def longest_block(self) -> TimePiece | None:
        """The longest piece in which the thread was blocked."""
        blocked = (piece for piece in self.pieces if piece.kind in BLOCKED)
        return max(blocked, key=lambda piece: piece.stop - piece.start, default=None)


class Fit(NamedTuple):
    """How the times of a program and of the kernel fit.

    Of `n_known` begins it is known what their thread did then, `n_off` were written by one that did not run.
    `n_unseen` requests are of threads of which the kernel recorded nothing; `n_shared` begin while another
    request of their thread is open.
    """

    n_known: int
    n_off: int
    n_unseen: int
    n_shared: int


def read_requests(latency: ColumnTable, lanes: Mapping[int, ThreadLane]) -> list[ServiceRequest]:
    """Return the requests by their begin; `latency` has their times."""
    names = ("ts", "dur", "cpu", "tid", "end_tid", "is_cut")
    keys = latency["key"]
    words = keys.words
    columns = (latency[name].numbers for name in names)
    found = []
    for ts, dur, cpu, tid, end_tid, is_cut, key in zip(*columns, keys.numbers, strict=True):
        pieces = tuple(lanes.get(tid, _EMPTY).within(ts, ts + dur)) if dur != OPEN else ()
        parts = [0] * len(TimeKind)
        for piece in pieces:
            parts[piece.kind] += piece.stop - piece.start
        found.append(ServiceRequest(ts, dur, cpu, tid, end_tid, words[key], bool(is_cut), parts, pieces))
    return found


def fit_of(requests: Iterable[ServiceRequest], lanes: Mapping[int, ThreadLane]) -> Fit:
    """Return how the begins of requests, by time, fit what the kernel says of their threads."""
    n_known = n_off = n_unseen = n_shared = 0
    busy: dict[int, int] = {}
    for request in requests:
        lane = lanes.get(request.tid, _EMPTY)
        n_unseen += not len(lane)
        does = lane.does(request.ts)
        n_known += bool(does)
        # A thread that writes an event runs.
        n_off += bool(does) and TimeKind.RUNNING not in does
        n_shared += busy.get(request.tid, request.ts) > request.ts
        busy[request.tid] = max(busy.get(request.tid, 0), request.ts + max(request.dur, 0))
    return Fit(n_known, n_off, n_unseen, n_shared)
