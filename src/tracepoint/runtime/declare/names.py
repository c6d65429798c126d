"""Names that become folders of the control files: of systems, events and instances."""

from __future__ import annotations

import os

MAX_NAME = 255  # NAME_MAX, in bytes
#: What lies beside the systems in `events/`, and beside the events in a system's folder.
BESIDE_SYSTEMS = ("enable", "header_event", "header_page")
BESIDE_EVENTS = ("enable", "filter")


def folder_problem(name: object) -> str:
    """Return why a name cannot be that of a folder, such as "is empty"; empty when it can.

    >>> folder_problem("shop"), folder_problem(".."), folder_problem("a/b")
    ('', 'means another folder', "has a '/'")
    """
    if not isinstance(name, str):
        return "is not text"
    if not name:
        return "is empty"
    if name in (".", ".."):
        return "means another folder"
    for bad in ("/", "\0"):
        if bad in name:
            return f"has a {bad!r}"
    try:
        size = len(os.fsencode(name))
    except UnicodeEncodeError:
        return "cannot be written as UTF-8"
    return f"has {size} bytes; {MAX_NAME} is the most" if size > MAX_NAME else ""


def system_problem(name: str) -> str:
    """Return why a name cannot be that of a system of events, as `set_event` takes it; empty when it can.

    >>> system_problem("intel-sst"), system_problem("*"), system_problem("enable")
    ('', "begins with a '*', which set_event takes for any", 'is that of a file in events/')
    """
    if name in BESIDE_SYSTEMS:
        return "is that of a file in events/"
    if name.startswith("!"):
        return "begins with a '!', which switches off in set_event"
    if name.startswith("*"):
        return "begins with a '*', which set_event takes for any"
    return folder_problem(name)


def event_problem(name: str) -> str:
    """Return why a name cannot be that of an event; empty when it can.

    >>> event_problem("filter")
    'is that of a file in its system'
    """
    return "is that of a file in its system" if name in BESIDE_EVENTS else folder_problem(name)
