"""The contents of a catalog, read from indexed trees: every tracepoint in every version."""

from __future__ import annotations

import enum
from collections import defaultdict
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from tracepoint.generate.catalog.history import EventChange, compare_versions
from tracepoint.tree.callsites.calls import CallSite, SiteKind
from tracepoint.tree.index.store import SYSCALLS
from tracepoint.tree.query.diff import tree_events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tracepoint.layout.format import EventFormat
    from tracepoint.tree.query.tree import BareTracepointRow, Tree, TreeEvent

#: A tracepoint that only a macro's body mentions may fire too.
_MAY_FIRE = frozenset({SiteKind.CALL, SiteKind.REFERENCE, SiteKind.MACRO})
_SOURCE = "source"


class TracepointKind(enum.StrEnum):
    """The kind of a tracepoint: with a record, of a system call, at another's tracepoint, or bare."""

    EVENT = "event"
    SYSCALL = "syscall"
    CUSTOM = "custom"
    BARE = "bare"


@dataclass(frozen=True, slots=True)
class CatalogVersion:
    """One kernel: a short label (`6.1`), its tree, and the full version (`6.1.192`) if known."""

    label: str
    tree: Tree
    full: str = ""


@dataclass(frozen=True, slots=True)
class Appearance:
    """One tracepoint as one version has it.

    `proto` is None if unknown; `format` is None without a record, and `problem`
    says why; `exports` are file, line, and whether for GPL modules only.
    """

    kind: TracepointKind
    file: str
    line: int
    macro: str
    via: tuple[str, ...] = ()
    class_name: str = ""
    proto: str | None = None
    format: EventFormat | None = None
    problem: str = ""
    doc: str = ""
    condition: str = ""
    created: tuple[str, ...] = ()
    exports: tuple[tuple[str, int, bool], ...] = ()
    sites: tuple[CallSite, ...] = ()
    is_unused: bool = False


@dataclass(slots=True)
class CatalogEvent:
    """One tracepoint over all versions: `seen` has one entry per version, None where it is missing.

    `others` are further declarations of the same name in the newest version that has it, for example
    of other architectures.
    """

    system: str
    name: str
    seen: list[Appearance | None]
    changes: list[EventChange] = field(default_factory=list)
    others: tuple[Appearance, ...] = ()

    @property
    def full_name(self) -> str:
        """`system:name`."""
        return f"{self.system}:{self.name}"

    @property
    def newest(self) -> Appearance:
        """The data of the last version that has it."""
        return next(one for one in reversed(self.seen) if one is not None)


@dataclass(frozen=True, slots=True)
class Catalog:
    """All tracepoints of some versions, oldest version first, sorted by system and name."""

    versions: tuple[CatalogVersion, ...]
    events: tuple[CatalogEvent, ...]

    def systems(self) -> dict[str, list[CatalogEvent]]:
        """Return the events of each system, in the order of the catalog."""
        found: dict[str, list[CatalogEvent]] = defaultdict(list)
        for event in self.events:
            found[event.system].append(event)
        return dict(found)


def read_catalog(
    versions: Sequence[CatalogVersion], on_step: Callable[[str], None] = lambda _: None
) -> Catalog:
    """Read the contents of a catalog for the versions, oldest first.

    `on_step` is called with the label of each version that has been read.  Raises TreeError for an index
    that contradicts itself.
    """
    events: dict[str, CatalogEvent] = {}
    for number, version in enumerate(versions):
        for (system, name), seen, others in _appearances(version.tree):
            full_name = f"{system}:{name}"
            event = events.get(full_name)
            if event is None:
                event = events[full_name] = CatalogEvent(system, name, [None] * len(versions))
            event.seen[number] = seen
            event.others = others
        on_step(version.label)
    for number in range(1, len(versions)):
        old, new = versions[number - 1].tree, versions[number].tree
        for full_name, changes in compare_versions(old, new, number).items():
            if full_name in events:
                events[full_name].changes += changes
    # System calls last: they are many, and few look for them first.
    ordered = sorted(events.values(), key=lambda e: (e.system == SYSCALLS, not e.system, e.system, e.name))
    return Catalog(tuple(versions), tuple(ordered))


_Named = tuple[tuple[str, str], Appearance, tuple[Appearance, ...]]


def _appearances(tree: Tree) -> Iterator[_Named]:
    reader = _Reader(tree)
    rivals: dict[str, list[TreeEvent]] = defaultdict(list)
    for event in tree.events():
        if not event.is_nop:
            rivals[event.full_name].append(event)
    chosen = tree_events(tree)
    for full_name, event in chosen.items():
        others = tuple(reader.read(other) for other in rivals[full_name] if other is not event)
        yield (event.system, event.name), reader.read(event), others
    bare = [point for point in tree.bare_tracepoints() if f"{point.system}:{point.name}" not in chosen]
    if bare:
        sites = _sites_by_name(tree, {point.call_name for point in bare})
        for point in bare:
            yield (point.system, point.name), reader.read_bare(point, sites[point.call_name]), ()


def _sites_by_name(tree: Tree, names: set[str]) -> dict[str, list[CallSite]]:
    found: dict[str, list[CallSite]] = defaultdict(list)
    for kind in SiteKind:
        for site in tree.all_sites(kind):
            if site.event in names:
                found[site.event].append(site)
    for sites in found.values():
        sites.sort(key=lambda site: (site.span, site.via))
    return found


class _Reader:
    """Makes appearances of one tree's events, making each query of the whole tree once."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._is_source = tree.kind == _SOURCE
        self._unused = {id(event) for event in tree.unused_events()} if self._is_source else set()
        self._created = lru_cache(None)(lambda header: tuple(tree.creators(header)))

    def read(self, event: TreeEvent) -> Appearance:
        """Return an event of the tree."""
        tree = self._tree
        kind = (
            TracepointKind.SYSCALL
            if event.is_syscall
            else TracepointKind.CUSTOM
            if event.is_custom
            else TracepointKind.EVENT
        )
        return Appearance(
            kind=kind,
            file=event.span.path,
            line=event.line,
            macro=event.macro if self._is_source else "",
            via=event.via,
            class_name=event.class_name if self._is_source and not event.is_syscall else "",
            proto=None if event.is_syscall or not self._has_protos else event.proto,
            format=event.format,
            problem=event.problem,
            doc=event.doc,
            condition=event.condition,
            created=() if event.is_syscall else self._created(event.header),
            exports=tuple(tree.exports(event)),
            sites=tuple(tree.call_sites(event, SiteKind)),
            is_unused=id(event) in self._unused,
        )

    def read_bare(self, point: BareTracepointRow, sites: list[CallSite]) -> Appearance:
        """Return a tracepoint without an event."""
        return Appearance(
            kind=TracepointKind.BARE,
            file=point.header,
            line=point.line,
            macro=point.macro,
            proto=point.proto or "void",
            created=self._created(point.header),
            exports=tuple(self._tree.exports(point.call_name)),
            sites=tuple(sites),
            is_unused=self._is_source and not any(site.kind in _MAY_FIRE for site in sites),
        )

    @property
    def _has_protos(self) -> bool:
        return self._tree.kind in (_SOURCE, "btf")
