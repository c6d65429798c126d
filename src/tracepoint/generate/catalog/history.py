"""What happened to each tracepoint between two versions."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.layout.compare import Change, ChangeKind, Reader, compare_formats
from tracepoint.tree.query.diff import compare_prototypes, tree_events, tree_formats

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.tree.query.tree import Tree

#: What a version changed of an event, as bits for searching.
LAYOUT, PROTOTYPE, PRINT, BREAKS = 1, 2, 4, 8
_OTHER_THAN_LAYOUT = {
    ChangeKind.PRINT_CHANGED: PRINT,
    ChangeKind.PROTO_CHANGED: PROTOTYPE,
    ChangeKind.EVENT_RENAMED: 0,
}
_WHOLE = frozenset({ChangeKind.EVENT_ADDED, ChangeKind.EVENT_REMOVED})


@dataclass(frozen=True, slots=True)
class EventChange:
    """One change in the version with that number (from 0); `target` is another event's name."""

    version: int
    change: Change
    target: str = ""

    @property
    def bits(self) -> int:
        """What kind of change it is: LAYOUT, PROTOTYPE or PRINT, and BREAKS when programs break."""
        if self.change.kind is ChangeKind.SIGN_CHANGED and not self.change.breaks:
            return 0  # a text reads the same; since 6.2 the sign of every char[] is another
        bits = _OTHER_THAN_LAYOUT.get(self.change.kind, LAYOUT)
        return bits | (BREAKS if bits and self.change.breaks - {Reader.TEXT} else 0)


def compare_versions(old: Tree, new: Tree, number: int) -> dict[str, list[EventChange]]:
    """Return the changes of each event from one version to the next, which has this number.

    This excludes added and removed events, but includes possible renames, for both names.
    """
    found: dict[str, list[EventChange]] = defaultdict(list)
    for change in _changes(old, new):
        target = change.after if change.kind is ChangeKind.EVENT_RENAMED else ""
        found[change.event].append(EventChange(number, change, target))
        if target:
            sentence = f"{change.event} is gone and had the same fields: perhaps this is its new name"
            back = Change(change.kind, target, "", change.event, target, frozenset(), sentence)
            found[target].append(EventChange(number, back, change.event))
    return found


def _bare_prototypes(old: Tree, new: Tree) -> Iterator[Change]:
    """Compare the prototypes of tracepoints without an event, as they are written."""
    before = {f"{point.system}:{point.name}": point.proto for point in old.bare_tracepoints()}
    after = {f"{point.system}:{point.name}": point.proto for point in new.bare_tracepoints()}
    for name in sorted(before.keys() & after.keys()):
        one, two = before[name], after[name]
        if one.split() != two.split():
            sentence = f"the prototype was ({one}), now ({two})"
            breaks = frozenset({Reader.PROBE})
            yield Change(ChangeKind.PROTO_CHANGED, name, "", one, two, breaks, sentence)


def _changes(old: Tree, new: Tree) -> list[Change]:
    before, after = tree_events(old), tree_events(new)
    old_formats, new_formats = tree_formats(old)[0], tree_formats(new)[0]
    # An event whose record cannot be laid out in one of them was not added or removed.
    changes = compare_formats(
        {name: layout for name, layout in old_formats.items() if name in new_formats or name not in after},
        {name: layout for name, layout in new_formats.items() if name in old_formats or name not in before},
    )
    if old.kind == new.kind == "source":
        changes += [*compare_prototypes(old, new), *_bare_prototypes(old, new)]
    return [change for change in changes if change.kind not in _WHOLE]
