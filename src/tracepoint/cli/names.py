"""Names of events and files as the command line takes them."""

from __future__ import annotations

from pathlib import Path


def split_event(word: str) -> tuple[str, str]:
    """Split `HEADER[:EVENT]` into path and event; the event is empty if none is named.

    A file with the whole name wins, then one whose own name contains the colon.

    >>> split_event("include/trace/events/sched.h:sched_switch")
    ('include/trace/events/sched.h', 'sched_switch')
    """
    path, colon, event = word.partition(":")
    if not colon or Path(word).exists():
        return word, ""
    for at, char in enumerate(word):
        if char == ":" and Path(word[:at]).is_file():
            return word[:at], word[at + 1 :]
    return path, event
