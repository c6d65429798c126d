"""Spans of two events that the user names: their times, their fields as attributes."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import TYPE_CHECKING

from tracepoint.analysis.latency.pairing import keyed_events, pair_by_key
from tracepoint.analysis.otel.attributes import integer_in_range
from tracepoint.analysis.otel.span import FoundSpan
from tracepoint.analysis.pairs import NO_ROW, Order
from tracepoint.named import NamedTuple
from tracepoint.wording import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.analysis.latency.pairing import KeyedEvents
    from tracepoint.analysis.otel.span import SpanCounts
    from tracepoint.decode.column import Column
    from tracepoint.decode.trace import Trace


# What a name has of an attribute: `GET {path}`.
_PLACE = re.compile(r"\{([^{}]+)\}")


class SpanPair(NamedTuple):
    """Two events that are the begin and the end of a span, as for `analyse_latency`.

    They belong together where the fields `key` have the same values; `order` says which of several open
    begins an end takes: last, first, stack or queue.  `name` is that of the spans, empty for the begin's; an
    attribute in braces, `GET {path}`, stands for its value.

    >>> SpanPair("request_begin", "request_end", "id").order
    'last'
    """

    begin: str
    end: str
    key: str = ""
    order: str = "last"
    name: str = ""

    def __repr__(self) -> str:
        return f"<SpanPair {one_line(self.begin, 50)} to {one_line(self.end, 50)}>"


def read_pair(trace: Trace, pair: SpanPair, epoch_ns: int, counts: SpanCounts) -> Iterator[FoundSpan]:
    """Yield the spans of a pair by their begins, without parents; what is left out is counted.

    `epoch_ns` is the time in ns since 1970 at which the trace's clock was 0.  A span's ids are made of the
    trace's path, the events and the begin, so that they are the same each time.  Raises TracepointError for
    events and fields that the recording does not have, KeyError for an unknown order.
    """
    order = Order[pair.order.upper()]
    events = keyed_events(trace, pair.begin, pair.end, pair.key, is_whole=True)
    records, spans = events.records, pair_by_key(events, order)
    counts.n_open += spans.counts.n_open
    counts.n_cut += sum(spans.is_cut)
    counts.n_orphans += len(spans.orphans)
    begins, ends = _attribute_columns(events)
    pids = records.column(events.begin, "common_pid").numbers
    name = pair.name or events.begin.partition(":")[2]
    for row, end, ts, dur in zip(spans.begin, spans.end, spans.ts, spans.dur, strict=True):
        if end == NO_ROW:
            continue
        tid = pids[row]
        attributes: dict[str, object] = {"thread.id": tid}
        if task := records.names.get(tid):
            attributes["thread.name"] = task
        attributes |= _values(begins, row) | _values(ends, end)
        trace_id, span_id = _ids(trace.file.path, events.begin, events.end, ts, row)
        start = epoch_ns + ts
        own_name = _filled(name, attributes)
        yield FoundSpan(trace_id, span_id, own_name, start, start + dur, tid, ts, ts + dur, attributes)


def _filled(name: str, attributes: dict[str, object]) -> str:
    """Return a name with the values of the attributes in it; what is not one stays as it is."""
    return _PLACE.sub(lambda place: str(attributes.get(place[1], place[0])), name)


def _attribute_columns(events: KeyedEvents) -> tuple[dict[str, Column], dict[str, Column]]:
    """Return the columns of begin and end by the names of their attributes, `end.NAME` of a second one."""
    begin, end = (
        {
            name: column.in_utf8
            for name, column in events.records.columns(event).items()
            if not name.startswith("common_")
        }
        for event in (events.begin, events.end)
    )
    keys = {field.end for field in events.key if field.begin == field.end}
    own = {name: column for name, column in end.items() if name not in keys}
    return begin, {f"end.{name}" if name in begin else name: column for name, column in own.items()}


def _values(columns: dict[str, Column], row: int) -> dict[str, object]:
    """Return the values of a row as attributes; fields that the record is too short for are left out."""
    values = ((name, column.tolist(row, row + 1)[0]) for name, column in columns.items())
    return {name: _attribute(value) for name, value in values if value is not None}


def _attribute(value: object) -> object:
    if isinstance(value, bytes):
        return value.hex()
    return tuple(map(integer_in_range, value)) if isinstance(value, list) else integer_in_range(value)


def _ids(*parts: object) -> tuple[int, int]:
    """Return a trace id and a span id, never 0, which OpenTelemetry does not allow."""
    digest = blake2b(repr(parts).encode("utf-8", "backslashreplace"), digest_size=24).digest()
    return int.from_bytes(digest[:16], "big") or 1, int.from_bytes(digest[16:], "big") or 1
