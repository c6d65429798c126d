"""Names of events with globs, which the kernel's own `set_event` does not support."""

from __future__ import annotations

from tracepoint.errors import TracefsError
from tracepoint.model.patterns import matching

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def expand(patterns: Iterable[str], events: Sequence[str]) -> list[str]:
    """Return the events that match any of `patterns`, in the order of `events`.

    Raises TracefsError for a pattern without a match, with a similar name.
    """
    wanted: set[str] = set()
    for pattern in patterns:
        found = matching(pattern, events)
        if not found:
            raise TracefsError(no_such_event(pattern, events))
        wanted.update(found)
    return [event for event in events if event in wanted]


def no_such_event(pattern: str, events: Sequence[str]) -> str:
    """Return the message for a pattern that matches no event."""
    from difflib import get_close_matches  # noqa: PLC0415 - only a typing error needs it

    names = {event: event for event in events}
    if ":" not in pattern:
        names = {event.partition(":")[2]: event for event in events}
        names |= {event.partition(":")[0]: event.partition(":")[0] for event in events}
    close = get_close_matches(pattern, names, n=1, cutoff=0.6)
    hint = f"did you mean {names[close[0]]}?" if close else "`tracepoint list` shows all"
    return f"no event {pattern!r} here; {hint}"
