"""What the headers of a run know of each other, kept as a few names when the headers themselves are let go.

A whole kernel's headers take hundreds of megabytes.  A rule that looks across files is therefore in two
parts: `candidates` takes from one header what may be a fault, `decide` sees those of one header again when
all headers of the run are known.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracepoint.check.finding import Located, located_origin

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.model.event import TraceHeader


@dataclass(slots=True)
class Across:
    """What all headers of a run export, use and declare.

    `are_alternatives` is that of `TreeFacts`.
    `exported` are by system the names of TRACE_DEFINE_ENUM and _SIZEOF, `used_classes` the classes that
    some event is made of, `events` by name the path of each header that declares one, and where.
    """

    are_alternatives: Callable[[str, str], bool]
    exported: dict[str, set[str]] = field(default_factory=dict)
    used_classes: set[str] = field(default_factory=set)
    events: dict[str, list[tuple[str, Located | None]]] = field(default_factory=dict)

    def add(self, header: TraceHeader) -> None:
        """Take what other headers may ask of one."""
        for enum in header.enums:
            self.exported.setdefault(enum.system, set()).add(enum.name)
        for event in header.events:
            self.used_classes.add(event.event_class.name)
            self.events.setdefault(event.name, []).append((header.path, located_origin(event)))

    def exports(self, system: str, name: str) -> bool:
        """Whether some header exports the name for this system."""
        return name in self.exported.get(system, ())

    def declared_elsewhere(self, name: str, path: str) -> list[tuple[str, Located | None]]:
        """Return which other headers declare an event of this name, and where."""
        return [(other, place) for other, place in self.events.get(name, ()) if other != path]
