"""The members of a record and the bytes that they take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracepoint.model.field import Field


@dataclass(frozen=True, slots=True)
class RecordMember:
    """One field of a record: size and alignment in bytes, and the unused bytes before it."""

    field: Field
    size: int
    align: int
    hole_before: int = 0


@dataclass(frozen=True, slots=True)
class RecordLayout:
    """The members in order, with the fixed size of the record in bytes, tail padding included."""

    members: tuple[RecordMember, ...]
    size_bytes: int

    @property
    def hole_bytes(self) -> int:
        """The unused bytes between the fields."""
        return sum(m.hole_before for m in self.members)
