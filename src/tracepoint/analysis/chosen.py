"""The times that are chosen of a report, with figures of them by what they are of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.analysis.sections import BEGIN, CPU, DUR, MAX, TASK, TOTAL, Heading, N, TableSection, Unit
from tracepoint.analysis.spans import OPEN, samples_by

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
    from typing import TypeVar

    from tracepoint.analysis.distribution import Distribution
    from tracepoint.analysis.records import AnalysisRecords
    from tracepoint.analysis.sections import Choice, Value
    from tracepoint.analysis.spans import Spans

    Group = TypeVar("Group", bound=Hashable)

_TASKS = (N, TOTAL, MAX, *TASK)
_LONGEST = (DUR, BEGIN, CPU)


class ChosenSpans:
    """The times of the chosen tasks and CPUs; `tids` are the tasks of the begins.

    `is_paired_surely` is False where a loss makes begins and ends meet that do not belong together.
    """

    def __init__(
        self,
        records: AnalysisRecords,
        spans: Spans,
        tids: Sequence[int],
        choice: Choice,
        *,
        is_paired_surely: bool = True,
    ) -> None:
        self._records = records
        self._spans = spans
        self._tids = tids
        self._choice = choice
        self._is_paired_surely = is_paired_surely
        #: Of each time whether it is chosen.
        self.flags = choice.chosen(tids, (records.cpus[row] for row in spans.begin), records.names)

    def samples(self, groups: Iterable[Group]) -> Mapping[Group, Distribution]:
        """Return the times with an end by group, those with most time first; `groups` has one for each."""
        kept = [group if is_chosen else None for group, is_chosen in zip(groups, self.flags, strict=True)]
        return samples_by(self._spans, kept, self._records.coverage, is_paired_surely=self._is_paired_surely)

    def task_section(self, events: Sequence[str]) -> TableSection:
        """Return the times of each task."""
        rows = [
            (made.count, made.sum, made.quantile(1.0), self._records.task(tid), tid)
            for tid, made in self.samples(self._tids).items()
        ]
        return self._choice.table("tasks", "Tasks", _TASKS, rows, events)

    def longest_section(
        self,
        headings: Sequence[Heading],
        details: Callable[[int], Sequence[Value]],
        events: Sequence[str],
        task: str = "task",
    ) -> TableSection:
        """Return the longest times; `headings` are of the `details` of each, `task` is that of its task."""
        spans, records = self._spans, self._records
        found = [at for at, dur in enumerate(spans.dur) if self.flags[at] and dur != OPEN]
        rows = [
            (
                spans.dur[at], spans.ts[at], records.cpus[spans.begin[at]],
                *details(at), records.task(self._tids[at]),
            )
            for at in self._choice.most_of(found, key=spans.dur.__getitem__)
        ]  # fmt: skip
        shown = (*_LONGEST, *headings, Heading("task", task, Unit.WORD))
        return TableSection("longest", "Longest", shown, rows, events, len(found) - len(rows))
