"""Which events and fields an analysis reads: found by looking at a recording, not by versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Fields(NamedTuple):
    """The fields of an event that an analysis reads: those it must have, and those it may have."""

    needed: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()


class Need(NamedTuple):
    """An event that an analysis reads, under each name that it has had, the newest first, with its fields.

    Without an event that `is_needed` there is no result; `gives` says what the others add.
    """

    fields: Mapping[str, Fields]
    gives: str
    is_needed: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names as `system:event`."""
        return tuple(self.fields)


class MissingEvent(NamedTuple):
    """An event that was not recorded, and what the analysis lacks without it."""

    name: str
    gives: str
    is_needed: bool
