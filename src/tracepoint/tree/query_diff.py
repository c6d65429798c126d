"""What changed between two trees: events, records, print formats, prototypes; and what a script uses."""

from __future__ import annotations

import re
from dataclasses import dataclass
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
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from tracepoint.layout.format import EventFormat
    from tracepoint.tree.query import Tree, TreeEvent

_SPACE = re.compile(r"\s+")
_WORD = re.compile(r"\w+")
_PAIR = re.compile(r"\b(\w[\w.-]*)[:/](\w+)\b")
_FIELD_USES = (
    re.compile(r"(?:->|\.)\s*([A-Za-z_]\w*)"),
    re.compile(r"""["']([A-Za-z_]\w*)["']"""),
    re.compile(r"\b([A-Za-z_]\w*)\s*(?:[=!<>]=|[<>&~])"),
    re.compile(r",\s*([A-Za-z_]\w*)\s*\)"),
)
_KEYS = re.compile(r"\b(?:keys?|vals?|values|sort)=([\w.,]+)")
_PROBES = re.compile(r"\b(?:tp_btf|raw_tp|raw_tracepoint|rawtracepoint|BPF_PROG|register_trace_\w+)\b")
_STRUCTS = re.compile(r"\btrace_event_raw_\w+|SEC\(\s*\"(?:tp|tracepoint)/")
_RELOCATED = re.compile(r"vmlinux\.h|BPF_CORE_READ|preserve_access_index")


def tree_events(tree: Tree) -> dict[str, TreeEvent]:
    """Return one event for each `system:name`: of several the one outside of arch/, then that of x86."""
    found: dict[str, TreeEvent] = {}
    events = (event for event in tree.events() if not event.is_nop)
    for event in sorted(
        events, key=lambda e: (e.header.startswith("arch/"), not e.header.startswith("arch/x86/"), e.header)
    ):
        found.setdefault(event.full_name, event)
    return found


def tree_formats(tree: Tree) -> tuple[dict[str, EventFormat], list[str]]:
    """Return the records of a tree's events by `system:name`, and why others have none."""
    formats: dict[str, EventFormat] = {}
    problems = []
    for name, event in tree_events(tree).items():
        layout = event.format
        if layout is None:
            problems.append(event.problem)
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


@dataclass(frozen=True, slots=True)
class Uses:
    """What a script uses: fields by `system:name`, and in which ways it reads.

    `unknown` are names written as `system:event` that no kernel given has.
    """

    fields: dict[str, frozenset[str]]
    readers: frozenset[Reader]
    unknown: tuple[str, ...] = ()

    def concerns(self, change: Change) -> bool:
        """Whether a change is of an event, or field, that the script uses."""
        return change.event in self.fields and (not change.field or change.field in self.fields[change.event])

    def broken_by(self, change: Change) -> frozenset[Reader]:
        """In which of its ways of reading a change breaks it."""
        return change.breaks & self.readers if self.concerns(change) else frozenset()


def find_uses(text: str, known: Mapping[str, Collection[str]]) -> Uses:
    """Find the events and fields that a text names: bpftrace, BPF C, a trace-cmd line, Python.

    `known` are the fields of every event by `system:name`, of the old and the new kernel.

    >>> uses = find_uses(
    ...     "tracepoint:sched:sched_switch { @[args->next_comm] = count(); }",
    ...     {"sched:sched_switch": ["prev_comm", "next_comm"]},
    ... )
    >>> uses.fields
    {'sched:sched_switch': frozenset({'next_comm'})}
    """
    events = _events_of(text, known)
    mentioned = {m for pattern in _FIELD_USES for m in pattern.findall(text)}
    for keys in _KEYS.findall(text):
        mentioned.update(_WORD.findall(keys))
    systems = {name.partition(":")[0] for name in known}
    pairs = {
        f"{system}:{event}" for system, event in _PAIR.findall(text) if system in systems and "_" in event
    }
    return Uses(
        {name: frozenset(mentioned & set(known[name])) for name in sorted(events)},
        _readers_of(text),
        tuple(sorted(pair for pair in pairs if pair not in known)),
    )


def _events_of(text: str, known: Mapping[str, Collection[str]]) -> set[str]:
    found = {name for pair in _PAIR.findall(text) if (name := ":".join(pair)) in known}
    named = {name.partition(":")[2] for name in found}
    words = set(_WORD.findall(text))
    words.update(_after_prefixes(tuple(words)))
    for name in known:
        event = name.partition(":")[2]
        # A word without an underscore is rarely meant as an event.
        if event not in named and "_" in event and event in words:
            found.add(name)
    return found


def _after_prefixes(words: Iterable[str]) -> Iterator[str]:
    for word in words:
        for prefix in ("trace_event_raw_", "btf_trace_", "register_trace_", "trace_"):
            if word.startswith(prefix):
                yield word.removeprefix(prefix)


def _readers_of(text: str) -> frozenset[Reader]:
    readers = set()
    if _PROBES.search(text):
        readers.add(Reader.PROBE)
    if _STRUCTS.search(text):
        readers.add(Reader.BPF_CORE if _RELOCATED.search(text) else Reader.OFFSETS)
    return frozenset(readers or {Reader.BY_NAME})
