"""The events that the environment asks for: `TRACEPOINT_EVENTS`.

    TRACEPOINT_EVENTS="shop:* if total > 1000; logging:"

Each part, between semicolons or newlines, is a pattern (`system:event` with `*`, `?` and `[...]`, an empty
side for any, or the name of a system or event), and after `if` a filter as the `filter` file takes it.
Events are enabled when they are declared.  So are those that `tracepoint record --py` asks for in the
directory of rings; a forked child enables those that its parent, such as a fork server, does not record.
"""

from __future__ import annotations

import os
import re
import warnings
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.errors import TracepointError
from tracepoint.model.patterns import matches
from tracepoint.runtime.hierarchy import tracing
from tracepoint.runtime.rings.followed import FOLLOWED, asked_now

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tracepoint.runtime.event_control import EventControl
    from tracepoint.runtime.hierarchy import Instance
    from tracepoint.runtime.rings.followed import FollowedEvents

VARIABLE = "TRACEPOINT_EVENTS"


@dataclass(frozen=True, slots=True)
class Wish:
    """One part of the variable: which events, and the filter, empty for none."""

    pattern: str
    filter_text: str

    def matches(self, system: str, name: str) -> bool:
        """Return whether the event `system:name` is one of those."""
        return matches(self.pattern, f"{system}:{name}")


def parse_wishes(text: str) -> tuple[Wish, ...]:
    """Return the parts of the variable.

    >>> parse_wishes("shop:* if total > 1000; logging:")
    (Wish(pattern='shop:*', filter_text='total > 1000'), Wish(pattern='logging:', filter_text=''))
    """
    found = []
    for part in re.split(r"[;\n]", text):
        pattern, _, condition = part.strip().partition(" if ")
        if pattern:
            found.append(Wish(pattern.strip(), condition.strip()))
    return tuple(found)


def _wishes_of(followed: FollowedEvents | None) -> list[Wish]:
    return [] if followed is None else [Wish(name, text) for name, text in followed.filters.items()]


_wishes = list(parse_wishes(os.environ.get(VARIABLE, "")))
# After the others: its filter is the one that counts.
_wishes += _wishes_of(FOLLOWED)


def enable_as_wished(control: EventControl, instance: Instance) -> None:
    """Enable an event that was just declared if the environment, or who records, asks for it.

    A filter that does not fit is a warning, and the event stays off: without its filter it might record
    far more than was wanted.
    """
    _enable(control, instance, _wishes)


def _enable(control: EventControl, instance: Instance, wishes: Iterable[Wish]) -> None:
    for wish in wishes:
        if not wish.matches(control.event.system, control.event.name):
            continue
        try:
            if wish.filter_text:
                control.set_filter(wish.filter_text, instance)
            control.enable(instance)
        except TracepointError as error:
            warnings.warn(f"{VARIABLE}: {control.full_name} stays off: {error}", RuntimeWarning, stacklevel=3)


def _after_fork_in_child() -> None:
    """Record what is asked for by now: the parent may be a fork server that is older than the recording."""
    followed = asked_now()
    if followed is None or followed == FOLLOWED:
        return
    if tracing.clock != followed.clock:
        with suppress(ValueError):
            tracing.clock = followed.clock
    wishes = _wishes_of(followed)
    _wishes.extend(wishes)
    for control in tracing.events:
        # What the parent records keeps its filter.
        if not control.enabled:
            _enable(control, tracing, wishes)


os.register_at_fork(after_in_child=_after_fork_in_child)
