"""What an analysis found, as sections with units: text, JSON and pages are made from these alone."""

from __future__ import annotations

from enum import Enum, auto
from fnmatch import fnmatchcase
from heapq import nlargest
from typing import TYPE_CHECKING

from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from typing import TypeVar

    from tracepoint.analysis.distribution import Bounds, Samples

    Item = TypeVar("Item")
    Value = int | float | str | Bounds | dict[str, int] | None

MAX_ROWS = 20


class Unit(Enum):
    """What a figure is: TIME is in ns, SHARE from 0 to 1, RATE in 1/s, MEAN a mean of counts.

    CLOCK is a time of the recording's clock in ns, which is shown in seconds as `--from` takes it.
    """

    WORD = auto()
    NUMBER = auto()
    COUNT = auto()
    TIME = auto()
    CLOCK = auto()
    SHARE = auto()
    SIZE = auto()
    RATE = auto()
    ADDRESS = auto()
    MEAN = auto()


class Heading(NamedTuple):
    """A column of a section: its key in JSON, what text shows above it, and its unit.

    Columns without a `label` are for programs only.
    """

    key: str
    label: str
    unit: Unit = Unit.COUNT


class TableSection(NamedTuple):
    """Rows of figures, the most important first.

    `events` are the events that the figures come from, as `system:event`; `n_more` is how many rows were
    left out.
    """

    key: str
    title: str
    headings: Sequence[Heading]
    rows: Sequence[Sequence[Value]]
    events: Sequence[str] = ()
    n_more: int = 0


class DistributionSection(NamedTuple):
    """Samples by what they are of, such as latencies by cause.

    >>> from tracepoint.analysis.distribution import Distribution
    >>> DistributionSection("latency_ns", "Latency", {"all": Distribution([1, 2])}).groups
    {'all': <Distribution of 2 samples>}
    """

    key: str
    title: str
    groups: Mapping[str, Samples]
    label: str = ""
    unit: Unit = Unit.TIME
    events: Sequence[str] = ()


Section = TableSection | DistributionSection

#: Columns that tables of several analyses have.
N = Heading("n", "n")
TOTAL, MEAN, P50, P99, MAX = (
    Heading(name, name, Unit.TIME) for name in ("total", "mean", "p50", "p99", "max")
)
DUR = Heading("dur", "time", Unit.TIME)
BEGIN = Heading("ts", "begin (s)", Unit.CLOCK)
CPU = Heading("cpu", "cpu", Unit.NUMBER)
TASK = (Heading("task", "task", Unit.WORD), Heading("tid", "", Unit.NUMBER))
RATE = Heading("rate", "rate", Unit.RATE)


class Choice(NamedTuple):
    """What to show of a report: CPUs (None: all), tasks by id or name pattern (none: all), how many rows."""

    cpus: Collection[int] | None = None
    tasks: Collection[int | str] = ()
    most: int | None = MAX_ROWS

    @property
    def is_of_all(self) -> bool:
        """Whether all CPUs and tasks are shown."""
        return self.cpus is None and not self.tasks

    def has_cpu(self, cpu: int) -> bool:
        """Whether to show a CPU."""
        return self.cpus is None or cpu in self.cpus

    def has_task(self, tid: int, name: str) -> bool:
        """Whether to show a task.

        >>> Choice(tasks=["kworker/*"]).has_task(7, "kworker/0:1"), Choice(tasks=[8]).has_task(7, "sh")
        (True, False)
        """
        if not self.tasks:
            return True
        return any(tid == one if isinstance(one, int) else fnmatchcase(name, one) for one in self.tasks)

    def chosen(self, tids: Sequence[int], cpus: Iterable[int], names: Mapping[int, str]) -> list[bool]:
        """Return which rows to show, by the task and the CPU of each; `names` are those of tasks by id.

        >>> Choice(cpus=[0], tasks=["sh"]).chosen([7, 8, 7], [0, 0, 1], {7: "sh"})
        [True, False, False]
        """
        shown = {tid for tid in set(tids) if self.has_task(tid, names.get(tid, ""))}
        return [tid in shown and self.has_cpu(cpu) for tid, cpu in zip(tids, cpus, strict=True)]

    def flags(self, tids: Sequence[int], cpus: Sequence[int], names: Mapping[int, str]) -> list[bool] | None:
        """Return which rows to show, as `chosen` does; None where all are shown.

        >>> Choice().flags([7], [0], {}), Choice(cpus=[1]).flags([7], [0], {})
        (None, [False])
        """
        return None if self.is_of_all else self.chosen(tids, cpus, names)

    def whole(self, section: Section, *, is_of_tasks: bool = True) -> Section:
        """Return a section that is of all CPUs whatever was chosen, with a title that says so.

        With `is_of_tasks` it is of all tasks too.

        >>> Choice(cpus=[1]).whole(TableSection("tasks", "Tasks", [], [])).title
        'Tasks (of all CPUs)'
        """
        chosen = {"CPUs": self.cpus is not None, "tasks": is_of_tasks and bool(self.tasks)}
        names = " and ".join(name for name, is_chosen in chosen.items() if is_chosen)
        return section._replace(title=f"{section.title} (of all {names})") if names else section

    def most_of(self, items: Sequence[Item], key: Callable[[Item], int]) -> list[Item]:
        """Return those with the largest keys, as many as are chosen.

        >>> Choice(most=2).most_of([1, 7, 3], key=int), Choice(most=None).most_of([1, 7, 3], key=int)
        ([7, 3], [7, 3, 1])
        """
        return nlargest(len(items) if self.most is None else self.most, items, key=key)

    def table(
        self,
        key: str,
        title: str,
        headings: Sequence[Heading],
        rows: Sequence[Sequence[Value]],
        events: Sequence[str] = (),
    ) -> TableSection:
        """Return a section of the first rows, as many as are chosen."""
        shown = rows if self.most is None else rows[: self.most]
        return TableSection(key, title, headings, shown, events, len(rows) - len(shown))
