"""Swapping and reclaim of a trace, and the figures that people ask for first."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from tracepoint.analysis.grouping import ChosenFigures
from tracepoint.analysis.parts import PartedReport, SummedParts
from tracepoint.analysis.records import AnalysisRecords
from tracepoint.analysis.report import ALL
from tracepoint.analysis.sections import DistributionSection, Unit
from tracepoint.analysis.spans import hiding_of, span_columns
from tracepoint.analysis.swap.build import LARGEST_ORDER, SwapReader
from tracepoint.analysis.swap.machine import UNKNOWN, ReclaimRows, no_reclaims
from tracepoint.analysis.swap.needs import ADD, DELETE, NEEDS, RECLAIM, SWAP_IN, SWAP_OUT
from tracepoint.analysis.swap.sections import (
    page_section,
    reclaim_section,
    scan_section,
    task_section,
    write_section,
)
from tracepoint.analysis.swap.sums import ChosenMoves, ReclaimSums
from tracepoint.decode.column import names_column, number_column
from tracepoint.decode.table import ColumnTable
from tracepoint.wording import size_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tracepoint.analysis.distribution import Samples
    from tracepoint.analysis.sections import Choice, Section
    from tracepoint.analysis.swap.machine import SwapMachine
    from tracepoint.decode.column import Column
    from tracepoint.decode.trace import Trace


class SwapReport(PartedReport[ReclaimRows, ReclaimSums]):
    """Swapping and reclaim of a trace; `analyse_swap` makes it.

    `reclaim` is a table with a row for each time of reclaim; `dur` is -1 where its end was not recorded.
    """

    name = "swap"

    def __init__(self, swap: SwapReader) -> None:
        self._swap = swap
        records = self.records = swap.records
        parts = SummedParts(swap.read, lambda choice: ReclaimSums(records.names, choice))
        super().__init__(records.coverage, records.missing, parts)
        self._recorded = records.recorded
        # How many pages one lost event may have evicted.
        self._largest_eviction = 1 << (LARGEST_ORDER if "order" in records.fields.get(DELETE, ()) else 0)

    def __repr__(self) -> str:
        moves = (self.machine.ins, self.machine.outs)
        n_in, n_out = (ChosenMoves(own, ALL, {}).n_pages for own in moves)
        return f"<SwapReport of {n_in:,} pages in, {n_out:,} out>"

    @property
    def machine(self) -> SwapMachine:
        """What was counted."""
        return self._swap.machine

    @property
    def tables(self) -> dict[str, ColumnTable]:
        """The rows of `reclaim`."""
        return {"reclaim": self.reclaim}

    @cached_property
    def reclaim(self) -> ColumnTable:
        """The times of reclaim, in the order in which they began."""
        return self.tables_of(lambda: self.parts.all_rows(no_reclaims()))["reclaim"]

    def tables_of(self, rows: Callable[[], ReclaimRows]) -> dict[str, ColumnTable]:
        """Return the table `reclaim` of some times."""
        kinds = list(RECLAIM)

        def columns() -> list[Column]:
            found = rows()
            return [
                *span_columns(found.ts, found.dur, found.cpu, found.tid),
                names_column("kind", (kinds[kind] for kind in found.kind)),
                number_column("n_freed", found.n_freed, "q", UNKNOWN),
            ]

        return {"reclaim": ColumnTable("reclaim", columns)}

    def _away(self, choice: Choice) -> Samples:
        """Return how long pages were in a swap area, by who brought them back."""
        names, away = self.records.names, self._swap.away
        hiding = hiding_of(self.coverage, [self.coverage.start]).dropping(self.machine.n_unsure_slots)
        chosen = [
            (tid, cpu)
            for tid, cpu in away.groups
            if choice.has_cpu(cpu) and choice.has_task(tid, names.get(tid, ""))
        ]
        return away.joined(hiding, chosen) if chosen else hiding.samples(())

    @property
    def distances(self) -> Samples:
        """How many pages left the page cache before one came back."""
        machine = self.machine
        hidden = max(self.coverage.n_lost, 0) * self._largest_eviction
        hiding = hiding_of(self.coverage)._replace(longest=machine.n_evicted + hidden)
        return self._swap.distances.joined(hiding.dropping(machine.n_unsure_files))

    def sections(self, choice: Choice = ALL) -> Sequence[Section]:
        """Return pages in and out, what was written, tasks, and reclaim with its times."""
        machine, group, names = self.machine, ChosenFigures(self.records, choice), self.records.names
        ins, outs, writes = (
            ChosenMoves(own, choice, names) for own in (machine.ins, machine.outs, machine.writes)
        )
        reclaims = self.parts.figures(choice)
        tally = machine.reclaims.tally
        hiding = tally.hiding(self.coverage)
        times = {kind: reclaims.lengths.joined(hiding, [number]) for number, kind in enumerate(RECLAIM)}
        ends = tuple(name for names in RECLAIM.values() for name in names)
        return (
            page_section(ins, outs, group),
            write_section(writes, group),
            task_section(ins, outs, writes, reclaims, group),
            reclaim_section(reclaims, group),
            scan_section(group, machine.n_scanned, machine.n_reclaimed),
            DistributionSection("reclaim_ns", "Time of a reclaim", times, "kind", events=ends),
            DistributionSection(
                "away_ns",
                "Time in a swap area",
                {"in": self._away(choice)},
                "page",
                events=(SWAP_IN, SWAP_OUT),
            ),
            DistributionSection(
                "refault_pages",
                "Pages that left the page cache before one came back (at most)",
                {"file": self.distances},
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
    return SwapReport(SwapReader(AnalysisRecords(trace, SwapReport.name, NEEDS)))


analyse = analyse_swap
