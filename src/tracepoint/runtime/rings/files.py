"""What a directory of ring files holds: the rings, the formats of their events, and what is damaged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from tracepoint.wording import counted, one_line

if TYPE_CHECKING:
    from pathlib import Path

    from tracepoint.layout.format import EventFormat


@dataclass(frozen=True)
class MappedRing:
    """One ring file: the process and thread that wrote it, and how many records it holds and lost."""

    path: Path
    pid: int
    tid: int
    comm: str
    clock: str
    is_ended: bool
    stats: dict[str, int]
    pages: tuple[bytes, ...] = field(repr=False)

    def __repr__(self) -> str:
        name, n_records = one_line(self.comm), self.stats.get("entries", 0)
        return f"<MappedRing of {name}, process {self.pid}, {counted(n_records, 'record')}>"


class RingFiles(NamedTuple):
    """All rings of a directory; `formats` are those of each process by the events' numbers.

    `damage` lists what could not be read: a name and a reason each.
    """

    directory: Path
    rings: tuple[MappedRing, ...]
    formats: dict[int, dict[int, EventFormat]]
    damage: list[tuple[str, str]]
