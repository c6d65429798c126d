"""A page of what changed between two sets of recordings: tables only, as no recording is shown itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.analysis.sections import Choice
from tracepoint.analysis.units import time_text
from tracepoint.report.head import events_html, facts_html, notes_html
from tracepoint.report.pack import Pack
from tracepoint.report.page import HtmlReport, check_address, made_page
from tracepoint.report.tables import MAX_ROWS, section_html
from tracepoint.wording import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracepoint.analysis.sets import SetComparison


def make_set_report(
    found: SetComparison, events: Mapping[str, int], *, title: str = "", catalog: str | None = None
) -> HtmlReport:
    """Return a page of what changed between two sets.

    `events` are the records of each event in all recordings of both; `catalog` is as for `make_report`.
    Raises TracepointError for an address of another kind.

    >>> import tracepoint as tp
    >>> from tracepoint.analysis import analyse_sched
    >>> from tracepoint.analysis.sets import compare_sets, figures_of
    >>> with tp.open_trace("tests/tracefile/golden/cut.v6.dat") as trace:
    ...     figures, events = figures_of(analyse_sched(trace)), trace.events
    >>> make_set_report(compare_sets([figures] * 6, [figures] * 6), events).title
    'before and after'
    """
    check_address(catalog)
    sections = found.sections(Choice(most=MAX_ROWS))
    recorded = {name for name, n in events.items() if n}
    used = list(dict.fromkeys(name for section in sections for name in section.events))
    sides = {
        word.capitalize(): f"{counted(len(side), 'recording')} of {side[0].analysis}, "
        f"{time_text(sum(one.duration for one in side))} in all"
        for word, side in found.sides.items()
    }
    body = "".join(section_html(section, f"compare-{section.key}", recorded) for section in sections)
    part = (
        '<section class="analysis" id="compare"><h2>compare: what changed from one set of recordings to '
        f"another</h2>{notes_html(found)}{body}</section>"
    )
    return made_page(
        title or "before and after",
        head=facts_html(sides),
        parts={"compare": part},
        events=events_html(events, used, catalog),
        facts={"heats": []},
        pack=Pack(),
    )
