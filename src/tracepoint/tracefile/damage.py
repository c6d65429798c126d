"""What could not be read of a file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Damage:
    """A part that could not be read: of which CPU, at which offset in bytes, and why."""

    cpu: int | None
    offset: int
    reason: str
