"""An event's name instead of a file: the headers that declare it, in a tree or in installed headers."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.cli.tree.trees import default_tree, searching
from tracepoint.control.events import TracefsEvent
from tracepoint.control.session import open_tracefs
from tracepoint.errors import TracefsError, TracepointError
from tracepoint.model.patterns import matches
from tracepoint.tree.opening import read_if_sane
from tracepoint.tree.scan import find_headers

if TYPE_CHECKING:
    from tracepoint.cli.output import Output
    from tracepoint.layout.format import EventFormat

_NAME = re.compile(r"(?:[\w*?]|\[\w+\])+(?::(?:[\w*?]|\[\w+\])*)?")
_PLACES = ("/lib/modules/*/source", "/lib/modules/*/build", "/usr/src/linux-headers-*")


def is_event_name(word: str) -> bool:
    """Return whether a word can be an event, or a pattern of events, rather than a file.

    >>> [is_event_name(w) for w in ("sched_switch", "sched:*wak*", "swap.h", "./swap", "a:b:c")]
    [True, True, False, False, False]
    """
    return _NAME.fullmatch(word) is not None and not Path(word).exists()


def find_declaring(word: str, out: Output) -> list[Path]:
    """Return the headers that declare the events of a name or pattern.

    This searches the kernel tree here, else the one indexed last; without one, the
    text of the installed kernel headers.
    """
    try:
        root = default_tree(out)
    except TracepointError:
        return _search_installed(word)
    with searching(root, out) as tree:
        return sorted({Path(root, event.header) for event in tree.events(word)}) or _search_installed(word)


def read_running(word: str) -> list[EventFormat]:
    """Return the formats of the running kernel's events of a name or pattern; none without tracefs."""
    try:
        with open_tracefs(keeps_journal=False) as tracing:
            events = [tracing[name] for name in tracing.event_names if matches(word, name)]
            return [event.format for event in events if isinstance(event, TracefsEvent)]
    except (TracefsError, OSError):
        return []


def not_found(word: str) -> str:
    """Return a sentence that says where an event was searched for, and what to try."""
    return (
        f"no file and no event {word!r}: looked in the index of a kernel tree (`tracepoint index TREE` makes "
        "one), in the installed kernel headers and in the running kernel; try HEADER:EVENT"
    )


def _search_installed(word: str) -> list[Path]:
    """Return the installed headers whose text has the event's name as a word."""
    name = word.rpartition(":")[2] or "*"
    shape = name.replace("*", r"\w*").replace("?", r"\w")
    wanted = re.compile(rf"\b{shape}\b".encode())
    for folder in _installed():
        found = [path for path in find_headers([str(folder)]) if wanted.search(read_if_sane(path) or b"")]
        if found:
            return found
    return []


def _installed() -> list[Path]:
    """Return the folders of trace headers of installed kernels, that of the running one first."""
    release = os.uname().release
    found = {
        (place / "include/trace/events").resolve(): release in place.as_posix()
        for pattern in _PLACES
        for place in sorted(Path("/").glob(pattern[1:]), reverse=True)
    }
    folders = [folder for folder in found if folder.is_dir()]
    return sorted(folders, key=lambda folder: not found[folder])
