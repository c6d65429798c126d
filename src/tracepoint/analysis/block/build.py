"""From the records of block devices to requests."""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING

from tracepoint.analysis.block.needs import BACK, COMPLETE, FRONT, INSERT, ISSUE, MERGE, REQUEUE
from tracepoint.analysis.block.requests import NEVER, Place, RequestMachine
from tracepoint.analysis.numbered import Numbered
from tracepoint.analysis.spans import SpanTally
from tracepoint.decode.numbers import sort_numbers
from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tracepoint.analysis.block.requests import RequestRows
    from tracepoint.analysis.growing import ClosedPart
    from tracepoint.analysis.records import AnalysisRecords, RecordPart, Take


class RequestReader:
    """Reads the requests of a recording, as often as they are asked for.

    `words` are what requests do (rwbs), `n_bio_merges` additions to requests by device; `tally` says how many
    requests have no end, and how many completions no request.  `queued` are the devices that have a queue to
    wait in.
    """

    def __init__(self, records: AnalysisRecords) -> None:
        self.records = records
        self.words: Numbered[str] = Numbered()
        self.n_bio_merges: Mapping[int, int] = {}
        self.tally = SpanTally()
        self.queued: set[int] = set()

    def read(self, take: Callable[[ClosedPart[RequestRows]], object]) -> None:
        """Give the requests to `take`, part by part."""
        self.tally = SpanTally()
        machine, last = RequestMachine(self.records.coverage.gaps, self.words), [0]

        def takes_of(part: RecordPart) -> dict[str, Take]:
            last[0] = part.times[-1] if len(part) else last[0]
            return _takes(part, machine)

        def give(closed: ClosedPart[RequestRows]) -> None:
            self._count(closed.rows)
            take(closed)

        self.records.run_parts(takes_of, lambda: give(machine.closed(last[0])))
        give(machine.finish(self.records.coverage.stop))
        self.tally.n_orphans, self.n_bio_merges = machine.n_orphans, machine.n_bio_merges

    def _count(self, rows: RequestRows) -> None:
        tally = self.tally
        tally.n += len(rows.ts)
        tally.cut(compress(rows.ts, rows.is_cut))
        columns = zip(
            rows.dev, rows.ts, rows.first_issue, rows.done, rows.is_merged, rows.is_cut, strict=True
        )
        for dev, ts, first_issue, done, is_merged, is_cut in columns:
            if first_issue != ts:
                self.queued.add(dev)
            tally.n_open += done == NEVER and not is_merged and not is_cut

    def is_start_unknown(self, rows: RequestRows, at: int) -> bool:
        """Whether a loss may hide when a request was queued; a device without a scheduler has no queue."""
        return bool(rows.is_start_unknown[at]) and rows.dev[at] in self.queued


def _takes(part: RecordPart, machine: RequestMachine) -> dict[str, Take]:
    errors, done = part.column(COMPLETE, "error").numbers, _places(part, COMPLETE)
    takes: dict[str, Take] = {COMPLETE: lambda row, ts, _cpu: machine.complete(done(row), errors[row], ts)}
    for event, begin in ((INSERT, machine.insert), (ISSUE, machine.issue)):
        if event in part:
            takes[event] = _begin(part, event, begin)
    for event, change in ((REQUEUE, machine.requeue), (MERGE, machine.merge)):
        if event in part:
            takes[event] = _change(_places(part, event), change)
    for event in (FRONT, BACK):
        if event in part:
            takes[event] = _bio(_places(part, event), machine, is_in_front=event == FRONT)
    return takes


def _places(part: RecordPart, event: str) -> Callable[[int], Place]:
    devs, sectors, counts, rwbs = (
        part.column(event, field) for field in ("dev", "sector", "nr_sector", "rwbs")
    )
    words = rwbs.words
    columns = (devs.numbers, sectors.numbers, counts.numbers, rwbs.numbers)

    def place(row: int) -> Place:
        dev, sector, count, word = columns
        return Place(dev[row], sector[row], count[row], words[word[row]])

    return place


def _begin(part: RecordPart, event: str, take: Callable[[Place, tuple[int, int, int]], None]) -> Take:
    place, (tids,) = _places(part, event), part.numbers(event, "common_pid")
    return lambda row, ts, cpu: take(place(row), (ts, cpu, tids[row]))


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


def depths(dev: int, starts: Iterable[int], stops: Iterable[int]) -> Iterator[Depth]:
    """Yield how many requests of a device were in the queue or the device, at each change, by time.

    `starts` and `stops` are when those began and ended that were seen from begin to end, in ns.

    >>> [(depth.ts, depth.n) for depth in depths(8, [1, 2, 5], [5, 9, 5])]
    [(1, 1), (2, 2), (5, 1), (9, 0)]
    """
    begins, ends = sort_numbers(starts)[0], sort_numbers(stops)[0]
    at = n = 0
    for place, stop in enumerate(ends):
        while at < len(begins) and begins[at] <= stop:
            ts = begins[at]
            while at < len(begins) and begins[at] == ts:
                at, n = at + 1, n + 1
            if ts != stop:
                yield Depth(ts, n, dev)
        n -= 1
        if place + 1 == len(ends) or ends[place + 1] != stop:
            yield Depth(stop, n, dev)
