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
    from tracepoint.tree.query.tree import Tree, TreeEvent

_SPACE = re.compile(r"\s+")


def tree_events(tree: Tree) -> dict[str, TreeEvent]:
    """Return one event for each `system:name`: of several the one outside arch/, then that of x86."""
    found: dict[str, TreeEvent] = {}
    events = (event for event in tree.events() if not event.is_nop)
    for event in sorted(
        events, key=lambda e: (e.header.startswith("arch/"), not e.header.startswith("arch/x86/"), e.header)
    ):
        found.setdefault(event.full_name, event)
    return found


def tree_formats(tree: Tree) -> tuple[dict[str, EventFormat], dict[str, str]]:
    """Return the records of a tree's events by `system:name`, and the reasons why others have none."""
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
    """Return what changed between the events of two trees: names, records, prints, prototypes, structs.

    An event whose record cannot be computed in one of them still exists: it is neither removed
    nor added, and its record is not compared.
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
            *compare_classes(old, new),
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


def compare_classes(old: Tree, new: Tree) -> list[Change]:
    """Return the events whose record is another `struct trace_event_raw_<class>` in the new tree.

    A program with CO-RE finds members in the struct that it names: it breaks when the struct is
    gone, and reads wrong bytes when its layout differs from what the event now records.
    """
    before, after = tree_events(old), tree_events(new)
    structs = {event.class_name: event for event in reversed(after.values())}
    changes = []
    for name in sorted(before.keys() & after.keys()):
        was, now = before[name].class_name, after[name].class_name
        if was == now or after[name].is_syscall:
            continue
        left = structs.get(was)
        same = left is not None and _is_laid_out_alike(left, after[name])
        fate = "is gone" if left is None else "has the same fields" if same else "has other fields"
        sentence = f"its struct is trace_event_raw_{now}, was trace_event_raw_{was}, which {fate}"
        breaks = frozenset[Reader]() if same else frozenset({Reader.BPF_CORE})
        changes.append(Change(ChangeKind.CLASS_CHANGED, name, "", was, now, breaks, sentence))
    return changes


def _is_laid_out_alike(one: TreeEvent, other: TreeEvent) -> bool:
    first, second = one.format, other.format
    return first is not None and second is not None and first.event_fields == second.event_fields


def _types(event: TreeEvent) -> list[str]:
    return [_SPACE.sub(" ", ctype).replace(" *", "*").strip() for ctype, _ in event.params]
