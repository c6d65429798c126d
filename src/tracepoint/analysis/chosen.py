"""The times that are chosen of a report, with figures of them by what they are of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.analysis.sections import BEGIN, CPU, DUR, MAX, TASK, TOTAL, Heading, N, TableSection, Unit
from tracepoint.analysis.sums import LongestRows, samples_by
from tracepoint.analysis.units import task_text

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence
    from typing import TypeVar

    from tracepoint.analysis.distribution import Samples
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

    def samples(self, groups: Sequence[Group]) -> Mapping[Group, Samples]:
        """Return the times with an end by group, those with most time first; `groups` has one for each."""
        coverage, is_sure = self._records.coverage, self._is_paired_surely
        return samples_by(self._spans, groups, coverage, self.flags, is_paired_surely=is_sure)

    def task_section(self, events: Sequence[str]) -> TableSection:
        """Return the times of each task."""
        return task_section(self.samples(self._tids), self._records.names, self._choice, events)

    def longest_section(
        self,
        headings: Sequence[Heading],
        details: Callable[[int], Sequence[Value]],
        events: Sequence[str],
        task: str = "task",
    ) -> TableSection:
        """Return the longest times; `headings` are of the `details` of each, `task` is that of its task."""
        spans, records = self._spans, self._records

        def shown(at: int) -> tuple[Value, ...]:
            place = spans.dur[at], spans.ts[at], records.cpus[spans.begin[at]]
            return (*place, *details(at), records.task(self._tids[at]))

        longest: LongestRows[Sequence[Value]] = LongestRows(self._choice.most)
        longest.add(spans.dur, range(len(spans)), shown, self.flags)
        return longest_section(longest, self._choice, headings, events, task)


def task_section(
    samples: Mapping[int, Samples], names: Mapping[int, str], choice: Choice, events: Sequence[str]
) -> TableSection:
    """Return the times of each task by its id; `names` are those of tasks."""
    rows = [
        (made.count, made.sum, made.quantile(1.0), task_text(names, tid), tid)
        for tid, made in samples.items()
    ]
    return choice.table("tasks", "Tasks", _TASKS, rows, events)


def longest_section(
    longest: LongestRows[Sequence[Value]],
    choice: Choice,
    headings: Sequence[Heading],
    events: Sequence[str],
    task: str = "task",
) -> TableSection:
    """Return the longest times: length, begin, CPU, what `headings` are of, and the task under `task`."""
    rows = longest.rows(choice.most)
    shown = (*_LONGEST, *headings, Heading("task", task, Unit.WORD))
    return TableSection("longest", "Longest", shown, rows, events, longest.n - len(rows))
