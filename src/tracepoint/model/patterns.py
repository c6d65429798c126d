"""Patterns of events, as `set_event` takes them, with globs."""

from __future__ import annotations

from fnmatch import filter as filter_names
from fnmatch import fnmatchcase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence


_GLOBS = frozenset("*?[")


def matches(pattern: str, event: str) -> bool:
    """Return whether a pattern matches an event, given as `system:event`.

    With a colon both sides are globs, an empty side matches any; without one the pattern is that of
    an event's name or of a system's, as in `set_event`.

    >>> [matches(p, "sched:sched_switch") for p in ("sched:*_sw*", "sched", ":sched_switch", "irq:*")]
    [True, True, True, False]
    """
    system, _, name = event.partition(":")
    left, colon, right = pattern.partition(":")
    if colon:
        return fnmatchcase(system, left or "*") and fnmatchcase(name, right or "*")
    return fnmatchcase(name, pattern) or fnmatchcase(system, pattern)


def matching(pattern: str, events: Iterable[str]) -> list[str]:
    """Return the events that a pattern matches, as `matches` says; a name without globs is only compared.

    >>> matching("sched", ["irq:irq_handler_exit", "sched:sched_switch"])
    ['sched:sched_switch']
    """
    if not _GLOBS.isdisjoint(pattern):
        return [event for event in events if matches(pattern, event)]
    left, colon, right = pattern.partition(":")
    if left and right:
        return [event for event in events if event == pattern]
    if not colon:
        return [event for event in events if left in event.partition(":")[::2]]
    parts = ((event, event.partition(":")) for event in events)
    return [event for event, (system, _, name) in parts if left in ("", system) and right in ("", name)]


def matches_any(patterns: Collection[str], event: str) -> bool:
    """Return whether one of the patterns matches an event; without patterns every event matches.

    >>> matches_any([], "irq:irq_handler_exit"), matches_any(["sched", "kmem"], "irq:irq_handler_exit")
    (True, False)
    """
    return not patterns or any(matches(pattern, event) for pattern in patterns)


def names_matching(patterns: Iterable[str], system: str, names: Sequence[str]) -> set[str]:
    """Return the names of events of one system that one of the patterns matches: thousands at once.

    >>> sorted(names_matching(["irq:*", "1[78]"], "unknown", ["16", "17", "18"]))
    ['17', '18']
    """
    found: set[str] = set()
    for pattern in patterns:
        left, colon, right = pattern.partition(":")
        is_of_system = fnmatchcase(system, (left or "*") if colon else pattern)
        if is_of_system and (not colon or right in ("", "*")):
            return set(names)
        if is_of_system or not colon:
            found.update(filter_names(names, right if colon else pattern))
    return found


def unmatched(patterns: Iterable[str], events: Collection[str]) -> list[str]:
    """Return the patterns that match none of the events.

    >>> unmatched(["sched", "irq"], ["sched:sched_switch"])
    ['irq']
    """
    return [pattern for pattern in patterns if not any(matches(pattern, event) for event in events)]
