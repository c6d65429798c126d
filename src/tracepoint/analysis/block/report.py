"""The requests to block devices of a trace: how long they were queued and served, by device."""

from __future__ import annotations

from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING

from tracepoint.analysis.block.build import depths, device_name, read_requests
from tracepoint.analysis.block.needs import NEEDS
from tracepoint.analysis.block.requests import NEVER
from tracepoint.analysis.block.sections import EVENTS, device_section, kind_of, longest_section
from tracepoint.analysis.records import AnalysisRecords
from tracepoint.analysis.report import ALL, Report
from tracepoint.analysis.sections import DistributionSection
from tracepoint.analysis.spans import OPEN, hiding_of, span_columns
from tracepoint.decode.column import names_column, number_column
from tracepoint.decode.table import ColumnTable
from tracepoint.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tracepoint.analysis.block.build import BlockWork
    from tracepoint.analysis.block.requests import BlockRequest
    from tracepoint.analysis.distribution import Distribution
    from tracepoint.analysis.sections import Choice, Section
    from tracepoint.decode.column import Column
    from tracepoint.decode.trace import Trace

    Length = Callable[[BlockRequest], int | None]


def _queued(request: BlockRequest) -> int | None:
    return (
        None if NEVER in (request.inserted, request.first_issue) else request.first_issue - request.inserted
    )


def _service(request: BlockRequest) -> int | None:
    return request.done - request.issue if request.done != NEVER else None


def _total(request: BlockRequest) -> int | None:
    return request.done - request.ts if request.done != NEVER and not request.is_start_unknown else None


class BlockReport(Report):
    """Requests to block devices; `analyse_block` makes it."""

    name = "block"

    def __init__(self, records: AnalysisRecords, work: BlockWork) -> None:
        super().__init__(records.coverage, records.missing)
        self._records = records
        self._work = work

    def __repr__(self) -> str:
        return f"<BlockReport of {len(self._work.requests):,} requests>"

    @property
    def requests(self) -> Sequence[BlockRequest]:
        """The requests by their first event."""
        return self._work.requests

    @cached_property
    def tables(self) -> Mapping[str, ColumnTable]:
        """The rows of `block_request` and of Perfetto's `linux_active_block_io_operations_by_device`."""
        depth = "linux_active_block_io_operations_by_device"
        return {
            "block_request": ColumnTable("block_request", self._columns),
            depth: ColumnTable(depth, self._depth_columns),
        }

    def _columns(self) -> list[Column]:
        """Return a request a row: `queue_dur`, `service_dur` in ns, -1 where they are not known."""
        requests = self.requests
        return [
            *span_columns([one.ts for one in requests], [_known(_total(one)) for one in requests]),
            number_column("queue_dur", (_known(_queued(one)) for one in requests), "q"),
            number_column("service_dur", (_known(_service(one)) for one in requests), "q"),
            names_column("dev", (device_name(one.dev) for one in requests)),
            number_column("sector", (one.sector for one in requests), "Q"),
            number_column("n_sectors", (one.n_sectors for one in requests), "q"),
            names_column("rwbs", (one.rwbs for one in requests)),
            number_column("tid", self._work.tids, "i"),
            number_column("error", (one.error for one in requests), "i"),
            number_column("n_parts", (one.n_parts for one in requests), "i"),
            number_column("n_requeues", (one.n_requeues for one in requests), "i"),
            number_column("is_merged", (one.is_merged for one in requests), "b"),
            number_column("is_cut", (one.is_cut for one in requests), "b"),
        ]

    def _depth_columns(self) -> list[Column]:
        changes = depths(self.requests)
        return [
            number_column("ts", (change.ts for change in changes), "q"),
            number_column("ops_in_queue_or_device", (change.n for change in changes), "q"),
            number_column("dev", (change.dev for change in changes), "q"),
        ]

    def queue(self, choice: Choice = ALL) -> Mapping[str, Distribution]:
        """Return how long requests were queued before they were first issued, in ns, by device and kind."""
        return self._samples(_queued, choice)

    def service(self, choice: Choice = ALL) -> Mapping[str, Distribution]:
        """Return how long requests were in the device since they were last issued, in ns."""
        return self._samples(_service, choice)

    def total(self, choice: Choice = ALL) -> Mapping[str, Distribution]:
        """Return how long requests took from their first event, in ns."""
        return self._samples(_total, choice)

    def _samples(self, length: Length, choice: Choice) -> Mapping[str, Distribution]:
        values: dict[str, list[int]] = {}
        n_dropped: dict[str, int] = {}
        for request in self._chosen(choice).values():
            found = length(request)
            if found is not None:
                values.setdefault(kind_of(request), []).append(found)
            elif request.is_cut or request.is_start_unknown:
                n_dropped[kind_of(request)] = n_dropped.get(kind_of(request), 0) + 1
        hiding = hiding_of(self.coverage, [request.ts for request in self.requests if request.is_cut])
        order = sorted(values, key=lambda kind: -sum(values[kind]))
        return {kind: hiding.samples(values[kind], n_dropped.get(kind, 0)) for kind in order}

    def _chosen(self, choice: Choice) -> dict[int, BlockRequest]:
        cpus = (self._records.cpus[request.row] for request in self.requests)
        chosen = choice.chosen(self._work.tids, cpus, self._records.names)
        return dict(compress(enumerate(self.requests), chosen))

    def sections(self, choice: Choice = ALL) -> Sequence[Section]:
        """Return what devices did, how long requests waited and took, and the longest."""
        chosen = self._chosen(choice)
        return [
            device_section(self._work, list(chosen.values()), self.coverage, choice),
            DistributionSection(
                "queue_ns", "Queued, until issued", self.queue(choice), "request", events=EVENTS
            ),
            DistributionSection(
                "service_ns", "In the device", self.service(choice), "request", events=EVENTS
            ),
            DistributionSection(
                "total_ns", "From begin to end", self.total(choice), "request", events=EVENTS
            ),
            longest_section(chosen, self._work, self._records.names, choice),
        ]

    def notes(self) -> Iterator[str]:
        """Yield what limits the figures: losses, requests without an end, completions without a request."""
        yield from super().notes()
        n_open = sum(request.is_open and not request.is_cut for request in self.requests)
        n_cut = sum(request.is_cut for request in self.requests)
        if n_open:
            yield f"{counted(n_open, 'request')} without an end"
        if n_cut:
            yield f"{counted(n_cut, 'request')} whose end a loss may hide"
        if self._work.n_orphans:
            yield f"{counted(self._work.n_orphans, 'completion')} without a request"


def _known(value: int | None) -> int:
    return OPEN if value is None else value


def analyse_block(trace: Trace) -> BlockReport:
    """Return the requests to block devices of a trace.

    Raises TracepointError when their issue and completion were not recorded.
    """
    records = AnalysisRecords(trace, BlockReport.name, NEEDS)
    return BlockReport(records, read_requests(records))


analyse = analyse_block
