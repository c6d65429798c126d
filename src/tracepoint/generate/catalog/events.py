"""A file of JSON for each tracepoint of a catalog, for programs of others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracepoint.generate.catalog.text import clean, slugs, to_json
from tracepoint.tree.callsites.calls import SiteKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.generate.catalog.data import Appearance, Catalog, CatalogEvent

#: The folder of the files; `index.json` in it lists them by the full names of tracepoints.
FOLDER = "json"
SCHEMA = "tracepoint.event/1"


def event_files(catalog: Catalog, folders: Mapping[str, str]) -> dict[str, str]:
    """Return a file for each tracepoint, and their list, by path; `folders` are those of the systems."""
    labels = [version.label for version in catalog.versions]
    made, listed = {}, {}
    for system, events in catalog.systems().items():
        names = slugs([event.name for event in events])
        for event in events:
            path = f"{folders[system]}/{names[event.name]}.json"
            made[f"{FOLDER}/{path}"] = to_json(_facts(event, labels)) + "\n"
            listed[clean(event.full_name)] = path
    made[f"{FOLDER}/index.json"] = to_json({"schema": SCHEMA, "versions": labels, "events": listed}) + "\n"
    return made


def _facts(event: CatalogEvent, labels: Sequence[str]) -> dict[str, Any]:
    seen = zip(labels, event.seen, strict=True)
    return {
        "schema": SCHEMA,
        "system": clean(event.system),
        "name": clean(event.name),
        "versions": {clean(label): _appearance(one) for label, one in seen if one is not None},
    }


def _appearance(one: Appearance) -> dict[str, Any]:
    """Return what a version has of a tracepoint; what it does not have is null or empty."""
    return {
        "kind": one.kind.value,
        "file": clean(one.file),
        "line": one.line,
        "macro": clean(one.macro),
        "class": clean(one.class_name),
        "prototype": None if one.proto is None else clean(one.proto),
        "condition": clean(one.condition),
        "description": clean(one.doc),
        "record": _record(one),
        "problem": clean(one.problem),
        "callers": [
            {"function": clean(site.function), "file": clean(site.span.path), "line": site.span.line}
            for site in one.sites
            if site.kind in {SiteKind.CALL, SiteKind.REFERENCE}
        ],
    }


def _record(one: Appearance) -> dict[str, Any] | None:
    if one.format is None:
        return None
    fields = [
        {
            "name": clean(field.name),
            "declaration": clean(field.declaration),
            "offset": field.offset,
            "size": field.size,
            "is_signed": field.is_signed,
        }
        for field in one.format.event_fields
    ]
    return {"size": one.format.end, "fields": fields, "print_fmt": clean(one.format.print_fmt)}
