"""Single records of a trace, each with its fields and its text."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from tracepoint.record.field import field_values
from tracepoint.wording import one_line

if TYPE_CHECKING:
    from tracepoint.layout.format import EventFormat
    from tracepoint.record.raw import RawRecord
    from tracepoint.tracefile.text import TextWriter


class Record:
    """One record: when it was written, on which CPU, by which task, and what it says.

    `timestamp` is in ns; `lost` is how many events its CPU lost before it, LOST_UNKNOWN (-1): some.
    """

    def __init__(self, raw: RawRecord, form: EventFormat | None, writer: TextWriter) -> None:
        self._raw = raw
        self.format = form
        self._writer = writer

    def __repr__(self) -> str:
        return f"<Record {self.event}, CPU {self.cpu}, {self.timestamp} ns: {one_line(self.text)}>"

    @property
    def timestamp(self) -> int:
        """The time in ns."""
        return self._raw.timestamp

    @property
    def cpu(self) -> int:
        """The number of the CPU."""
        return self._raw.cpu

    @property
    def lost(self) -> int:
        """How many events the CPU lost before this one; LOST_UNKNOWN (-1): some, not counted."""
        return self._raw.lost

    @property
    def data(self) -> bytes:
        """The bytes of the record, from `common_type` on."""
        return self._raw.data

    @property
    def event(self) -> str:
        """The event as `system:event`; `unknown:17` for one whose format the recording does not have."""
        if self.format is None:
            return f"unknown:{self._raw.id(is_big_endian=self._writer.is_big_endian)}"
        return f"{self.format.system}:{self.format.name}"

    @property
    def pid(self) -> int:
        """The id of the task."""
        return self._raw.pid(is_big_endian=self._writer.is_big_endian)

    @property
    def comm(self) -> str:
        """The name of the task as `trace` shows it, `<...>` when the recording does not have it."""
        return self._writer.comm(self.pid)

    @cached_property
    def fields(self) -> dict[str, Any]:
        """The values by the names of the event's own fields; None where the record ends before one."""
        return {} if self.format is None else field_values(self.format, self._raw.data)

    @property
    def text(self) -> str:
        """What `trace` shows after the event's name."""
        return self._writer.body(self._raw)

    def __getitem__(self, name: str) -> Any:
        """Return the value of a field; raises KeyError."""
        return self.fields[name]
