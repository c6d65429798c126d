"""A page of one or several analyses: one file that needs nothing else."""

from __future__ import annotations

import base64
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracepoint.analysis.names import task_names
from tracepoint.analysis.registry import ANALYSES, analyse
from tracepoint.analysis.sections import Choice
from tracepoint.errors import TracepointError
from tracepoint.generate.catalog.site import catalog_style
from tracepoint.generate.catalog.text import clean, escape, fill, to_json
from tracepoint.report.flame import off_cpu
from tracepoint.report.head import events_html, head_html, notes_html, recording_name
from tracepoint.report.heat import HeatMaps
from tracepoint.report.lanes import LaneSpool, lane_groups
from tracepoint.report.pack import Pack
from tracepoint.report.tables import MAX_ROWS, picture_html, section_html, sources
from tracepoint.report.timeline import timeline_facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from tracepoint.analysis.coverage import Coverage
    from tracepoint.analysis.report import Report
    from tracepoint.decode.trace import Trace
    from tracepoint.report.lanes import LaneGroup

_SCRIPTS = ("core.js", "tables.js", "timeline.js", "heat.js", "flame.js", "start.js")
_CHOICE = Choice(most=MAX_ROWS)
_SCHEMES = ("https://", "http://", "file:///")


_TIMELINE = """<section id="timeline">
<h2>Timeline</h2>
<div class="timeline"><p class="note">The timeline is drawn by the script of this page.</p></div>
{}
</section>"""


class HtmlReport:
    """A page: `html` is its text, `write` makes the file."""

    def __init__(self, html: str, title: str) -> None:
        self.html = html
        self.title = title

    def __repr__(self) -> str:
        return f"<HtmlReport {clean(self.title)!r}, {len(self.html):,} characters>"

    def write(self, path: str | Path) -> Path:
        """Write the file, which appears when it is complete; return its path.  Raises OSError."""
        target = Path(path)
        fresh = target.with_name(f".{target.name}.new")
        try:
            fresh.write_text(self.html, encoding="utf-8", newline="\n")
            fresh.replace(target)
        except BaseException as error:
            fresh.unlink(missing_ok=True)
            if isinstance(error, OSError):
                error.filename, error.filename2 = str(target), None
            raise
        return target


def make_report(
    trace: Trace, analyses: Sequence[str | Report], *, title: str = "", catalog: str | None = None
) -> HtmlReport:
    """Return a page of analyses of a trace, by their names or as they were made.

    `catalog` is the address or the relative path of a site that `tracepoint catalog` made: names of events
    lead there.  Raises KeyError for an unknown analysis, TracepointError when the recording lacks events that
    one needs or for an address of another kind, ValueError without analyses.

    >>> import tracepoint as tp
    >>> from tracepoint.report import make_report
    >>> with tp.open_trace("tests/tracefile/golden/cut.v6.dat") as trace:
    ...     page = make_report(trace, ["sched"])
    >>> page.title, page.html[:15]
    ('cut.v6.dat', '<!doctype html>')
    """
    if not analyses:
        raise ValueError(f"no analysis; there are: {', '.join(ANALYSES)}")
    check_address(catalog)
    reports = [analyse(trace, one) if isinstance(one, str) else one for one in analyses]
    recorded = {name for name, n in trace.events.items() if n}
    parts = [_Part(report, trace, recorded) for report in reports]
    pack, shown = Pack(), title or recording_name(trace)
    tasks = task_names(trace)
    with LaneSpool() as spool:
        groups = [group for part in parts for group in part.lanes(tasks, spool)]
        facts: dict[str, Any] = {"timeline": timeline_facts(groups, _widest(reports), pack)}
    used = list(dict.fromkeys(name for part in parts for name in part.events))
    return made_page(
        shown,
        head=head_html(trace),
        parts={"timeline": _TIMELINE.format(sources(used, recorded))}
        | {report.name: part.html(facts, pack) for report, part in zip(reports, parts, strict=True)},
        events=events_html(trace.events, used, catalog),
        facts=facts,
        pack=pack,
    )


def made_page(
    title: str, *, head: str, parts: Mapping[str, str], events: str, facts: dict[str, Any], pack: Pack
) -> HtmlReport:
    """Return a page of parts, each HTML with the id that it has here."""
    style, script = catalog_style() + _asset("report.css"), "\n".join(map(_asset, _SCRIPTS))
    html = fill(
        _asset("page.html"),
        title=escape(title),
        style=style,
        style_hash=_hash(style),
        script_hash=_hash(script),
        head=head,
        first=next(iter(parts)),
        links="".join(f'<a href="#{name}">{name}</a>' for name in parts),
        analyses="".join(parts.values()),
        events=events,
        facts=_for_script(_clean(facts)),
        data=pack.text(),
        script=script,
    )
    return HtmlReport(html, title)


def check_address(catalog: str | None) -> None:
    """Raise TracepointError for addresses such as `javascript:`."""
    if catalog is not None and ":" in catalog.split("/")[0] and not catalog.lower().startswith(_SCHEMES):
        raise TracepointError(
            f"{catalog!r}: the address of a catalog begins with https://, or is a relative path"
        )


def _widest(reports: Sequence[Report]) -> Coverage:
    """Return the times and losses of all analyses."""
    found = max((report.coverage for report in reports), key=lambda one: sum(map(len, one.gaps.values())))
    start = min(report.coverage.start for report in reports)
    return found._replace(start=start, stop=max(report.coverage.stop for report in reports))


class _Part:
    """One analysis in a page: its sections, which are made once, and what is drawn of it."""

    def __init__(self, report: Report, trace: Trace, recorded: AbstractSet[str]) -> None:
        self.report = report
        self._recorded = recorded
        self._trace = trace
        self._heat_maps = HeatMaps(report.coverage)
        self._sections = report.sections(_CHOICE)
        self.events = list(dict.fromkeys(name for section in self._sections for name in section.events))

    def lanes(self, tasks: Mapping[int, str], spool: LaneSpool) -> Iterator[LaneGroup]:
        """Yield the lanes of the timeline, and count what the heat maps show in the same reading."""
        return lane_groups(self.report, self.events, tasks, spool, self._heat_maps.add)

    def html(self, facts: dict[str, Any], pack: Pack) -> str:
        """Return the sections and the places of pictures, whose data go to `facts` and `pack`."""
        name = escape(self.report.name)
        about = ANALYSES.get(self.report.name, "what changed from one recording to another")
        title = f"<h2>{name}: {escape(about)}</h2>"
        recorded = self._recorded
        sections = "".join(
            section_html(section, f"{name}-{section.key}", recorded) for section in self._sections
        )
        heats = "".join(self._heats(facts.setdefault("heats", []), pack))
        body = f"{notes_html(self.report)}{sections}{heats}{self._flame(facts)}"
        return f'<section class="analysis" id="{name}">{title}{body}</section>'

    def _heats(self, found: list[Any], pack: Pack) -> Iterator[str]:
        for heat in self._heat_maps.all.values():
            facts = heat.facts(pack)
            if facts is not None:
                place = f"{self.report.name}-heat-{heat.key}"
                found.append(facts | {"place": place})
                yield picture_html(place, "heat", f"{heat.title} over time", self.events, self._recorded)

    def _flame(self, facts: dict[str, Any]) -> str:
        tree = off_cpu(self.report, self._trace)
        if tree is None:
            return ""
        place = f"{self.report.name}-off-cpu"
        facts["flame"] = tree | {"place": place}
        return picture_html(place, "flame", "Where time off the CPUs went", self.events, self._recorded)


def _clean(value: Any) -> Any:
    """Return values with every text as it can be shown."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {key: _clean(item) for key, item in value.items()}
    return [_clean(item) for item in value] if isinstance(value, (list, tuple)) else value


def _for_script(value: Any) -> str:
    """Return JSON that ends no script."""
    return to_json(value).replace("<", "\\u003c")


def _hash(text: str) -> str:
    """Return what a browser allows a style or script by, so that nothing else runs."""
    return base64.b64encode(sha256(text.encode()).digest()).decode()


@lru_cache
def _asset(name: str) -> str:
    return files(__package__).joinpath("assets", name).read_text("utf-8")
