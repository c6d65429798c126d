"""Sections of figures as HTML: tables that can be sorted, and where each figure comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.analysis.distribution import Bounds
from tracepoint.analysis.figures import QUANTILES, value_text
from tracepoint.analysis.sections import DistributionSection, Unit
from tracepoint.generate.catalog.text import escape
from tracepoint.report.charts import distribution_charts
from tracepoint.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from collections.abc import Set as AbstractSet

    from tracepoint.analysis.sections import Section, TableSection, Value

#: The most rows of a table that a page has.
MAX_ROWS = 500
_SHOWN_ROWS = 15


def section_html(section: Section, place: str, recorded: AbstractSet[str]) -> str:
    """Return a section with its title, table and pictures; `place` is its id in the page.

    `recorded` are the events of which there are records.
    """
    body = _distribution(section) if isinstance(section, DistributionSection) else _rows(section)
    if not body and section.events and recorded.isdisjoint(section.events):
        body = f'<p class="note">Not recorded: {_links(section.events)}.</p>'
        return f'<section id="{escape(place)}"><h3>{escape(section.title)}</h3>{body}</section>'
    body = body or '<p class="note">Nothing to show.</p>'
    title = f"<h3>{escape(section.title)}</h3>"
    return f'<section id="{escape(place)}">{title}{body}{sources(section.events, recorded)}</section>'


def picture_html(place: str, kind: str, title: str, events: Iterable[str], recorded: AbstractSet[str]) -> str:
    """Return the place of a picture that the page's script draws."""
    head = f'<section id="{escape(place)}" class="{kind}"><h3>{escape(title)}</h3>'
    return f"{head}<div></div>{sources(events, recorded)}</section>"


def sources(events: Iterable[str], recorded: AbstractSet[str]) -> str:
    """Return from which of the recorded events figures come, with links to what the page says of them."""
    links = _links(name for name in events if name in recorded)
    return f'<p class="from">From {links}</p>' if links else ""


def _links(events: Iterable[str]) -> str:
    return ", ".join(f'<a href="#{escape(event_id(name))}">{escape(name)}</a>' for name in events)


def event_id(name: str) -> str:
    """Return the id of an event in the page.

    >>> event_id("sched:sched_switch")
    'event-sched-sched_switch'
    """
    return f"event-{name.replace(':', '-')}"


def _rows(section: TableSection) -> str:
    # Names come first: on a phone the rest is out of sight.
    shown = sorted(
        ((at, heading) for at, heading in enumerate(section.headings) if heading.label),
        key=lambda column: column[1].unit is not Unit.WORD,
    )
    heads = [(heading.label, heading.unit is Unit.WORD) for _, heading in shown]
    rows = [
        [(value_text(row[at], heading.unit), _sort_key(row[at])) for at, heading in shown]
        for row in section.rows[:MAX_ROWS]
    ]
    n_more = section.n_more + max(len(section.rows) - MAX_ROWS, 0)
    more = f'<p class="note">{counted(n_more, "more row")} in the recording.</p>' if n_more else ""
    return f"{table_html(section.title, heads, rows)}{more}" if rows else ""


def table_html(
    title: str, heads: Sequence[tuple[str, bool]], rows: Sequence[Sequence[tuple[str, str]]]
) -> str:
    """Return a table; a head is a label and whether it is of words, a cell a text and what to sort it by."""
    head = "".join(
        f'<th scope="col"{"" if is_word else " class=number"}>{escape(label)}</th>'
        for label, is_word in heads
    )
    body = []
    for at, row in enumerate(rows):
        cells = "".join(_cell(*cell, is_word=is_word) for cell, (_, is_word) in zip(row, heads, strict=True))
        body.append(f"<tr{' class=rest' if at >= _SHOWN_ROWS else ''}>{cells}</tr>")
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(title)}"><table class="sortable">'
        f'<caption class="unseen">{escape(title)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def _cell(text: str, key: str, *, is_word: bool) -> str:
    sort = f' data-sort="{escape(key)}"' if key else ""
    return f"<td{'' if is_word else ' class=number'}{sort}>{escape(text)}</td>"


def _sort_key(value: Value) -> str:
    if isinstance(value, Bounds):
        return f"{value.low}"
    return "" if isinstance(value, (str, dict)) or value is None else f"{value}"


def _distribution(section: DistributionSection) -> str:
    heads = [
        (section.label or "of", True),
        ("n", False),
        ("mean", False),
        *((q, False) for q, _ in QUANTILES),
    ]
    rows = []
    for name, samples in section.groups.items():
        if len(samples):
            mean = None if samples.mean is None else round(samples.mean)
            found = [(samples.quantile(q), section.unit) for _, q in QUANTILES]
            figures: list[tuple[Value, Unit]] = [(samples.count, Unit.COUNT), (mean, section.unit), *found]
            rows.append([(name, ""), *((value_text(v, unit), _sort_key(v)) for v, unit in figures)])
    if not rows:
        return ""
    charts = f'<div class="charts">{distribution_charts(section)}</div>'
    return table_html(section.title, heads, rows) + charts
