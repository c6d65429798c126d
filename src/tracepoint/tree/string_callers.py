"""Whether the callers of events with string pointers pass strings that are exported to readers."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from tracepoint.errors import TracepointError
from tracepoint.model.field import ScalarField
from tracepoint.source.text import decode
from tracepoint.tree.opening import read_if_sane
from tracepoint.tree.query.opening import open_saved, saved_identity

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tracepoint.model.event import Event, TraceHeader
    from tracepoint.tree.query.tree import Tree

#: kernel/rcu/rcu.h and include/linux/suspend.h shorten tracepoint_string() to TPS().
_EXPORTS = re.compile(r"tracepoint_string|\bTPS\b")


class StringCallers:
    """The callers of the events of one tree, from its saved index if that is valid."""

    def __init__(self, root: Path | None) -> None:
        self._root = root
        self._uses: dict[str, bool] = {}

    @cached_property
    def _tree(self) -> Tree | None:
        try:
            return open_saved(self._root) if self._root is not None else None
        except TracepointError:
            return None

    @cached_property
    def identity(self) -> str:
        """A text that changes when answers may change: with the index and everything in it."""
        return saved_identity(self._root) if self._root is not None else ""

    def of(self, events: Sequence[str]) -> dict[str, bool]:
        """Return whether a file that calls an event uses `tracepoint_string()`.

        `events` are those of `string_events`; those without callers are not in the result.
        """
        answer: dict[str, bool] = {}
        if self._root is None or not events or self._tree is None:
            return answer
        for event in events:
            paths = {site.span.path for site in self._tree.call_sites(event)}
            for path in paths - self._uses.keys():
                self._uses[path] = _exports_strings(self._root / path)
            if paths:
                answer[event] = any(self._uses[path] for path in paths)
        return answer


def string_events(header: TraceHeader) -> list[str]:
    """Return the events of a header with string pointers, named `system:event`."""
    return [event.full_name for event in header.events if _has_string_pointer(event)]


def _has_string_pointer(event: Event) -> bool:
    return any(
        isinstance(field, ScalarField) and re.search(r"\bchar\b[^*]*\*\s*$", field.ctype)
        for field in event.fields
    )


def _exports_strings(path: Path) -> bool:
    """Return whether a file, or a header next to it, exports strings to readers."""
    files = [path, *(file for file in path.parent.glob("*.h") if file.is_file())]
    texts = [read_if_sane(file) for file in files]
    return any(data is None or _EXPORTS.search(decode(data)) for data in texts)
