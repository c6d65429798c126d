"""What changed between two recordings: how much, how sure that is, and which tasks explain it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from math import ceil
from random import Random
from typing import TYPE_CHECKING

from tracepoint.analysis.distribution import Bounds
from tracepoint.analysis.report import ALL, Report
from tracepoint.analysis.sections import DistributionSection, Heading, TableSection, Unit
from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tracepoint.analysis.distribution import Samples
    from tracepoint.analysis.sections import Choice, Section, Value
    from tracepoint.decode.table import ColumnTable

_ROUNDS = 4000
_SEED = 1
_RISK = 0.05
_FEWEST = 8
_SUMS = (Unit.TIME, Unit.COUNT, Unit.SIZE)
#: What part of all changes of a table a row is.
EXPLAINS = Heading("explains", "of all change", Unit.SHARE)


class MedianChange(NamedTuple):
    """How the median of samples changed: `ratio` is after / before, and between which bounds it lies.

    `shift` is Cliff's delta: how much more often a sample of after is larger than one of before than
    smaller, from -1 to 1.  `verdict` says whether that can be chance.
    """

    ratio: float
    confidence: Bounds
    shift: float
    verdict: str


def cliffs_delta(before: Sequence[float], after: Sequence[float]) -> float:
    """Return Cliff's delta of two sorted lists that are not empty.

    >>> cliffs_delta([1, 2, 3], [4, 5, 6]), cliffs_delta([1, 2], [1, 2])
    (1.0, 0.0)
    """
    small, large = (before, after) if len(before) < len(after) else (after, before)
    more = sum(len(large) - bisect_right(large, value) - bisect_left(large, value) for value in small)
    return (more if small is before else -more) / (len(before) * len(after))


def median_change(before: Samples, after: Samples, n_tests: int = 1, seed: int = _SEED) -> MedianChange:
    """Return how the median changed; `n_tests` is how many such questions are asked at once.

    Both have samples.  The median of n samples that are drawn again has a rank that is n times a number of a
    beta distribution, so a round costs as much for a million samples as for ten.  Samples are taken as
    independent of each other.

    >>> from tracepoint.analysis.distribution import Distribution
    >>> median_change(Distribution(range(100, 200)), Distribution(range(300, 400))).verdict
    'larger'
    """
    # A generator of its own, so that the same recordings have the same figures.
    draw = Random(seed)  # noqa: S311 - nothing is secret here
    both = (before.values, after.values)
    ratios = sorted(_ratio(*(_median_again(values, draw) for values in both)) for _ in range(_ROUNDS))
    risk = _RISK / n_tests / 2
    low, high = ratios[int(risk * _ROUNDS)], ratios[-1 - int(risk * _ROUNDS)]
    ratio = _ratio(*(values[(len(values) - 1) // 2] for values in both))
    shift = cliffs_delta(*both)
    return MedianChange(ratio, Bounds(low, high), shift, _verdict(before, after, low, high))


def _median_again(values: Sequence[float], draw: Random) -> float:
    """Return the median of as many samples drawn from these with replacement."""
    n = len(values)
    rank = ceil(n / 2)
    return values[min(int(n * draw.betavariate(rank, n - rank + 1)), n - 1)]


def _ratio(before: float, after: float) -> float:
    # A clock that stands still gives lengths of 0.
    return max(after, 1) / max(before, 1)


def _verdict(before: Samples, after: Samples, low: float, high: float) -> str:
    if min(len(before), len(after)) < _FEWEST:
        return "too few"
    first, second = before.quantile(0.5), after.quantile(0.5)
    if first is None or second is None:
        return "hidden by losses"
    if low <= 1 <= high:
        return "no change shown"
    if _overlap(first, second):
        return "hidden by losses"
    return "larger" if low > 1 else "smaller"


def _overlap(first: Bounds, second: Bounds) -> bool:
    """Whether two figures may be the same."""
    ends = [float("inf") if bounds.high is None else bounds.high for bounds in (first, second)]
    return first.low <= ends[1] and second.low <= ends[0]


class Comparison(Report):
    """What changed between two reports of one analysis; `compare_reports` makes it."""

    name = "compare"

    def __init__(self, before: Report, after: Report, seed: int = _SEED) -> None:
        super().__init__(after.coverage, after.missing)
        self._both = before, after
        self._seed = seed

    def __repr__(self) -> str:
        return f"<Comparison of {self._both[0]!r} and {self._both[1]!r}>"

    @property
    def tables(self) -> dict[str, ColumnTable]:
        """No rows: they are in the tables of both reports."""
        return {}

    def cautions(self) -> Iterator[str]:
        """Yield the notes that belong to the figures of either report."""
        for word, report in zip(("before", "after"), self._both, strict=True):
            yield from (f"{word}: {note}" for note in report.cautions())

    def notes(self) -> Iterator[str]:
        """Yield what limits the figures of either report."""
        for word, report in zip(("before", "after"), self._both, strict=True):
            yield from (f"{word}: {note}" for note in report.notes())

    def sections(self, choice: Choice = ALL) -> list[Section]:
        """Return the changes of distributions, and those of tables by what explains most of them."""
        before, after = ({one.key: one for one in report.sections()} for report in self._both)
        pairs = [(before[key], after[key]) for key in before if key in after]
        shared = [
            (name, first, second)
            for first, second in pairs
            if isinstance(first, DistributionSection) and isinstance(second, DistributionSection)
            for name in first.groups
            if name in second.groups and len(first.groups[name]) and len(second.groups[name])
        ]
        found: list[Section] = []
        for first, second in pairs:
            if isinstance(first, DistributionSection) and isinstance(second, DistributionSection):
                own = [name for name, section, _ in shared if section is first]
                found.append(_distribution_changes(first, second, own, len(shared), self._seed))
            elif isinstance(first, TableSection) and isinstance(second, TableSection):
                rates = [table_rates(*one) for one in zip((first, second), self._seconds, strict=True)]
                if rates[0] is not None and rates[1] is not None:
                    found.append(_table_changes(rates[0], rates[1], choice))
        return found

    @property
    def _seconds(self) -> tuple[float, float]:
        first, second = (report.coverage.seconds for report in self._both)
        return first, second


def compare_reports(before: Report, after: Report, seed: int = _SEED) -> Comparison:
    """Return what changed from one report to another of the same analysis.

    Equal reports and seeds give equal figures.  Raises ValueError for reports of two analyses.

    >>> import tracepoint as tp
    >>> with tp.open_trace("tests/tracefile/golden/cut.v6.dat") as trace:
    ...     report = tp.analysis.analyse_sched(trace)
    >>> {row[-1] for row in compare_reports(report, report).sections()[-1].rows}
    {'too few'}
    """
    if before.name != after.name:
        raise ValueError(f"two analyses, {before.name} and {after.name}, have nothing to compare")
    return Comparison(before, after, seed)


def _distribution_changes(
    before: DistributionSection, after: DistributionSection, names: Sequence[str], n_tests: int, seed: int
) -> TableSection:
    headings = (
        Heading("of", before.label or "of", Unit.WORD),
        Heading("before_p50", "before p50", before.unit),
        Heading("after_p50", "after p50", after.unit),
        Heading("change", "change", Unit.SHARE),
        Heading("confidence", "95 % sure within", Unit.SHARE),
        Heading("shift", "larger more often by", Unit.SHARE),
        Heading("verdict", "verdict", Unit.WORD),
    )
    rows: list[tuple[Value, ...]] = []
    for name in names:
        both = before.groups[name], after.groups[name]
        change = median_change(*both, n_tests, seed)
        sure = Bounds(change.confidence.low - 1, (change.confidence.high or 1) - 1)
        medians = [samples.quantile(0.5) for samples in both]
        # Where a median is hidden by losses, that of what is left says nothing of how it changed.
        changed = (None, None, None) if None in medians else (change.ratio - 1, sure, change.shift)
        rows.append((name, *medians, *changed, change.verdict))
    rows.sort(key=lambda row: -abs(row[5]) if isinstance(row[5], float) else 0)
    return TableSection(before.key, f"{before.title}: medians", headings, rows, before.events)


class TableRates(NamedTuple):
    """The first figure of a table that adds up, by name, in each second of a recording."""

    key: str
    title: str
    label: str
    unit: Unit
    events: Sequence[str]
    values: Mapping[str, float]


def table_rates(section: TableSection, seconds: float) -> TableRates | None:
    """Return the first figure of a table that adds up, by name; None for a table without names or figures."""
    keys = [heading.key for heading in section.headings]
    words = [heading for heading in section.headings if heading.unit is Unit.WORD]
    sums = [heading for heading in section.headings if heading.label and heading.unit in _SUMS]
    if not words or not sums:
        return None
    # Tasks of two recordings have the same names, not the same ids.
    word = next((heading for heading in words if heading.key == "name"), words[0])
    values = _sums(section, keys.index(word.key), keys.index(sums[0].key), seconds)
    title = f"{section.title}: {sums[0].label} in each second"
    return TableRates(section.key, title, word.label or word.key, sums[0].unit, section.events, values)


def _table_changes(before: TableRates, after: TableRates, choice: Choice) -> TableSection:
    """Return what changed by name: the rows that explain most come first."""
    both = before.values, after.values
    changes = {name: both[1].get(name, 0.0) - both[0].get(name, 0.0) for name in {**both[0], **both[1]}}
    total = sum(map(abs, changes.values()))
    ordered = sorted(changes, key=lambda name: (-abs(changes[name]), name))
    rows = [
        (name, both[0].get(name, 0.0), both[1].get(name, 0.0), changes[name],
         abs(changes[name]) / total if total else 0.0)
        for name in ordered
    ]  # fmt: skip
    headings = (
        Heading("name", before.label, Unit.WORD),
        Heading("before", "before", before.unit),
        Heading("after", "after", before.unit),
        Heading("change", "change", before.unit),
        EXPLAINS,
    )
    return choice.table(before.key, before.title, headings, rows, before.events)


def _sums(section: TableSection, key: int, value: int, seconds: float) -> Mapping[str, float]:
    found: dict[str, float] = {}
    for row in section.rows:
        figure = row[value].low if isinstance(row[value], Bounds) else row[value]  # type: ignore[union-attr]
        if isinstance(figure, (int, float)):
            name = str(row[key])
            found[name] = found.get(name, 0.0) + figure / seconds
    return found
