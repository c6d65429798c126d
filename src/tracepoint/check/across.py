"""What the headers of a run know about each other, kept as a few names once the headers are freed.

A whole kernel's headers take hundreds of megabytes.  A rule that looks across files therefore has
two parts: `candidates` collects possible faults from one header, and `decide` sees them again when all
headers of the run are known.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracepoint.check.finding import Located, located_origin

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.model.event import TraceHeader


@dataclass(frozen=True, slots=True)
class Share:
    """What other headers may need to know about one.

    `enums` are the system and name of what it exports, `classes` those its events use, `events` what
    it declares, and where.
    """

    path: str
    enums: tuple[tuple[str, str], ...]
    classes: tuple[str, ...]
    events: tuple[tuple[str, Located | None], ...]

    @classmethod
    def of(cls, header: TraceHeader) -> Share:
        """Collect it from a header."""
        enums = dict.fromkeys((enum.system, enum.name) for enum in header.enums)
        classes = dict.fromkeys(event.event_class.name for event in header.events)
        events = ((event.name, located_origin(event)) for event in header.events)
        return cls(header.path, tuple(enums), tuple(classes), tuple(events))


@dataclass(slots=True)
class Across:
    """What all headers of a run export, use and declare.

    `are_alternatives` is that of `TreeFacts`.
    `exported` are the names of TRACE_DEFINE_ENUM and _SIZEOF by system, `used_classes` the classes that
    some event uses, `events` the path of each header that declares an event, and where, by name.
    """

    are_alternatives: Callable[[str, str], bool]
    exported: dict[str, set[str]] = field(default_factory=dict)
    used_classes: set[str] = field(default_factory=set)
    events: dict[str, list[tuple[str, Located | None]]] = field(default_factory=dict)

    def add(self, share: Share) -> None:
        """Add what other headers may need to know about one."""
        for system, name in share.enums:
            self.exported.setdefault(system, set()).add(name)
        self.used_classes.update(share.classes)
        for name, place in share.events:
            self.events.setdefault(name, []).append((share.path, place))

    def exports(self, system: str, name: str) -> bool:
        """Return whether some header exports the name for this system."""
        return name in self.exported.get(system, ())

    def declared_elsewhere(self, name: str, path: str) -> list[tuple[str, Located | None]]:
        """Return which other headers declare an event of this name, and where."""
        return [(other, place) for other, place in self.events.get(name, ()) if other != path]
