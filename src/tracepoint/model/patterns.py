"""Patterns of events, as `set_event` takes them, with globs."""

from __future__ import annotations

from fnmatch import fnmatchcase


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
