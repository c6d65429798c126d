"""Reports as short tables of text, and as values for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracepoint.analysis.figures import QUANTILES, figure_rows, value_text
from tracepoint.analysis.folded import FOLDED
from tracepoint.analysis.sections import DistributionSection, Unit
from tracepoint.errors import TracepointError
from tracepoint.wording import counted, text_table, visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.analysis.distribution import Samples
    from tracepoint.analysis.report import Report
    from tracepoint.analysis.sections import Choice, Section, TableSection

_BAR_WIDTH = 40


def report_lines(report: Report, choice: Choice, *, has_histograms: bool = False) -> Iterator[str]:
    """Yield the lines of a report: cautions, then its sections with what `choice` chooses.

    With `has_histograms` distributions have a histogram for each of their groups.
    """
    is_first = True
    for section in report.sections(choice):
        lines = list(section_lines(section, has_histograms=has_histograms))
        if not lines:
            continue
        if not is_first:
            yield ""
        elif cautions := list(report.cautions()):
            yield from (*cautions, "")
        is_first = False
        yield section.title
        yield from lines


def section_lines(section: Section, *, has_histograms: bool = False) -> Iterator[str]:
    """Yield the lines of a section, none where it has no figures."""
    if isinstance(section, DistributionSection):
        yield from _distribution_lines(section, has_histograms=has_histograms)
    elif section.rows:
        yield from _table_lines(section)


def _table_lines(section: TableSection) -> Iterator[str]:
    headings = [heading for heading in section.headings if heading.label]
    lefts = {at for at, heading in enumerate(headings) if heading.unit is Unit.WORD}
    yield from text_table(figure_rows(section), lefts)
    if section.n_more:
        yield f"... {counted(section.n_more, 'more row')}, --all shows them"


def _distribution_lines(section: DistributionSection, *, has_histograms: bool) -> Iterator[str]:
    rows = figure_rows(section)
    if len(rows) > 1:
        yield from text_table(rows, lefts={0})
    if has_histograms:
        for name, samples in section.groups.items():
            if len(samples):
                yield ""
                yield f"{visible(name)}:"
                yield from histogram_lines(samples, section.unit)


def histogram_lines(samples: Samples, unit: Unit) -> Iterator[str]:
    r"""Yield how many samples there are by powers of two, in the shape of bpftrace's hist().

    >>> from tracepoint.analysis.distribution import Distribution
    >>> print(*histogram_lines(Distribution([0, 3, 3, 3, 9]), Unit.COUNT), sep="\n")
    [0, 1)   1  |@@@@@@@@@@@@@                           |
    [1, 2)   0  |                                        |
    [2, 4)   3  |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
    [4, 8)   0  |                                        |
    [8, 16)  1  |@@@@@@@@@@@@@                           |
    """
    counts: dict[int, int] = {}
    for value in samples.values:
        power = int(value).bit_length()
        counts[power] = counts.get(power, 0) + 1
    if not counts:
        return
    most = max(counts.values())
    rows = []
    for power in range(min(counts), max(counts) + 1):
        low, high, n = 1 << power >> 1, 1 << power, counts.get(power, 0)
        bar = "@" * round(_BAR_WIDTH * n / most)
        ends = f"[{value_text(low, unit)}, {value_text(high, unit)})"
        rows.append([ends, f"{n:,}", f"|{bar:<{_BAR_WIDTH}}|"])
    yield from text_table(rows, lefts={0, 2})


def folded_lines(report: Report) -> Iterator[str]:
    """Yield the stacks of a report with their time in ns, as flamegraph.pl and speedscope read them.

    Raises TracepointError for an analysis without stacks.
    """
    table = report.tables.get(FOLDED)
    if table is None:
        raise TracepointError(f"the analysis {report.name} has no stacks; functions and sched have")
    stacks = table["stack"].tolist()
    for stack, own_ns in zip(stacks, table["own_ns"].numbers, strict=True):
        yield f"{visible(str(stack))} {own_ns}"


def report_facts(report: Report, choice: Choice) -> dict[str, Any]:
    """Return the figures of a report as values for JSON; bounds are [low, high], times in ns."""
    coverage = report.coverage
    found: dict[str, Any] = {
        "schema": f"tracepoint.{report.name}/1",
        "start": coverage.start,
        "stop": coverage.stop,
        "lost": coverage.n_lost,
        "gaps": {cpu: [list(gap) for gap in gaps] for cpu, gaps in coverage.gaps.items()},
        "missing": [event.name for event in report.missing],
        "notes": list(report.notes()),
    }
    return found | {section.key: _section_facts(section) for section in report.sections(choice)}


def _section_facts(section: Section) -> Any:
    if isinstance(section, DistributionSection):
        return {name: _samples_facts(samples) for name, samples in section.groups.items()}
    keys = [heading.key for heading in section.headings]
    return [dict(zip(keys, row, strict=True)) for row in section.rows]


def _samples_facts(samples: Samples) -> dict[str, Any]:
    found: dict[str, Any] = {"n": samples.count, "sum": samples.sum, "mean": samples.mean}
    return found | {name: samples.quantile(q) for name, q in QUANTILES}
