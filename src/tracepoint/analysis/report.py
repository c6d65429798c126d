"""What every analysis returns: sections to show, tables to go on with, and what limits the figures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, NoReturn

from tracepoint.analysis.figures import figures_html
from tracepoint.analysis.sections import Choice, DistributionSection
from tracepoint.record.page import LOST_UNKNOWN
from tracepoint.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tracepoint.analysis.coverage import Coverage
    from tracepoint.analysis.needs import MissingEvent
    from tracepoint.analysis.sections import Section
    from tracepoint.decode.table import ColumnTable

ALL = Choice(most=None)
_ROWS_IN_NOTEBOOK = 8


class Report(ABC):
    """The result of an analysis.

    `coverage` says what time was looked at and what was lost of it, `missing` which events the recording
    does not have.
    """

    #: The name of the analysis.
    name: ClassVar[str]

    def __init__(self, coverage: Coverage, missing: Sequence[MissingEvent]) -> None:
        self.coverage = coverage
        self.missing = missing

    @property
    @abstractmethod
    def tables(self) -> Mapping[str, ColumnTable]:
        """The rows that the figures are computed from, by name, which Arrow and DuckDB take."""

    def read_tables(self, *takes: Callable[[Mapping[str, ColumnTable]], None]) -> None:
        """Call all of `takes` with the tables whose rows have a time, part by part where few are kept."""
        for take in takes:
            take(self.tables)

    @abstractmethod
    def sections(self, choice: Choice = ALL) -> Sequence[Section]:
        """Return the figures that `choice` chooses."""

    def __getstate__(self) -> NoReturn:
        raise TypeError(
            f"a report of {self.name} is bound to the columns of its recording and cannot be pickled or "
            "copied: hand over tracepoint.analysis.text.report_facts(report, ALL) of it, or its tables as "
            "Arrow, pyarrow.table(report.tables[NAME])"
        )

    def _repr_html_(self) -> str:
        """Return the first rows of each section for a notebook."""
        return figures_html(self.sections(Choice(most=_ROWS_IN_NOTEBOOK)), self.notes())

    @property
    def has_figures(self) -> bool:
        """Whether any section has rows or samples."""
        return any(
            any(map(len, one.groups.values())) if isinstance(one, DistributionSection) else one.rows
            for one in self.sections(Choice())
        )

    def cautions(self) -> Iterator[str]:
        """Yield the notes that belong to the figures, which are shown with them whatever else is silenced."""
        coverage = self.coverage
        if coverage.n_damaged:
            places = counted(coverage.n_damaged, "place")
            yield f"{places} of the recording could not be read: shares are of the {coverage.span_text}"

    def notes(self) -> Iterator[str]:
        """Yield what limits the figures: damage, lost and missing events; an analysis adds its own."""
        coverage = self.coverage
        yield from self.cautions()
        if not coverage.is_complete:
            lost = "some" if coverage.n_lost == LOST_UNKNOWN else f"{coverage.n_lost:,}"
            n_gaps = sum(map(len, coverage.gaps.values()))
            cpus = counted(len(coverage.gaps), "CPU")
            where = f" in {counted(n_gaps, 'gap')} on {cpus}" if n_gaps else ""
            yield f"{lost} events were lost{where}: figures are of what is left, with bounds where known"
        if self.missing:
            named = ", ".join(f"{event.name} ({event.gives})" for event in self.missing)
            yield f"no records here of {named}"
