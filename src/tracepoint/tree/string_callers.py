"""Whether the callers of events with string pointers pass strings that readers can know."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tracepoint.errors import TracepointError
from tracepoint.model.field import ScalarField
from tracepoint.source.text import decode
from tracepoint.tree.query_open import open_saved

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from tracepoint.model.event import Event, TraceHeader

#: kernel/rcu/rcu.h and include/linux/suspend.h shorten tracepoint_string() to TPS().
_EXPORTS = re.compile(r"tracepoint_string|\bTPS\b")


def find_string_callers(root: Path | None, headers: Iterable[TraceHeader]) -> Mapping[str, bool]:
    """Return whether a file that calls an event uses `tracepoint_string()`, for events with string pointers.

    Events are named `system:event`; one that nothing calls is not in the answer, and without a saved
    index of the tree that is still true nothing is.
    """
    events = [event for header in headers for event in header.events if _has_string_pointer(event)]
    if root is None or not events:
        return {}
    try:
        tree = open_saved(root)
    except TracepointError:
        return {}
    if tree is None:
        return {}
    files: dict[str, bool] = {}
    answer = {}
    for event in events:
        paths = {site.span.path for site in tree.call_sites(event.full_name)}
        for path in paths - files.keys():
            files[path] = _exports_strings(root / path)
        if paths:
            answer[event.full_name] = any(files[path] for path in paths)
    return answer


def _has_string_pointer(event: Event) -> bool:
    return any(
        isinstance(field, ScalarField) and re.search(r"\bchar\b[^*]*\*\s*$", field.ctype)
        for field in event.fields
    )


def _exports_strings(path: Path) -> bool:
    """Whether a file, or a header beside it, makes strings known to readers."""
    try:
        beside = [file for file in path.parent.glob("*.h") if file.is_file()]
        return any(_EXPORTS.search(decode(file.read_bytes())) for file in [path, *beside])
    except OSError:
        return True
