"""Swapping and reclaim of a trace, and the figures that people ask for first."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from tracepoint.analysis.grouping import Grouping
from tracepoint.analysis.report import ALL, Report
from tracepoint.analysis.sections import DistributionSection, Unit
from tracepoint.analysis.spans import hiding_of, samples_of, span_columns
from tracepoint.analysis.swap.build import LARGEST_ORDER, read_swap
from tracepoint.analysis.swap.machine import UNKNOWN
from tracepoint.analysis.swap.needs import ADD, DELETE, RECLAIM, SWAP_IN, SWAP_OUT
from tracepoint.analysis.swap.sections import (
    page_section,
    reclaim_section,
    scan_section,
    task_section,
    write_section,
)
from tracepoint.decode.column import names_column, number_column
from tracepoint.decode.table import ColumnTable
from tracepoint.wording import size_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracepoint.analysis.distribution import Distribution
    from tracepoint.analysis.records import AnalysisRecords
    from tracepoint.analysis.sections import Choice, Section
    from tracepoint.analysis.swap.machine import SwapMachine
    from tracepoint.decode.column import Column
    from tracepoint.decode.trace import Trace


class SwapReport(Report):
    """Swapping and reclaim of a trace; `analyse_swap` makes it.

    `reclaim` is a table with a row for each time of reclaim; `dur` is -1 where its end was not recorded.
    """

    name = "swap"

    def __init__(self, records: AnalysisRecords, machine: SwapMachine) -> None:
        super().__init__(records.coverage, records.missing)
        self.records = records
        self.machine = machine
        self._recorded = records.recorded
        # How many pages one lost event may have evicted.
        self._largest_eviction = 1 << (LARGEST_ORDER if "order" in records.fields.get(DELETE, ()) else 0)

    def __repr__(self) -> str:
        n = sum(self.machine.outs.n_pages)
        return f"<SwapReport of {len(self.machine.ins.ts):,} pages in, {n:,} out>"

    @property
    def tables(self) -> dict[str, ColumnTable]:
        """The rows of `reclaim`."""
        return {"reclaim": self.reclaim}

    @cached_property
    def reclaim(self) -> ColumnTable:
        """The times of reclaim, in the order in which they began."""
        rows = self.machine.reclaims

        def columns() -> list[Column]:
            return [
                *span_columns(rows.ts, rows.dur, rows.cpu, rows.tid),
                names_column("kind", rows.kind),
                number_column("n_freed", rows.n_freed, "q", UNKNOWN),
            ]

        return ColumnTable("reclaim", columns)

    def _away(self, rows: Sequence[int]) -> Distribution:
        """Return how long pages were in a swap area."""
        values = [self.machine.ins.away[row] for row in rows]
        hiding = hiding_of(self.coverage, [self.coverage.start])
        return hiding.samples([ns for ns in values if ns != UNKNOWN], self.machine.n_unsure_slots)

    @property
    def _distances(self) -> Distribution:
        machine = self.machine
        hidden = max(self.coverage.n_lost, 0) * self._largest_eviction
        hiding = hiding_of(self.coverage)._replace(longest=machine.n_evicted + hidden)
        return hiding.samples(machine.distances, machine.n_unsure_files)

    def sections(self, choice: Choice = ALL) -> Sequence[Section]:
        """Return pages in and out, what was written, tasks, and reclaim with its times."""
        machine = self.machine
        reclaims = machine.reclaims
        moves = {"in": machine.ins, "out": machine.outs, "written": machine.writes}
        groups = {name: Grouping(self.records, choice, own.tid, own.cpu) for name, own in moves.items()}
        group = groups["reclaim"] = Grouping(self.records, choice, reclaims.tid, reclaims.cpu)
        by_kind: dict[str, list[int]] = {kind: [] for kind in RECLAIM}
        for row in group.rows:
            by_kind[reclaims.kind[row]].append(reclaims.dur[row])
        times = {
            kind: samples_of((ns for ns in by_kind[kind] if ns != UNKNOWN), self.coverage, reclaims.cut)
            for kind in RECLAIM
        }
        ends = tuple(name for names in RECLAIM.values() for name in names)
        return (
            page_section(groups["in"], groups["out"], machine.ins, machine.outs),
            write_section(groups["written"], machine.writes),
            task_section(groups, moves, reclaims),
            reclaim_section(group, reclaims),
            scan_section(group, machine.n_scanned, machine.n_reclaimed),
            DistributionSection("reclaim_ns", "Time of a reclaim", times, "kind", events=ends),
            DistributionSection(
                "away_ns",
                "Time in a swap area",
                {"in": self._away(groups["in"].rows)},
                "page",
                events=(SWAP_IN, SWAP_OUT),
            ),
            DistributionSection(
                "refault_pages",
                "Pages that left the page cache before one came back (at most)",
                {"file": self._distances},
                "page",
                Unit.COUNT,
                (DELETE, ADD),
            ),
        )

    def notes(self) -> Iterator[str]:
        """Yield what limits the figures, and what stands for events that only a patched kernel has."""
        yield from super().notes()
        machine = self.machine
        if not {SWAP_IN, SWAP_OUT} & self._recorded:
            yield (
                "this kernel has no events of swapping: reclaim tells what it wrote, of which pages of "
                "programs (ANON) go to a swap area"
            )
        if machine.grown or machine.shrunk:
            grown, shrunk = size_text(machine.grown), size_text(machine.shrunk)
            yield f"by rss_stat at least {grown} of programs were swapped out, {shrunk} came back or ended"


def analyse_swap(trace: Trace) -> SwapReport:
    """Return the swapping and reclaim of a trace; raises TracepointError without any of their events.

    Times are those of `trace.between`; the records of all tasks and CPUs are needed.

    >>> import tracepoint as tp
    >>> with tp.open_trace("tests/tracefile/golden/cut.v6.dat") as trace:
    ...     analyse_swap(trace)
    <SwapReport of 0 pages in, 0 out>
    """
    return SwapReport(*read_swap(trace))


analyse = analyse_swap
