"""Analyses of a recording as figures that add up: what their sections count, and how long that took."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracepoint.analysis.coverage import count_coverage
from tracepoint.analysis.distribution import Bounds, Samples
from tracepoint.analysis.histogram import histogram_of
from tracepoint.analysis.registry import analyse
from tracepoint.analysis.sections import DistributionSection, TableSection
from tracepoint.analysis.summary import TraceSummary
from tracepoint.analysis.top import TopK
from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from tracepoint.analysis.report import Report
    from tracepoint.analysis.sections import Value
    from tracepoint.decode.trace import Trace

#: What the recordings of these kinds can be told apart by.
COUNTED_KEYS = ("host",)


class CountedFigure(NamedTuple):
    """The sum of `n` of the section `section`, with a top list by some of its words, called `by`."""

    name: str
    section: str
    by: str
    words: tuple[str, ...]


#: The figures of each analysis; the first is what recordings are ordered by.
COUNTED: dict[str, tuple[CountedFigure, ...]] = {
    "faults": (CountedFigure("faults", "kinds", "kind", ("mode", "access", "cause")),),
    "syscalls": (
        CountedFigure("calls", "calls", "name", ("name",)),
        CountedFigure("errors", "errors", "call", ("name", "error")),
    ),
    "irq": (
        CountedFigure("soft_irqs", "soft_irqs", "name", ("name",)),
        CountedFigure("hard_irqs", "hard_irqs", "name", ("name",)),
    ),
    "traps": (
        CountedFigure("traps", "vectors", "vector", ("what",)),
        CountedFigure("signals", "signals", "name", ("signal",)),
    ),
    "block": (CountedFigure("requests", "devices", "device", ("device",)),),
}
# Samples that reports show as columns of a table, by what they are of.
_SAMPLES: dict[str, dict[str, Callable[[Any], Mapping[str, Samples]]]] = {
    "syscalls": {"call_ns": lambda report: report.latency},
    "irq": {"hard_irq_ns": lambda report: report.irqs(), "soft_irq_ns": lambda report: report.softirqs()},
}


def counted_summaries(
    analysis: str, trace: Trace, _by: Collection[str], host: str
) -> Iterator[tuple[dict[str, str], TraceSummary]]:
    """Yield the summary of a recording, for one of COUNTED.

    Raises TracepointError where the events that the analysis needs are missing.
    """
    report = analyse(trace, analysis)
    made = TraceSummary(analysis, *count_coverage(report.coverage))
    for figure in COUNTED[analysis]:
        _count(made, figure, report, host)
    made.tops["missing_events"] = TopK()
    for event in report.missing:
        made.tops["missing_events"].add(event.name)
    groups = {name: samples_of(report) for name, samples_of in _SAMPLES.get(analysis, {}).items()}
    for section in report.sections():
        if isinstance(section, DistributionSection):
            groups[section.key] = section.groups
    for name, found in groups.items():
        for group, samples in found.items():
            made.histograms[f"{name}.{group}"] = histogram_of(samples)
    yield {"host": host}, made


def _count(made: TraceSummary, figure: CountedFigure, report: Report, host: str) -> None:
    """Add a count, and its top lists by words and by host."""
    top, total = TopK(), 0
    for section in report.sections():
        if isinstance(section, TableSection) and section.key == figure.section:
            keys = [heading.key for heading in section.headings]
            places = [keys.index(word) for word in figure.words]
            for row in section.rows:
                n = _low(row[keys.index("n")])
                total += n
                top.add(", ".join(str(row[place]) for place in places), n)
    made.counts[figure.name] = total
    hidden = report.coverage.bound(0).high
    made.hidden[figure.name] = None if hidden is None else int(hidden)
    made.tops[f"{figure.name}_by_{figure.by}"] = top
    made.tops[f"{figure.name}_by_host"] = TopK()
    made.tops[f"{figure.name}_by_host"].add(host, total)


def _low(value: Value) -> int:
    return int(value.low) if isinstance(value, Bounds) else int(value) if isinstance(value, int) else 0
