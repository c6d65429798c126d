"""A catalog as data for its pages' JavaScript: a start, names, words to search in, and the events.

Every file is one call, `Catalog.receive(name, data)`, with data in JSON: a page opened from a
folder may load scripts, and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from tracepoint.generate.catalog.constants import work_out
from tracepoint.generate.catalog.data import TracepointKind
from tracepoint.generate.catalog.text import clean, summary, to_json
from tracepoint.layout.compare import ChangeKind, Reader
from tracepoint.layout.format import COMMON_FIELDS

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from tracepoint.generate.catalog.data import Appearance, Catalog, CatalogEvent
    from tracepoint.generate.catalog.history import EventChange
    from tracepoint.layout.format import FieldFormat

_Value = TypeVar("_Value", bound="Hashable")
_CHUNK_BYTES = 96 * 1024
_READERS = list(Reader)
_FLAGS = {
    TracepointKind.EVENT: 0,
    TracepointKind.SYSCALL: 1,
    TracepointKind.CUSTOM: 2,
    TracepointKind.BARE: 4,
}
_UNUSED, _NO_RECORD = 8, 16


def data_files(catalog: Catalog, facts: dict[str, Any]) -> dict[str, str]:
    """Return the data of a catalog by path; `facts` go into the start as they are."""
    chunks = list(_chunks(catalog))
    starts, at = [], 0
    files = {}
    for number, chunk in enumerate(chunks):
        starts.append(at)
        at += len(chunk)
        files[f"data/events-{number}.js"] = _script(f"events-{number}", "[" + ",\n".join(chunk) + "]")
    files["data/start.js"] = _script("start", to_json(_start(catalog, starts) | facts))
    files["data/names.js"] = _script("names", to_json(_names(catalog)))
    files["data/words.js"] = _script("words", to_json(_words(catalog)))
    return dict(sorted(files.items()))


def _script(name: str, json_text: str) -> str:
    return f"Catalog.receive({to_json(name)},{json_text});\n"


def _start(catalog: Catalog, starts: list[int]) -> dict[str, Any]:
    systems = [[clean(system), len(events)] for system, events in catalog.systems().items()]
    return {
        "versions": [
            {
                "label": clean(version.label),
                "full": clean(version.full),
                "kind": version.tree.kind,
                "events": sum(event.seen[number] is not None for event in catalog.events),
            }
            for number, version in enumerate(catalog.versions)
        ],
        "systems": systems,
        "chunks": starts,
        "common": [_field(item) for item in COMMON_FIELDS],
        "readers": [reader.value for reader in _READERS],
        "changeKinds": [kind.value for kind in ChangeKind],
    }


# The data that is searched.


def _names(catalog: Catalog) -> dict[str, Any]:
    changes: list[list[int]] = []
    for number, event in enumerate(catalog.events):
        bits: dict[int, int] = {}
        for change in event.changes:
            bits[change.version] = bits.get(change.version, 0) | change.bits
        changes += [[number, version, value] for version, value in sorted(bits.items()) if value]
    return {
        # A name has no line break: clean() leaves it, so it is taken out here.
        "names": "\n".join(clean(event.name).replace("\n", " ") for event in catalog.events),
        "seen": [_seen_bits(event) for event in catalog.events],
        "flags": [_flags(event.newest) for event in catalog.events],
        "changes": changes,
    }


def _seen_bits(event: CatalogEvent) -> int:
    return sum(1 << number for number, one in enumerate(event.seen) if one is not None)


def _flags(newest: Appearance) -> int:
    flags = _FLAGS[newest.kind] | (_UNUSED if newest.is_unused else 0)
    return flags | (_NO_RECORD if newest.format is None else 0)


def _words(catalog: Catalog) -> dict[str, Any]:
    return {
        "fields": _column(catalog, _field_names),
        "callers": _column(catalog, lambda one: (site.function for site in one.sites if site.function)),
        "files": _column(catalog, lambda one: (one.file, *(site.span.path for site in one.sites))),
        "classes": _column(catalog, lambda one: (one.class_name,) if one.class_name else ()),
        "prose": _column(catalog, lambda one: (one.doc,) if one.doc else ()),
        "summaries": _column(catalog, _summaries, newest_only=True),
    }


def _field_names(one: Appearance) -> Iterable[str]:
    return (item.name for item in one.format.event_fields) if one.format is not None else ()


def _summaries(one: Appearance) -> Iterable[str]:
    # The index keeps no event's name with the comment of a class, so nothing is cut off there.
    first = one.doc.split(maxsplit=1)[:1]
    return (summary(one.doc, first[0].rstrip(":()")),) if first else ()


def _column(
    catalog: Catalog, words_of: Callable[[Appearance], Iterable[str]], *, newest_only: bool = False
) -> dict[str, Any]:
    """Return the distinct sets of words, and the one of every event."""
    pool = _Pool[str]()
    numbers = []
    for event in catalog.events:
        shown = [event.newest] if newest_only else [one for one in event.seen if one is not None]
        words = dict.fromkeys(word for one in shown for word in words_of(one))
        numbers.append(pool.number("\n".join(clean(word) for word in words)))
    return {"values": pool.values, "of": numbers}


class _Pool(list[_Value]):
    """Values in the order of their numbers; equal values have one number."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers: dict[_Value, int] = {}

    @property
    def values(self) -> list[_Value]:
        """The values."""
        return list(self)

    def number(self, value: _Value) -> int:
        """Return the number of a value, a new one when it is new."""
        if value not in self._numbers:
            self._numbers[value] = len(self)
            self.append(value)
        return self._numbers[value]


# What an event's page shows.


def _chunks(catalog: Catalog) -> Iterator[list[str]]:
    chunk: list[str] = []
    size = 0
    for event in catalog.events:
        text = to_json(_event(event))
        if chunk and size + len(text) > _CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
        chunk.append(text)
        size += len(text)
    if chunk:
        yield chunk


def _event(event: CatalogEvent) -> dict[str, Any]:
    pools: dict[str, _Pool[Any]] = {name: _Pool() for name in ("protos", "records", "prints", "docs")}
    row: dict[str, Any] = {
        "system": clean(event.system),
        "name": clean(event.name),
        "seen": [None if one is None else _appearance(one, pools) for one in event.seen],
    }
    if event.changes:
        row["changes"] = [_change(change) for change in event.changes]
    if event.others:
        row["others"] = [_other(one) for one in event.others]
    for name, pool in pools.items():
        row[name] = pool.values
    return row


def _appearance(one: Appearance, pools: dict[str, _Pool[Any]]) -> dict[str, Any]:
    """Return an appearance; what is empty or false is left out."""
    layout = one.format
    row = {
        "kind": one.kind.value,
        "file": clean(one.file),
        "line": one.line,
        "macro": clean(one.macro),
        "via": [clean(name) for name in one.via],
        "class": clean(one.class_name),
        "problem": clean(one.problem),
        "condition": clean(one.condition),
        "created": [clean(name) for name in one.created],
        "exports": [[clean(path), line, int(is_gpl)] for path, line, is_gpl in one.exports],
        "sites": [
            [
                site.kind.value,
                *map(clean, (site.span.path, site.function, site.text, site.via)),
                site.span.line,
            ]
            for site in one.sites
        ],
        "unused": int(one.is_unused),
    }
    shown = {key: value for key, value in row.items() if value}
    if one.proto is not None:
        shown["proto"] = pools["protos"].number(clean(one.proto))
    if one.doc:
        shown["doc"] = pools["docs"].number(clean(one.doc))
    if layout is not None:
        fields = tuple(_field(item) for item in layout.event_fields)
        shown["record"] = pools["records"].number((fields, layout.size_bytes))
        shown["print"] = pools["prints"].number(_print_formats(layout.print_fmt))
    return shown


def _print_formats(text: str) -> tuple[str, ...]:
    """Return a print format, and how it reads with its constants worked out where that differs."""
    return tuple(dict.fromkeys((clean(text), clean(work_out(text)))))


def _field(item: FieldFormat) -> tuple[str, str, int, int, int]:
    return clean(item.name), clean(item.ctype), item.offset, item.size, int(item.is_signed)


def _change(change: EventChange) -> list[Any]:
    what = change.change
    return [
        change.version,
        list(ChangeKind).index(what.kind),
        clean(what.field),
        clean(what.sentence),
        [number for number, reader in enumerate(_READERS) if reader in what.breaks],
        clean(change.target),
    ]


def _other(one: Appearance) -> dict[str, Any]:
    fields: Sequence[FieldFormat] = one.format.event_fields if one.format is not None else ()
    return {
        "file": clean(one.file),
        "line": one.line,
        "proto": clean(one.proto or ""),
        "fields": [f"{clean(item.ctype)} {clean(item.name)}" for item in fields],
        "calls": [
            [clean(site.span.path), site.span.line, clean(site.function)]
            for site in one.sites
            if site.kind.value == "call"
        ],
    }
