"""Requests to block devices as sections: by device, by what they do, and the longest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.analysis.block.build import depths, device_name, operation
from tracepoint.analysis.block.needs import NEEDS
from tracepoint.analysis.sections import BEGIN, TASK, TOTAL, Heading, TableSection, Unit
from tracepoint.analysis.units import task_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.analysis.block.build import BlockWork
    from tracepoint.analysis.block.requests import BlockRequest
    from tracepoint.analysis.coverage import Coverage
    from tracepoint.analysis.sections import Choice, Section

EVENTS = tuple(name for need in NEEDS for name in need.names)
_SECTOR = 512
_DEVICES = (
    Heading("n", "requests"),
    Heading("n_bytes", "data", Unit.SIZE),
    Heading("depth", "depth", Unit.MEAN),
    Heading("max_depth", "most"),
    Heading("busy_share", "busy", Unit.SHARE),
    Heading("n_merges", "merges"),
    Heading("n_requeues", "requeues"),
    Heading("n_errors", "errors"),
    Heading("n_in_parts", "in parts"),
    Heading("device", "device", Unit.WORD),
)
_LONGEST = (
    TOTAL,
    Heading("service", "service", Unit.TIME),
    BEGIN,
    Heading("rwbs", "rwbs", Unit.WORD),
    Heading("sector", "sector", Unit.NUMBER),
    Heading("n_sectors", "sectors"),
    Heading("device", "device", Unit.WORD),
    TASK[0],
)


def kind_of(request: BlockRequest) -> str:
    """Return the device and what a request does: `8:0 read`."""
    return f"{device_name(request.dev)} {operation(request.rwbs)}"


def device_section(
    work: BlockWork, chosen: Sequence[BlockRequest], coverage: Coverage, choice: Choice
) -> Section:
    """Return what each device did: `depth` is the mean number of requests at work while there were any."""
    by_device: dict[int, list[BlockRequest]] = {}
    for request in chosen:
        by_device.setdefault(request.dev, []).append(request)
    rows = [
        (
            len(done := [request for request in own if request.is_whole]),
            sum(request.n_sectors for request in done) * _SECTOR,
            *_load(done, coverage.duration),
            work.n_bio_merges.get(dev, 0) + sum(request.is_merged for request in own),
            sum(request.n_requeues for request in own),
            sum(request.error != 0 for request in own),
            sum(request.n_parts > 1 for request in own),
            device_name(dev),
        )
        for dev, own in by_device.items()
    ]  # fmt: skip
    rows.sort(key=lambda row: -row[0])
    return choice.table("devices", "Devices", _DEVICES, rows, EVENTS)


def _load(done: Sequence[BlockRequest], span_ns: int) -> tuple[float, int, float]:
    """Return the mean depth while there was any request, the largest, and the share of time with any."""
    changes = depths(done)
    weighted = busy = most = 0
    for at, change in enumerate(changes[:-1]):
        length = changes[at + 1].ts - change.ts
        weighted += length * change.n
        busy += length if change.n else 0
        most = max(most, change.n)
    return weighted / (busy or 1), most, busy / (span_ns or 1)


def longest_section(
    chosen: Mapping[int, BlockRequest], work: BlockWork, tasks: Mapping[int, str], choice: Choice
) -> Section:
    """Return the requests that took longest; `chosen` are those to show by their number."""
    found = [at for at, request in chosen.items() if request.is_whole and not request.is_start_unknown]
    rows = [
        (
            (one := chosen[at]).done - one.ts, one.done - one.issue, one.ts, one.rwbs, one.sector,
            one.n_sectors, device_name(one.dev), task_text(tasks, work.tids[at]),
        )
        for at in choice.most_of(found, key=lambda at: chosen[at].done - chosen[at].ts)
    ]  # fmt: skip
    return TableSection("longest", "Longest", _LONGEST, rows, EVENTS, len(found) - len(rows))
