"""What changed between two trees: events, records, print formats, prototypes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tracepoint.layout.compare import (
    Change,
    ChangeKind,
    Reader,
    compare_formats,
    event_added,
    event_removed,
)

if TYPE_CHECKING:
    from tracepoint.layout.format import EventFormat
    from tracepoint.tree.query import Tree, TreeEvent

_SPACE = re.compile(r"\s+")


def tree_events(tree: Tree) -> dict[str, TreeEvent]:
    """Return one event for each `system:name`: of several the one outside of arch/, then that of x86."""
    found: dict[str, TreeEvent] = {}
    events = (event for event in tree.events() if not event.is_nop)
    for event in sorted(
        events, key=lambda e: (e.header.startswith("arch/"), not e.header.startswith("arch/x86/"), e.header)
    ):
        found.setdefault(event.full_name, event)
    return found


def tree_formats(tree: Tree) -> tuple[dict[str, EventFormat], dict[str, str]]:
    """Return the records of a tree's events by `system:name`, and by the same why others have none."""
    formats: dict[str, EventFormat] = {}
    problems = {}
    for name, event in tree_events(tree).items():
        layout = event.format
        if layout is None:
            problems[name] = event.problem
        else:
            formats[name] = layout
    return formats, problems


def compare_trees(old: Tree, new: Tree) -> list[Change]:
    """Return what changed between the events of two source trees: names, records, prints, prototypes.

    An event whose record cannot be computed in one of them is there all the same: it is neither
    removed nor added, and its record is not compared.
    """
    names = tree_events(old).keys(), tree_events(new).keys()
    formats = tree_formats(old)[0], tree_formats(new)[0]
    in_both = names[0] & names[1]
    known = formats[0].keys() & formats[1].keys()
    before, after = (
        {name: one for name, one in side.items() if name in known or name not in in_both} for side in formats
    )
    return sorted(
        [
            *compare_formats(before, after),
            *(event_removed(name) for name in names[0] - names[1] - formats[0].keys()),
            *(event_added(name) for name in names[1] - names[0] - formats[1].keys()),
            *compare_prototypes(old, new),
        ],
        key=lambda change: (change.event, change.kind),
    )


def compare_prototypes(old: Tree, new: Tree) -> list[Change]:
    """Return the events of two source trees whose `trace_<name>()` takes other types.

    Names of parameters do not count: nothing but the declaration uses them.
    """
    before, after = tree_events(old), tree_events(new)
    changes = []
    for name in sorted(before.keys() & after.keys()):
        if _types(before[name]) != _types(after[name]):
            one, two = before[name].proto, after[name].proto
            sentence = f"trace_{before[name].name}({one}) is now trace_{after[name].name}({two})"
            breaks = frozenset({Reader.PROBE})
            changes.append(Change(ChangeKind.PROTO_CHANGED, name, "", one, two, breaks, sentence))
    return changes


def _types(event: TreeEvent) -> list[str]:
    return [_SPACE.sub(" ", ctype).replace(" *", "*").strip() for ctype, _ in event.params]
