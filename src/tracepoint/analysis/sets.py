"""What changed between two sets of recordings: each recording counts once, whatever is in it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from tracepoint.analysis.compare import EXPLAINS, cliffs_delta, table_rates
from tracepoint.analysis.coverage import Coverage
from tracepoint.analysis.distribution import Bounds
from tracepoint.analysis.report import ALL, Report
from tracepoint.analysis.resample import RISK, least_chance, mean_change
from tracepoint.analysis.sections import MAX_ROWS, DistributionSection, Heading, TableSection, Unit
from tracepoint.named import NamedTuple
from tracepoint.record.page import add_lost
from tracepoint.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tracepoint.analysis.compare import TableRates
    from tracepoint.analysis.distribution import Samples
    from tracepoint.analysis.resample import MeanChange
    from tracepoint.analysis.sections import Choice, Section, Value
    from tracepoint.decode.table import ColumnTable

_VERDICT = Heading("verdict", "verdict", Unit.WORD)


class KnownMedian(NamedTuple):
    """The median of the samples of a recording that were seen, and between which bounds the true one is."""

    seen: float
    bounds: Bounds


class SetMedians(NamedTuple):
    """The medians of a distribution of one recording by group; None where losses hide one."""

    title: str
    label: str
    unit: Unit
    events: Sequence[str]
    groups: Mapping[str, KnownMedian | None]


@dataclass(frozen=True)
class RecordingFigures:
    """What is kept of one recording of a set: medians, rates, and what limits them; `figures_of` makes it."""

    analysis: str
    n_lost: int
    duration: int
    missing: tuple[str, ...]
    medians: Mapping[str, SetMedians]
    rates: Mapping[str, TableRates]


def figures_of(report: Report, records: Mapping[str, int] | None = None) -> RecordingFigures:
    """Return the figures of a report that sets of recordings are compared by.

    `records` are the numbers of records of each event: with them events are ranked too.
    """
    sections = list(report.sections())
    if records is not None:
        headings = Heading("event", "event", Unit.WORD), Heading("n", "records")
        sections.append(TableSection("records", "Records", headings, list(records.items())))
    medians = {
        one.key: SetMedians(one.title, one.label or "of", one.unit, one.events, _medians(one))
        for one in sections
        if isinstance(one, DistributionSection)
    }
    seconds = report.coverage.seconds
    tables = (table_rates(one, seconds) for one in sections if isinstance(one, TableSection))
    return RecordingFigures(
        report.name,
        report.coverage.n_lost,
        report.coverage.duration,
        tuple(event.name for event in report.missing),
        medians,
        {rates.key: rates for rates in tables if rates is not None},
    )


def _medians(section: DistributionSection) -> dict[str, KnownMedian | None]:
    return {name: _median(samples) for name, samples in section.groups.items() if len(samples)}


def _median(samples: Samples) -> KnownMedian | None:
    bounds = samples.quantile(0.5)
    if bounds is None or bounds.high is None:
        return None
    return KnownMedian(samples.ranked((len(samples) + 1) // 2).low, bounds)


class SetComparison(Report):
    """What changed between two sets of recordings; `compare_sets` makes it."""

    name = "compare"

    def __init__(
        self, before: Sequence[RecordingFigures], after: Sequence[RecordingFigures], seed: int
    ) -> None:
        both = (*before, *after)
        lost = reduce(add_lost, (one.n_lost for one in both))
        super().__init__(Coverage(0, sum(one.duration for one in both), {}, lost), ())
        #: The recordings that are compared, by `before` and `after`.
        self.sides = {"before": before, "after": after}
        self._seed = seed

    def __repr__(self) -> str:
        sizes = " and ".join(f"{len(side):,}" for side in self.sides.values())
        return f"<SetComparison of {sizes} recordings>"

    @property
    def tables(self) -> dict[str, ColumnTable]:
        """No rows: they are in the recordings."""
        return {}

    def notes(self) -> Iterator[str]:
        """Yield what limits the figures of either set."""
        for word, side in self.sides.items():
            of_all = f"of {counted(len(side), 'recording')}"
            n_lossy = sum(one.n_lost != 0 for one in side)
            if n_lossy:
                yield f"{word}: {n_lossy:,} {of_all} lost events; figures are of what is left"
            for missing, n in sorted(Counter(one.missing for one in side).items()):
                if missing:
                    yield f"{word}: {n:,} {of_all} have no records of {', '.join(missing)}"

    def sections(self, choice: Choice = ALL) -> list[Section]:
        """Return the changes of medians, and those of tables by what explains most of them."""
        before, after = self.sides.values()
        medians = {
            key: [[one.medians[key] for one in side if key in one.medians] for side in (before, after)]
            for key in _keys([one.medians for one in before], [one.medians for one in after])
        }
        n_tests = sum(len(_groups(*sides)) for sides in medians.values())
        found: list[Section] = [
            _median_changes(key, first, second, n_tests, self._seed)
            for key, (first, second) in medians.items()
        ]
        for key in _keys([one.rates for one in before], [one.rates for one in after]):
            sides_of = [[one.rates[key] for one in side if key in one.rates] for side in (before, after)]
            found.append(_rate_changes(sides_of[0], sides_of[1], self._seed, choice))
        return found


def compare_sets(
    before: Sequence[RecordingFigures], after: Sequence[RecordingFigures], seed: int = 1
) -> SetComparison:
    """Return what changed from one set of recordings to another.

    Equal figures and seeds give equal results.  Raises ValueError for a set without recordings, and for
    figures of several analyses.

    >>> import tracepoint as tp
    >>> from tracepoint.analysis import analyse_sched
    >>> with tp.open_trace("tests/tracefile/golden/cut.v6.dat") as trace:
    ...     figures = figures_of(analyse_sched(trace))
    >>> {row[-1] for row in compare_sets([figures] * 6, [figures] * 6).sections()[0].rows}
    {'no change shown'}
    """
    if not before or not after:
        raise ValueError("a set without recordings has nothing to compare")
    names = sorted({one.analysis for one in (*before, *after)})
    if len(names) > 1:
        raise ValueError(f"several analyses, {' and '.join(names)}, have nothing to compare")
    return SetComparison(before, after, seed)


def _keys(*sides: Sequence[Mapping[str, object]]) -> list[str]:
    """Return the keys that some recordings of each side have, in the order of the first."""
    first, second = (dict.fromkeys(key for one in side for key in one) for side in sides)
    return [key for key in first if key in second]


def _verdict(change: MeanChange, n_before: int, n_after: int, n_tests: int) -> str:
    if least_chance(n_before, n_after) > RISK / n_tests:
        return "too few"
    low, high = change.confidence
    if change.chance > RISK / n_tests or low <= 0 <= (high or 0):
        return "no change shown"
    return "larger" if change.change > 0 else "smaller"


def _groups(before: Sequence[SetMedians], after: Sequence[SetMedians]) -> list[str]:
    return _keys([one.groups for one in before], [one.groups for one in after])


def _median_changes(
    key: str, before: Sequence[SetMedians], after: Sequence[SetMedians], n_tests: int, seed: int
) -> TableSection:
    first = before[0]
    headings = (
        Heading("of", first.label, Unit.WORD),
        Heading("before_n", "n before"),
        Heading("after_n", "n after"),
        Heading("before_p50", "before p50", first.unit),
        Heading("after_p50", "after p50", first.unit),
        Heading("change", "change", Unit.SHARE),
        Heading("confidence", "95 % sure within", Unit.SHARE),
        Heading("shift", "larger more often by", Unit.SHARE),
        _VERDICT,
    )
    rows = [_median_row(name, before, after, n_tests, seed) for name in _groups(before, after)]
    rows.sort(key=lambda row: -abs(row[7]) if isinstance(row[7], float) else 0)
    title = f"{first.title}: means of the medians of recordings"
    return TableSection(key, title, headings, rows, first.events)


def _median_row(
    name: str, before: Sequence[SetMedians], after: Sequence[SetMedians], n_tests: int, seed: int
) -> tuple[Value, ...]:
    sides = [[one.groups[name] for one in side if name in one.groups] for side in (before, after)]
    first, second = ([own for own in side if own is not None] for side in sides)
    counts = len(first), len(second)
    if not first or not second:
        return (name, *counts, None, None, None, None, None, "hidden by losses")
    seen = [[own.seen for own in side] for side in (first, second)]
    change = mean_change(seen[0], seen[1], n_tests, seed)
    means = [_mean_bounds([own.bounds for own in side]) for side in (first, second)]
    # A clock that stands still gives lengths of 0.
    base = max(sum(seen[0]) / len(first), 1)
    sure = Bounds(change.confidence.low / base, (change.confidence.high or 0) / base)
    shift = cliffs_delta(sorted(seen[0]), sorted(seen[1]))
    verdict = _verdict(change, *counts, n_tests)
    if verdict in {"larger", "smaller"} and _overlap(*means):
        verdict = "hidden by losses"
    return (name, *counts, *means, change.change / base, sure, shift, verdict)


def _mean_bounds(bounds: Sequence[Bounds]) -> Bounds:
    low, high = (sum(ends) / len(bounds) for ends in ([b.low for b in bounds], [b.high or 0 for b in bounds]))
    return Bounds(low, high)


def _overlap(first: Bounds, second: Bounds) -> bool:
    return first.low <= (second.high or 0) and second.low <= (first.high or 0)


def _rate_changes(
    before: Sequence[TableRates], after: Sequence[TableRates], seed: int, choice: Choice
) -> TableSection:
    """Return what changed by name, in each second: what explains most comes first, and has bounds."""
    first = before[0]
    names = dict.fromkeys(name for one in (*before, *after) for name in one.values)
    sides = {
        name: [[one.values.get(name, 0.0) for one in side] for side in (before, after)] for name in names
    }
    means = {name: [sum(side) / len(side) for side in own] for name, own in sides.items()}
    changes = {name: second - first for name, (first, second) in means.items()}
    total = sum(map(abs, changes.values()))
    ordered = sorted(changes, key=lambda name: (-abs(changes[name]), name))
    rows: list[tuple[Value, ...]] = []
    for at, name in enumerate(ordered):
        sure: tuple[Value, Value] = (None, "")
        if at < MAX_ROWS:
            first_side, second_side = sides[name]
            change = mean_change(first_side, second_side, len(names), seed)
            sure = change.confidence, _verdict(change, len(before), len(after), len(names))
        share = abs(changes[name]) / total if total else 0.0
        rows.append((name, *means[name], changes[name], sure[0], share, sure[1]))
    headings = (
        Heading("name", first.label, Unit.WORD),
        Heading("before", "before", first.unit),
        Heading("after", "after", first.unit),
        Heading("change", "change", first.unit),
        Heading("confidence", "95 % sure within", first.unit),
        EXPLAINS,
        _VERDICT,
    )
    return choice.table(first.key, f"{first.title}, means of recordings", headings, rows, first.events)
