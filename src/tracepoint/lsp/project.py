"""What the saved indexes of trees know about an event: who calls it, and which kernels have it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.errors import TracepointError
from tracepoint.lab.build.source import tree_version
from tracepoint.tree.callsites.calls import SiteKind
from tracepoint.tree.query.opening import open_index, saved_indexes
from tracepoint.wording import counted

if TYPE_CHECKING:
    from tracepoint.lsp.mentions import DeclaredName
    from tracepoint.model.event import TraceHeader
    from tracepoint.tree.callsites.calls import CallSite
    from tracepoint.tree.query.tree import Tree, TreeEvent

#: A hover shows so many callers.
_MOST_CALLERS = 5


def sites_of(tree: Tree, header: TraceHeader, name: str) -> list[CallSite]:
    """Return every mention of a tracepoint that a header declares, `name` as it follows `trace_` in calls."""
    events = _events_of(tree, header, name)
    if events:
        found = {site for event in events for site in tree.call_sites(event, SiteKind)}
    else:
        found = {site for kind in SiteKind for site in tree.all_sites(kind) if site.event == name}
    return sorted(found, key=lambda site: (site.span, site.via))


def files_naming(tree: Tree, header: TraceHeader, named: DeclaredName) -> list[str]:
    """Return the files that call, export or otherwise name a tracepoint of a header, as paths."""
    paths = {site.span.path for site in sites_of(tree, header, named.call_name)}
    paths |= {path for path, _, _ in tree.exports(named.call_name)}
    return [str(Path(tree.root, path)) for path in sorted(paths)]


def pasted_call(tree: Tree, header: TraceHeader, named: DeclaredName) -> str:
    """Return a place that calls it by a name that a macro pastes together, empty if there is none."""
    sites = sites_of(tree, header, named.call_name)
    named_by = {site.function for site in sites if site.kind is SiteKind.MACRO}
    found = (site for site in sites if site.via and site.via not in named_by)
    return next((f"{site.span.path}:{site.span.line} (macro {site.via})" for site in found), "")


def callers_text(tree: Tree, header: TraceHeader, name: str) -> str:
    """Return where a tracepoint fires, as Markdown."""
    calls = [s for s in sites_of(tree, header, name) if s.kind in (SiteKind.CALL, SiteKind.REFERENCE)]
    if not calls:
        return f"no caller in {Path(tree.root).name}"
    shown = [f"- `{s.function or '-'}` {s.span.path}:{s.span.line}" for s in calls[:_MOST_CALLERS]]
    more = [f"- and {len(calls) - _MOST_CALLERS} more"] if len(calls) > _MOST_CALLERS else []
    return "\n".join([f"called in {counted(len(calls), 'place')}:", "", *shown, *more])


class KnownKernels:
    """The events of every source tree with a saved index; each index is read once while it stays as it is."""

    def __init__(self) -> None:
        self._known: dict[tuple[Path, int], tuple[str, frozenset[str]]] = {}

    def text(self, full_name: str) -> str:
        """Return which indexed trees have an event and which do not, as Markdown; empty where none has it."""
        trees = [self._read(index) for index in saved_indexes()]
        having = sorted({label for label, names in trees if full_name in names})
        lacking = sorted({label for label, names in trees if names and full_name not in names})
        if not having:
            return ""
        return f"in {', '.join(having)}" + (f"; not in {', '.join(lacking)}" if lacking else "")

    def _read(self, index: Path) -> tuple[str, frozenset[str]]:
        """Return the label and the events of an index; no events if it or its tree cannot be read."""
        try:
            key = index, index.stat().st_mtime_ns
            if key not in self._known:
                tree = open_index(index)
                names = (event.full_name for event in tree.events() if Path(tree.root).is_dir())
                self._known[key] = _label(tree.root), frozenset(names)
        except (OSError, TracepointError):
            return "", frozenset()
        return self._known[key]


def _label(root: str) -> str:
    """Return how a tree is called: its version, and its folder."""
    name = Path(root).name
    try:
        return f"{tree_version(Path(root))} ({name})"
    except (OSError, TracepointError):
        return name


def _events_of(tree: Tree, header: TraceHeader, name: str) -> list[TreeEvent]:
    """Return the events with a name that a header declares; all with the name if it is not in the tree."""
    events = [e for e in tree.events(name) if not (e.is_custom or e.is_syscall)]
    here = Path(header.path).resolve()
    mine = [e for e in events if here in (Path(tree.root, e.header), Path(tree.root, e.file))]
    return mine or events
