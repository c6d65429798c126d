"""What the metadata of a CTF trace declares: its clocks, its streams and their events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracepoint.tracefile.ctf.types import CtfStruct

if TYPE_CHECKING:
    from tracepoint.tracefile.ctf.types import CtfType

NS_PER_S = 1_000_000_000


@dataclass(slots=True)
class CtfClock:
    """A clock: `frequency` in Hz; its zero is `offset_s` seconds and `offset` cycles after 1970."""

    name: str = ""
    frequency: int = NS_PER_S
    offset: int = 0
    offset_s: int = 0

    def ns(self, cycles: int) -> int:
        """Return the ns since 1970 of a value of the clock.

        >>> CtfClock("tsc", 2_000_000_000, offset_s=1).ns(3)
        1000000001
        """
        return self.origin_ns + (
            cycles if self.frequency == NS_PER_S else cycles * NS_PER_S // self.frequency
        )

    @property
    def origin_ns(self) -> int:
        """The ns since 1970 of the clock's zero: rounded on its own, as babeltrace2 does."""
        return self.offset_s * NS_PER_S + self.offset * NS_PER_S // self.frequency


@dataclass(slots=True)
class CtfEvent:
    """An event: `id` is that in its stream, None where the metadata gives none."""

    name: str = ""
    id: int | None = None
    stream_id: int | None = None
    context: CtfType = field(default_factory=CtfStruct)
    fields: CtfType = field(default_factory=CtfStruct)


@dataclass(slots=True)
class CtfStream:
    """A class of streams, and its events by their id."""

    id: int = 0
    packet_context: CtfType = field(default_factory=CtfStruct)
    event_header: CtfType = field(default_factory=CtfStruct)
    event_context: CtfType = field(default_factory=CtfStruct)
    events: dict[int, CtfEvent] = field(default_factory=dict)


@dataclass(slots=True)
class CtfMetadata:
    """All that the metadata of one folder declares; `uuid` is empty when it names none."""

    is_big_endian: bool = False
    uuid: bytes = b""
    packet_header: CtfType = field(default_factory=CtfStruct)
    env: dict[str, int | str] = field(default_factory=dict)
    clocks: dict[str, CtfClock] = field(default_factory=dict)
    streams: dict[int, CtfStream] = field(default_factory=dict)

    def clock(self, name: str) -> CtfClock:
        """Return a clock by name; without one the only clock there is, or one that counts ns."""
        if name in self.clocks:
            return self.clocks[name]
        return next(iter(self.clocks.values())) if len(self.clocks) == 1 else CtfClock()
