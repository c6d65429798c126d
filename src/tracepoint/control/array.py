"""What events and recordings need of the trace array that they belong to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tracepoint.control.tracefs import Tracefs


class ArrayFiles(Protocol):
    """The files of a trace array: `instance.TraceArray`.

    `prefix` comes before the names of its files: empty at the top, else `instances/NAME/`.
    """

    tracefs: Tracefs
    prefix: str
    is_on: bool

    @property
    def path(self) -> str:
        """The folder of this array, where other programs find it."""

    @property
    def event_names(self) -> list[str]:
        """All events that can be enabled, as `system:event`, sorted."""

    @property
    def enabled(self) -> list[str]:
        """The events that `set_event` lists: those enabled, also in soft mode."""

    @property
    def clock(self) -> str:
        """The clock that stamps records."""

    @property
    def buffer_bytes(self) -> dict[str, int]:
        """The size of the ring buffer of each CPU, in bytes."""
