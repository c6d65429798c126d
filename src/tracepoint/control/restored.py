"""What restoring settings did."""

from __future__ import annotations


class Restored:
    """What restoring did: paths written, and sentences about what could not be restored.

    `problems` may be gone another time (a program reads an instance), `notes` never will.
    """

    def __init__(self) -> None:
        self.changed: list[str] = []
        self.problems: list[str] = []
        self.notes: list[str] = []
