"""The figures of sections as texts, in rows and columns."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from tracepoint.analysis.distribution import Bounds
from tracepoint.analysis.sections import DistributionSection, Unit
from tracepoint.analysis.units import bounds_text, clock_text, percent_text, time_text
from tracepoint.wording import html_table, size_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tracepoint.analysis.sections import Section, Value

#: The quantiles that are shown, by name.
QUANTILES = (("p50", 0.5), ("p99", 0.99), ("max", 1.0))
_NOTHING = "-"
_SHOW: dict[Unit, Callable[[float], str]] = {
    Unit.NUMBER: lambda n: f"{n:.0f}",
    Unit.COUNT: lambda n: f"{n:,.0f}",
    Unit.TIME: time_text,
    Unit.CLOCK: clock_text,
    Unit.SHARE: lambda share: percent_text(share, 1),
    Unit.SIZE: size_text,
    Unit.RATE: lambda rate: f"{rate:,.1f}/s",
    Unit.ADDRESS: lambda address: f"{int(address):#x}",
    Unit.MEAN: lambda mean: f"{mean:.2f}",
}


def value_text(value: Value, unit: Unit) -> str:
    """Return a figure as a report shows it.

    >>> value_text(1500, Unit.TIME), value_text(Bounds(3, 5), Unit.COUNT), value_text(None, Unit.COUNT)
    ('1.500 us', '3..5', '-')
    """
    if value is None:
        return _NOTHING
    if isinstance(value, (str, dict)):
        return str(value)
    return bounds_text(value, _SHOW[unit]) if isinstance(value, Bounds) else _SHOW[unit](value)


def figure_rows(section: Section) -> list[list[str]]:
    """Return what a section shows, its headings first; of a distribution the groups that have samples.

    >>> from tracepoint.analysis.sections import Heading, TableSection
    >>> figure_rows(TableSection("a", "A", [Heading("ns", "time", Unit.TIME), Heading("x", "")], [(5, 6)]))
    [['time'], ['5 ns']]
    """
    if not isinstance(section, DistributionSection):
        shown = [(at, heading) for at, heading in enumerate(section.headings) if heading.label]
        rows = [[value_text(row[at], heading.unit) for at, heading in shown] for row in section.rows]
        return [[heading.label for _, heading in shown], *rows]
    rows = [[section.label, "n", "mean", *(name for name, _ in QUANTILES)]]
    for name, samples in section.groups.items():
        if len(samples):
            mean = None if samples.mean is None else round(samples.mean)
            found = (value_text(samples.quantile(q), section.unit) for _, q in QUANTILES)
            rows.append([name, value_text(samples.count, Unit.COUNT), value_text(mean, section.unit), *found])
    return rows


def figures_html(sections: Iterable[Section], notes: Iterable[str]) -> str:
    """Return sections and what limits them as short tables for a notebook.

    >>> from tracepoint.analysis.sections import Heading, TableSection
    >>> figures_html([TableSection("a", "A & B", [Heading("n", "n")], [(5,)])], [])
    '<h4>A &amp; B</h4><table><tr><th>n</th></tr><tr><td>5</td></tr></table>'
    """
    parts = []
    for section in sections:
        heads, *rows = figure_rows(section)
        if rows:
            parts.append(f"<h4>{escape(section.title)}</h4>{html_table(heads, rows)}")
    return "".join([*parts, *(f"<p>{escape(note)}</p>" for note in notes)])
