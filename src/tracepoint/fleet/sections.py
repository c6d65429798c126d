"""The result of a run as sections, which text is made from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.analysis.counted import COUNTED
from tracepoint.analysis.figures import QUANTILES
from tracepoint.analysis.sections import MAX_ROWS, Choice, Heading, TableSection, Unit
from tracepoint.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.analysis.sections import Value
    from tracepoint.analysis.summary import TraceSummary
    from tracepoint.fleet.result import FleetResult

# The figures of a group that text shows; groups with most of the first come first.
_SHOWN = {
    "sched": (
        Heading("run_ns", "running", Unit.TIME),
        Heading("runnable_ns", "runnable", Unit.TIME),
        Heading("runs", "runs"),
    ),
    "events": (Heading("records", "records"),),
    **{
        analysis: tuple(Heading(one.name, one.name.replace("_", " ")) for one in figures)
        for analysis, figures in COUNTED.items()
    },
}
_WAITS = "latency_ns"
_LOST = Heading("lost_events", "lost")
_MOST_UNREAD = 10


def result_sections(result: FleetResult, most: int | None = MAX_ROWS) -> Iterator[TableSection]:
    """Yield the groups of a result, those with the largest figures first, and its top lists without groups.

    Quantiles are those of the samples that were seen.
    """
    shown = (*_SHOWN[result.analysis], _LOST)
    groups = sorted(result.groups.items(), key=lambda item: (-item[1].counts[shown[0].key], item[0]))
    has_waits = any(_WAITS in summary.histograms for _, summary in groups)
    headings = [Heading(key, key, Unit.WORD) for key in result.by]
    headings += [Heading("traces", "recordings"), *shown]
    if has_waits:
        headings.append(Heading("waits", "waits"))
        headings += [Heading(name, name, Unit.TIME) for name, _ in QUANTILES]
    rows = [[*key, *_figures(summary, headings[len(result.by) :], has_waits)] for key, summary in groups]
    title = f"{counted(result.n_read, 'recording')}{' by ' if result.by else ''}{', '.join(result.by)}"
    yield Choice(most=most).table("groups", title, headings, rows)
    if not result.by:
        yield from _top_sections(result.summary, most)


def _figures(summary: TraceSummary, headings: list[Heading], has_waits: bool) -> Iterator[Value]:
    yield from (summary[one.key] for one in headings if one.key in summary.counts)
    if has_waits:
        waits = summary.histograms[_WAITS]
        yield waits.count
        seen = waits.seen()
        yield from (seen.quantile(q) for _, q in QUANTILES)


def _top_sections(summary: TraceSummary, most: int | None) -> Iterator[TableSection]:
    for name, top in summary.tops.items():
        figure, _, key = name.partition("_by_")
        is_time = figure.endswith("_ns")
        title = f"{figure.removesuffix('_ns').replace('_', ' ').capitalize()}{f' by {key}' if key else ''}"
        headings = [Heading(key or "name", key or "name", Unit.WORD)]
        headings.append(Heading(figure, "time" if is_time else "n", Unit.TIME if is_time else Unit.COUNT))
        yield Choice(most=most).table(name, title, headings, [list(pair) for pair in top.largest()])


def result_notes(result: FleetResult) -> Iterator[str]:
    """Yield what limits the figures: recordings that were not read, events that were lost."""
    if result.unread:
        yield f"{counted(len(result.unread), 'recording')} could not be read"
        for path, reason in result.unread[:_MOST_UNREAD]:
            yield reason if path in reason else f"{path}: {reason}"
        if len(result.unread) > _MOST_UNREAD:
            yield f"... {len(result.unread) - _MOST_UNREAD:,} more; --format json names all"
    if any(summary["lost_events"].high != 0 for summary in result.groups.values()):
        yield "events were lost: figures are of what is left, quantiles of the samples that were seen"
