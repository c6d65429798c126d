"""From the records of block devices to requests."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from tracepoint.analysis.block.needs import BACK, COMPLETE, FRONT, INSERT, ISSUE, MERGE, REQUEUE
from tracepoint.analysis.block.requests import Place, RequestMachine
from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tracepoint.analysis.block.requests import BlockRequest
    from tracepoint.analysis.records import AnalysisRecords, Take


class BlockWork(NamedTuple):
    """All requests by their first event, the tasks that made them, and what was counted beside them.

    `n_orphans` are completions without a request, `n_bio_merges` additions to requests by device.
    """

    requests: Sequence[BlockRequest]
    tids: Sequence[int]
    n_orphans: int
    n_bio_merges: Mapping[int, int]


def read_requests(records: AnalysisRecords) -> BlockWork:
    """Return the requests of a recording."""
    machine = RequestMachine(records.coverage.gaps)
    errors = records.column(COMPLETE, "error").numbers
    done = _places(records, COMPLETE)
    takes: dict[str, Take] = {COMPLETE: lambda row, ts, _cpu: machine.complete(done(row), errors[row], ts)}
    for event, begin in ((INSERT, machine.insert), (ISSUE, machine.issue)):
        if event in records:
            takes[event] = _begin(_places(records, event), begin)
    for event, change in ((REQUEUE, machine.requeue), (MERGE, machine.merge)):
        if event in records:
            takes[event] = _change(_places(records, event), change)
    for event in (FRONT, BACK):
        if event in records:
            takes[event] = _bio(_places(records, event), machine, is_in_front=event == FRONT)
    records.run(takes)
    requests = machine.finish(records.coverage.stop)
    pids = {
        event: records.column(event, "common_pid").numbers for event in (INSERT, ISSUE) if event in records
    }
    with_inserts = {request.dev for request in requests if request.first_issue != request.ts}
    for request in requests:
        # A device without a scheduler has no queue to wait in.
        request.is_start_unknown = request.is_start_unknown and request.dev in with_inserts
    tids = [pids[ISSUE if request.first_issue == request.ts else INSERT][request.row] for request in requests]
    return BlockWork(requests, tids, machine.n_orphans, machine.n_bio_merges)


def _places(records: AnalysisRecords, event: str) -> Callable[[int], Place]:
    devs, sectors, counts, rwbs = (
        records.column(event, field) for field in ("dev", "sector", "nr_sector", "rwbs")
    )
    words = rwbs.words
    columns = (devs.numbers, sectors.numbers, counts.numbers, rwbs.numbers)

    def place(row: int) -> Place:
        dev, sector, count, word = columns
        return Place(dev[row], sector[row], count[row], words[word[row]])

    return place


def _begin(place: Callable[[int], Place], take: Callable[[Place, int, int], None]) -> Take:
    return lambda row, ts, _cpu: take(place(row), row, ts)


def _change(place: Callable[[int], Place], take: Callable[[Place, int], None]) -> Take:
    return lambda row, ts, _cpu: take(place(row), ts)


def _bio(place: Callable[[int], Place], machine: RequestMachine, *, is_in_front: bool) -> Take:
    return lambda row, ts, _cpu: machine.add_bio(place(row), ts, is_in_front=is_in_front)


def device_name(dev: int) -> str:
    """Return a device as major:minor: include/linux/kdev_t.h.

    >>> device_name(8 << 20 | 1), device_name(0)
    ('8:1', 'no disk')
    """
    return f"{dev >> 20}:{dev & (1 << 20) - 1}" if dev else "no disk"


_OPERATIONS = {"R": "read", "W": "write", "D": "discard", "F": "flush", "N": "other"}


def operation(rwbs: str) -> str:
    """Return what a request does: block/blk-core.c and kernel/trace/blktrace.c: blk_fill_rwbs().

    >>> operation("WS"), operation("FWS"), operation("FF"), operation("DE"), operation("")
    ('write', 'write', 'flush', 'erase', 'other')
    """
    op = rwbs[1:] if rwbs[:1] == "F" and rwbs[1:2] in _OPERATIONS and rwbs[1:] else rwbs
    return "erase" if op.startswith("DE") else _OPERATIONS.get(op[:1], "other")


class Depth(NamedTuple):
    """How many requests of a device were at work from the time `ts` in ns on."""

    ts: int
    n: int
    dev: int


def depths(requests: Sequence[BlockRequest]) -> list[Depth]:
    """Return how many requests were in the queue or the device, at each change, by device and time.

    Only requests that were seen from begin to end count.
    """
    changes: dict[int, dict[int, int]] = {}
    for request in requests:
        if request.is_whole:
            own = changes.setdefault(request.dev, {})
            own[request.ts] = own.get(request.ts, 0) + 1
            own[request.done] = own.get(request.done, 0) - 1
    found: list[Depth] = []
    for dev, own in sorted(changes.items()):
        times = sorted(own)
        found += (Depth(ts, n, dev) for ts, n in zip(times, accumulate(own[ts] for ts in times), strict=True))
    return found
