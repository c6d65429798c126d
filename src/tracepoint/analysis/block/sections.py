"""Requests to block devices as sections: by device, by what they do, and the longest."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from tracepoint.analysis.block.build import depths, device_name
from tracepoint.analysis.block.needs import NEEDS
from tracepoint.analysis.sections import BEGIN, TASK, TOTAL, Heading, TableSection, Unit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracepoint.analysis.block.sums import DeviceSums, RequestSums
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


def device_section(
    sums: RequestSums, n_bio_merges: Mapping[int, int], coverage: Coverage, choice: Choice
) -> Section:
    """Return what each device did: `depth` is the mean number of requests at work while there were any."""
    rows = [
        (
            len(own.starts), own.n_sectors * _SECTOR, *_load(dev, own, coverage.duration),
            n_bio_merges.get(dev, 0) + own.n_merged, own.n_requeues, own.n_errors, own.n_in_parts,
            device_name(dev),
        )
        for dev, own in sorted(sums.devices.items(), key=lambda one: one[1].first)
    ]  # fmt: skip
    rows.sort(key=lambda row: -row[0])
    return choice.table("devices", "Devices", _DEVICES, rows, EVENTS)


def _load(dev: int, own: DeviceSums, span_ns: int) -> tuple[float, int, float]:
    """Return the mean depth while there was any request, the largest, and the share of time with any."""
    weighted = busy = most = 0
    for change, after in pairwise(depths(dev, own.starts, own.stops)):
        length = after.ts - change.ts
        weighted += length * change.n
        busy += length if change.n else 0
        most = max(most, change.n)
    return weighted / (busy or 1), most, busy / (span_ns or 1)


def longest_section(sums: RequestSums, choice: Choice) -> Section:
    """Return the requests that took longest."""
    longest = sums.longest()
    rows = longest.rows(choice.most)
    return TableSection("longest", "Longest", _LONGEST, rows, EVENTS, longest.n - len(rows))
