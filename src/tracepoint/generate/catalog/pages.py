"""The pages of a catalog that need no JavaScript: the start, and all events of a system in one page."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tracepoint.generate.catalog.history import BREAKS, LAYOUT, PRINT, PROTOTYPE
from tracepoint.generate.catalog.text import clean, escape, fill, is_plain, source_address
from tracepoint.layout.format import write_format
from tracepoint.tree.callsites.calls import SiteKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tracepoint.generate.catalog.data import Appearance, Catalog, CatalogEvent, CatalogVersion
    from tracepoint.tree.callsites.calls import CallSite

_MAX_CALLERS = 12
_FIRES = {SiteKind.CALL, SiteKind.REFERENCE}
_CHANGED = {LAYOUT: "record", PROTOTYPE: "prototype", PRINT: "print format"}


def start_page(catalog: Catalog, template: str, title: str, slugs: Mapping[str, str]) -> str:
    """Return the first page: what there is, and every system."""
    systems = catalog.systems()
    items = "\n".join(
        f'<li><a href="plain/{slugs[name]}.html" data-system="{escape(name)}">{_shown(name)}</a>'
        f" <span>{len(events)}</span></li>"
        for name, events in systems.items()
    )
    return fill(
        template,
        title=escape(title),
        versions=escape(" \N{EN DASH} ".join(_ends([version.label for version in catalog.versions]))),
        events=f"{len(catalog.events):,}",
        n_systems=f"{len(systems):,}",
        table=_version_table(catalog),
        about=_about({version.tree.kind for version in catalog.versions}),
        systems=items,
    )


def _shown(system: str) -> str:
    return escape(system) or "(no system)"


def _about(kinds: set[str]) -> str:
    if "source" not in kinds:
        return "from a kernel&#39;s own formats, which know nothing of callers and comments."
    text = "from kernel sources. Offsets and sizes are those of x86_64 with every option on"
    return f"{text}." if len(kinds) == 1 else f"{text}, or those of the formats that were given."


def _ends(labels: list[str]) -> list[str]:
    return labels if len(labels) == 1 else [labels[0], labels[-1]]


def _version_table(catalog: Catalog) -> str:
    rows = []
    for number, version in enumerate(catalog.versions):
        here = [event for event in catalog.events if event.seen[number] is not None]
        cells = [f"{len(here):,}"]
        if len(catalog.versions) > 1:
            cells += [f"{count:,}" if number else "" for count in _moves(catalog, number)]
        full = f' <span class="full">{escape(version.full)}</span>' if version.full != version.label else ""
        head = f'<th scope="row">{escape(version.label)}{full}</th>'
        rows.append(f'<tr data-version="{number}">{head}{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>')
    names = ["version", "all"]
    if len(catalog.versions) > 1:
        names += ["added", "removed", "changed", "breaking"]
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    return f"<thead><tr>{head}</tr></thead>\n<tbody>\n" + "\n".join(rows) + "\n</tbody>"


def _moves(catalog: Catalog, number: int) -> tuple[int, int, int, int]:
    """Return how many events a version added, removed, changed, and changed so that programs break."""
    before = {e.full_name for e in catalog.events if number and e.seen[number - 1] is not None}
    here = {e.full_name for e in catalog.events if e.seen[number] is not None}
    bits = [
        [change.bits for change in event.changes if change.version == number and change.bits]
        for event in catalog.events
    ]
    changed = sum(bool(some) for some in bits)
    breaking = sum(any(bit & BREAKS for bit in some) for some in bits)
    return len(here - before), len(before - here), changed, breaking


def system_page(
    events: list[CatalogEvent],
    versions: Sequence[CatalogVersion],
    template: str,
    title: str,
    source: str = "",
) -> str:
    """Return all events of one system in plain HTML; `source` is as of `source_address`."""
    sections = "\n".join(_section(event, number, versions, source) for number, event in enumerate(events))
    return fill(
        template,
        title=escape(title),
        system=_shown(events[0].system),
        count=f"{len(events):,} tracepoint{'s' if len(events) != 1 else ''}",
        sections=sections,
    )


def anchor(event: CatalogEvent, number: int) -> str:
    """Return the id of an event's section in the page of its system; `number` is its place there."""
    return event.name if is_plain(event.name) else f"n.{number}"


def _section(event: CatalogEvent, number: int, versions: Sequence[CatalogVersion], source: str) -> str:
    labels = [version.label for version in versions]
    parts = [f'<section id="{escape(anchor(event, number))}">', f"<h2>{escape(event.name)}</h2>"]
    if len(labels) > 1:
        parts.append(f"<p>{escape(_history(event, labels))}</p>")
    newest = event.newest
    version = next(v for v, one in zip(versions[::-1], event.seen[::-1], strict=True) if one is not None)
    place = partial(_place, source, version.full or version.label)
    if newest.doc:
        parts.append(f'<p class="prose">{escape(newest.doc)}</p>')
    parts.append(f"<p>{_declared(newest, place)}</p>")
    if newest.proto is not None:
        parts.append(f"<pre>trace_{escape(event.name)}({escape(newest.proto)})</pre>")
    if newest.format is not None:
        text = clean(write_format(newest.format)).partition("\nformat:\n")[2]
        parts.append(f"<pre>{escape(_own_part(text))}</pre>")
    elif newest.problem:
        parts.append(f"<p>No record: {escape(newest.problem)}.</p>")
    callers = [site for site in newest.sites if site.kind in _FIRES]
    if callers:
        parts.append(f"<ul>{''.join(_callers(callers, place))}</ul>")
    elif newest.is_unused:
        parts.append("<p>Nothing in the tree fires it.</p>")
    return "\n".join([*parts, "</section>"])


def _own_part(text: str) -> str:
    """Leave out the common fields, which are the same in every event, and the tabs."""
    own = text.partition("\n\n")[2] or text
    return own.replace("\tfield:", "field:").replace(";\t", "; ")


def _place(source: str, version: str, file: str, line: int) -> str:
    """Return a line of a file, with a link to where the web shows it."""
    text = f"{escape(file)}{f':{line}' if line else ''}"
    address = source_address(source, version, file, line)
    return f'<a href="{escape(address)}">{text}</a>' if address else text


def _declared(one: Appearance, place: Callable[[str, int], str]) -> str:
    where = f"<code>{place(one.file, one.line)}</code>"
    via = f" through {escape(one.via[-1])}" if one.via else ""
    macro = f" by {escape(one.macro)}{via}" if one.macro else ""
    size = f", {one.format.end} bytes" if one.format is not None else ""
    condition = f", when <code>{escape(one.condition)}</code>" if one.condition else ""
    return f"Declared in {where}{macro}{size}{condition}."


def _callers(sites: list[CallSite], place: Callable[[str, int], str]) -> Iterator[str]:
    for site in sites[:_MAX_CALLERS]:
        function = f"{escape(site.function)}()" if site.function else "(no function)"
        yield f"<li><code>{function}</code> {place(site.span.path, site.span.line)}</li>"
    if len(sites) > _MAX_CALLERS:
        yield f"<li>and {len(sites) - _MAX_CALLERS} more</li>"


def _history(event: CatalogEvent, labels: list[str]) -> str:
    here = [one is not None for one in event.seen]
    parts = []
    for number, label in enumerate(labels):
        if number and here[number] and not here[number - 1]:
            parts.append(f"added in {label}")
        elif number and here[number - 1] and not here[number]:
            parts.append(f"removed in {label}")
        bits = 0
        for change in event.changes:
            bits |= change.bits if change.version == number else 0
        words = [word for bit, word in _CHANGED.items() if bits & bit]
        if words:
            parts.append(f"{', '.join(words)} changed in {label}")
    return "; ".join(parts).capitalize() + "." if parts else f"In {labels[0]} to {labels[-1]}, unchanged."
