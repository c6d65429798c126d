"""What a page says first: what was recorded, on what machine, when, and what was lost of it."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from tracepoint.analysis.units import percent_text, time_text
from tracepoint.generate.catalog.text import escape, is_plain
from tracepoint.record.page import LOST_UNKNOWN, add_lost
from tracepoint.report.tables import event_id, table_html
from tracepoint.tracefile.options import uname_of
from tracepoint.tracefile.recording import losses_of
from tracepoint.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tracepoint.analysis.report import Report
    from tracepoint.decode.trace import Trace

_SECOND = 1_000_000_000


def recording_name(trace: Trace) -> str:
    """Return the name of the file of a recording."""
    return PurePath(trace.file.path).name or trace.file.path


def head_html(trace: Trace) -> str:
    """Return what was recorded, and what was lost of it."""
    first, last = trace.span
    n, seconds = trace.n_records, (last - first) / _SECOND
    facts = {
        "Machine": " ".join(uname_of(trace.file.options)) or "not named",
        "CPUs": f"{trace.file.n_cpus:,}",
        "Time": f"{time_text(last - first)}, from {first / _SECOND:.6f} to {last / _SECOND:.6f} s",
        "Clock": trace.clock or "not named",
        "Records": f"{n:,}{f', {n / seconds:,.0f} a second' if seconds else ''}",
        "Recording": f"{recording_name(trace)}, {trace.file.form}",
        "Buffer": trace.instance,
    }
    return f"{facts_html(facts)}{_losses(trace)}"


def facts_html(facts: Mapping[str, str]) -> str:
    """Return names of facts with their texts; those without one are left out."""
    items = "".join(
        f"<div><dt>{name}</dt><dd>{escape(text)}</dd></div>" for name, text in facts.items() if text
    )
    return f'<dl class="facts">{items}</dl>'


def _losses(trace: Trace) -> str:
    """Return what is not in the recording: in one sentence that nobody can miss, and by CPU."""
    told, lost = losses_of(trace.file.options, trace.instance), trace.lost
    total = 0
    for count in lost.values():
        total = add_lost(total, count)
    parts = []
    if total:
        parts.append(f"{_count(total)} events were lost while recording")
    if told.overrun:
        parts.append(f"the oldest {told.overrun:,} were overwritten")
    if told.dropped + told.commit_overrun:
        parts.append(f"{told.dropped + told.commit_overrun:,} were dropped at times that are not known")
    if trace.damage:
        parts.append(f"{counted(len(trace.damage), 'place')} of the file could not be read")
    if not parts:
        return '<p class="good">The recording reports no losses.</p>'
    text = f"{'; '.join(parts)}. Figures that this can change have bounds."
    rows = [
        [(f"{cpu}", f"{cpu}"), (_count(count), f"{count}")] for cpu, count in sorted(lost.items()) if count
    ]
    table = table_html("Losses by CPU", [("cpu", False), ("lost", False)], rows) if rows else ""
    return f'<div class="lost" role="note"><p><strong>Incomplete:</strong> {escape(text)}</p>{table}</div>'


def _count(n: int) -> str:
    return "some" if n == LOST_UNKNOWN else f"{n:,}"


def notes_html(report: Report) -> str:
    """Return what limits the figures of an analysis."""
    notes = "".join(f"<li>{escape(note)}</li>" for note in report.notes())
    return f'<ul class="notes">{notes}</ul>' if notes else ""


def events_html(events: Mapping[str, int], used: Iterable[str], catalog: str | None) -> str:
    """Return the recorded events, each with an id that figures lead to; those of figures are first.

    `events` are the numbers of their records; `catalog` is where a site of tracepoints is, from the page's
    own place or absolute.
    """
    n_all, sources = sum(events.values()) or 1, set(used)
    ordered = sorted(events.items(), key=lambda item: (item[0] not in sources, -item[1], item[0]))
    named = [*ordered, *((name, 0) for name in sorted(sources - events.keys()))]
    rows = [
        f'<tr id="{escape(event_id(name))}"><th scope="row">{_event(name, catalog)}</th>'
        f'<td class="number" data-sort="{n}">{f"{n:,}" if n else "not recorded"}</td>'
        f'<td class="number" data-sort="{n}">{percent_text(n, n_all)}</td>'
        f"<td>{'yes' if name in sources else ''}</td></tr>"
        for name, n in named
    ]
    heads = (("event", ""), ("records", " class=number"), ("share", " class=number"), ("in figures", ""))
    head = "".join(f'<th scope="col"{kind}>{text}</th>' for text, kind in heads)
    return (
        '<div class="wide" tabindex="0" role="region" aria-label="Events"><table class="sortable">'
        f'<caption class="unseen">Events</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _event(name: str, catalog: str | None) -> str:
    if catalog is None or not all(map(is_plain, name.split(":"))):
        return escape(name)
    return f'<a href="{escape(catalog.rstrip("/"))}/index.html#/event/{escape(name)}">{escape(name)}</a>'
