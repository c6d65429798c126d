"""Single records of a trace, each with its fields and its text."""

from __future__ import annotations

from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from tracepoint.decode.column import number_column, text_column
from tracepoint.decode.selection import unknown_name
from tracepoint.named import NamedTuple
from tracepoint.record.field import field_values
from tracepoint.wording import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tracepoint.decode.column import Column
    from tracepoint.layout.format import EventFormat
    from tracepoint.record.raw import RawRecord
    from tracepoint.tracefile.text import TextWriter

_FIRST_BATCH, _MOST_BATCH = 64, 1 << 13


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
            return unknown_name(self._raw.id(is_big_endian=self._writer.is_big_endian))
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


class ShownRecord(NamedTuple):
    """What a line of `trace` says of a record of any event; `text` is what follows the event's name."""

    raw: RawRecord
    pid: int
    comm: str
    event: str
    text: str


def shown_records(records: Iterable[RawRecord], writer: TextWriter) -> Iterator[ShownRecord]:
    """Yield records with their texts: a few at first, then some thousand rendered at once."""
    names: dict[int, str] = {}
    rest, size = iter(records), _FIRST_BATCH
    while batch := list(islice(rest, size)):
        for raw, text in zip(batch, writer.texts(batch), strict=True):
            number, _, _, pid = writer.common(raw)
            name = names.get(number)
            if name is None:
                name = names[number] = Record(raw, writer.events.get(number), writer).event
            yield ShownRecord(raw, pid, writer.comm(pid), name, text)
        size = min(4 * size, _MOST_BATCH)


#: The columns of records of any event, as `record_columns` and every table of several events has them.
RECORD_COLUMNS = ("timestamp", "cpu", "pid", "comm", "event", "text")
_CODES = {"timestamp": "q", "cpu": "i", "pid": "i"}


def record_values(record: ShownRecord) -> tuple[int, int, int, str, str, str]:
    """Return the values of a record for RECORD_COLUMNS."""
    return record.raw.timestamp, record.raw.cpu, record.pid, record.comm, record.event, record.text


def record_columns(records: Iterable[ShownRecord]) -> list[Column]:
    """Return records as columns: int64 ns, two of int32, and three of texts, each different text once."""
    rows = list(zip(*map(record_values, records), strict=True)) or [()] * len(RECORD_COLUMNS)
    return [
        number_column(name, values, _CODES[name]) if name in _CODES else _text_column(name, values)
        for name, values in zip(RECORD_COLUMNS, rows, strict=True)
    ]


def _text_column(name: str, values: Sequence[str]) -> Column:
    words: dict[str, int] = {}
    rows = [words.setdefault(value, len(words)) for value in values]
    return text_column(name, rows, (word.encode("utf-8", "surrogateescape") for word in words))
