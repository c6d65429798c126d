"""Times that were chosen of a report as sections: by task, and the longest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.analysis.sections import BEGIN, CPU, DUR, MAX, TASK, TOTAL, Heading, N, TableSection, Unit
from tracepoint.analysis.units import task_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.analysis.distribution import Samples
    from tracepoint.analysis.sections import Choice, Value
    from tracepoint.analysis.sums import LongestRows

_TASKS = (N, TOTAL, MAX, *TASK)
_LONGEST = (DUR, BEGIN, CPU)


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
