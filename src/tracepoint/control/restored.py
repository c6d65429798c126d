"""What restoring settings did."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Restored:
    """What restoring did: paths written, and sentences about what could not be restored.

    `problems` may be gone another time (a program reads an instance), `notes` never will.
    """

    changed: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
