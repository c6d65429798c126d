"""The names of the events of a recording, as the heads of their formats have them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tracepoint.tracefile.container import Container

_HEAD = re.compile(r"name:[ \t]*([^\n]*?)[ \t\r]*\nID:[ \t]*(\d{1,9})[ \t\r]*\n")


class NamedFormat(NamedTuple):
    """An event as `system:event`, its id, and the place of its format among all."""

    name: str
    id: int
    place: int


def named_formats(formats: Iterable[tuple[str, str]]) -> Iterator[NamedFormat]:
    r"""Yield the events of formats, (system, text), that begin as a format does; only their heads are read.

    >>> list(named_formats([("a", "no format"), ("sched", "name: sched_switch\nID: 17\nformat:\n")]))
    [NamedFormat(name='sched:sched_switch', id=17, place=1)]
    """
    match = _HEAD.match
    for place, (system, text) in enumerate(formats):
        head = match(text)
        if head is not None:
            name, number = head.groups()
            yield NamedFormat(f"{system}:{name}", int(number), place)


def names_by_id(file: Container) -> dict[int, str]:
    """Return the events of a file, recorded or not, as `system:event` by number."""
    return {own.id: own.name for own in named_formats(file.formats)}
