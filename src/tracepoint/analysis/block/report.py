"""The requests to block devices of a trace: how long they were queued and served, by device."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from tracepoint.analysis.block.build import RequestReader, depths, device_name
from tracepoint.analysis.block.needs import NEEDS
from tracepoint.analysis.block.requests import BlockRequest, RequestRows, no_requests
from tracepoint.analysis.block.sections import EVENTS, device_section, longest_section
from tracepoint.analysis.block.sums import RequestSums, lengths_of
from tracepoint.analysis.parts import PartedReport, SummedParts
from tracepoint.analysis.records import AnalysisRecords
from tracepoint.analysis.report import ALL
from tracepoint.analysis.sections import Choice, DistributionSection
from tracepoint.analysis.spans import OPEN, hiding_of, span_columns
from tracepoint.decode.column import names_column, number_column
from tracepoint.decode.table import ColumnTable
from tracepoint.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tracepoint.analysis.distribution import Samples
    from tracepoint.analysis.sections import Section
    from tracepoint.decode.column import Column
    from tracepoint.decode.trace import Trace

_DEPTH = "linux_active_block_io_operations_by_device"


class BlockReport(PartedReport[RequestRows, RequestSums]):
    """Requests to block devices; `analyse_block` makes it."""

    name = "block"

    def __init__(self, requests: RequestReader) -> None:
        self._reader = requests
        records = requests.records
        parts = SummedParts(requests.read, lambda choice: RequestSums(requests, choice))
        super().__init__(records.coverage, records.missing, parts)

    def __repr__(self) -> str:
        return f"<BlockReport of {self._reader.tally.n:,} requests>"

    @cached_property
    def _all_rows(self) -> RequestRows:
        return self.parts.all_rows(no_requests())

    @cached_property
    def requests(self) -> Sequence[BlockRequest]:
        """The requests by their first event."""
        rows, words = self._all_rows, self._reader.words.all
        found = [BlockRequest(*values) for values in zip(*rows, strict=True)]
        for at, request in enumerate(found):
            request.rwbs = words[rows.rwbs[at]]
            request.is_merged, request.is_cut = bool(rows.is_merged[at]), bool(rows.is_cut[at])
            request.is_start_unknown = self._reader.is_start_unknown(rows, at)
        return found

    @cached_property
    def tables(self) -> Mapping[str, ColumnTable]:
        """The rows of `block_request` and of Perfetto's `linux_active_block_io_operations_by_device`."""
        return self.tables_of(lambda: self._all_rows) | self.whole_tables

    def tables_of(self, rows: Callable[[], RequestRows]) -> dict[str, ColumnTable]:
        """Return the table `block_request` of some requests."""
        return {"block_request": ColumnTable("block_request", lambda: self._columns(rows()))}

    @property
    def whole_tables(self) -> dict[str, ColumnTable]:
        """The table of how many requests were at work, which is not of a part."""
        return {_DEPTH: ColumnTable(_DEPTH, self._depth_columns)}

    def _columns(self, rows: RequestRows) -> list[Column]:
        """Return a request a row: `queue_dur`, `service_dur` in ns, -1 where they are not known."""
        words, places = self._reader.words.all, range(len(rows.ts))
        lengths = [lengths_of(rows, at) for at in places]
        totals = [OPEN if self._reader.is_start_unknown(rows, at) else lengths[at][2] for at in places]
        return [
            *span_columns(rows.ts, totals),
            number_column("queue_dur", (queued for queued, _, _ in lengths), "q"),
            number_column("service_dur", (service for _, service, _ in lengths), "q"),
            names_column("dev", map(device_name, rows.dev)),
            number_column("sector", rows.sector, "Q"),
            number_column("n_sectors", rows.n_sectors, "q"),
            names_column("rwbs", (words[word] for word in rows.rwbs)),
            number_column("tid", rows.tid, "i"),
            number_column("error", rows.error, "i"),
            number_column("n_parts", rows.n_parts, "i"),
            number_column("n_requeues", rows.n_requeues, "i"),
            number_column("is_merged", rows.is_merged, "b"),
            number_column("is_cut", rows.is_cut, "b"),
        ]

    def _depth_columns(self) -> list[Column]:
        devices = self.parts.sums(Choice()).devices
        changes = [
            change for dev, own in sorted(devices.items()) for change in depths(dev, own.starts, own.stops)
        ]
        return [
            number_column("ts", (change.ts for change in changes), "q"),
            number_column("ops_in_queue_or_device", (change.n for change in changes), "q"),
            number_column("dev", (change.dev for change in changes), "q"),
        ]

    def queue(self, choice: Choice = ALL) -> Mapping[str, Samples]:
        """Return how long requests were queued before they were first issued, in ns, by device and kind."""
        return self._samples(0, choice)

    def service(self, choice: Choice = ALL) -> Mapping[str, Samples]:
        """Return how long requests were in the device since they were last issued, in ns."""
        return self._samples(1, choice)

    def total(self, choice: Choice = ALL) -> Mapping[str, Samples]:
        """Return how long requests took from their first event, in ns."""
        return self._samples(2, choice)

    def _samples(self, which: int, choice: Choice) -> Mapping[str, Samples]:
        sums = self.parts.figures(choice)
        return sums.samples(which, hiding_of(self.coverage, self._reader.tally.first_cut))

    def sections(self, choice: Choice = ALL) -> Sequence[Section]:
        """Return what devices did, how long requests waited and took, and the longest."""
        sums = self.parts.sums(choice)
        return [
            device_section(sums, self._reader.n_bio_merges, self.coverage, choice),
            DistributionSection(
                "queue_ns", "Queued, until issued", self.queue(choice), "request", events=EVENTS
            ),
            DistributionSection(
                "service_ns", "In the device", self.service(choice), "request", events=EVENTS
            ),
            DistributionSection(
                "total_ns", "From begin to end", self.total(choice), "request", events=EVENTS
            ),
            longest_section(sums, choice),
        ]

    def notes(self) -> Iterator[str]:
        """Yield what limits the figures: losses, requests without an end, completions without a request."""
        yield from super().notes()
        tally = self._reader.tally
        if tally.n_open:
            yield f"{counted(tally.n_open, 'request')} without an end"
        if tally.n_cut:
            yield f"{counted(tally.n_cut, 'request')} whose end a loss may hide"
        if tally.n_orphans:
            yield f"{counted(tally.n_orphans, 'completion')} without a request"


def analyse_block(trace: Trace) -> BlockReport:
    """Return the requests to block devices of a trace.

    Raises TracepointError when their issue and completion were not recorded.
    """
    return BlockReport(RequestReader(AnalysisRecords(trace, BlockReport.name, NEEDS)))


analyse = analyse_block
