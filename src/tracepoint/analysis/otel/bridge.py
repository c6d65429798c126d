"""The spans that `TraceSpanProcessor` recorded as events."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tracepoint.analysis.otel.attributes import read_attributes
from tracepoint.analysis.otel.span import FoundSpan
from tracepoint.errors import TracepointError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from tracepoint.analysis.otel.span import SpanCounts
    from tracepoint.decode.trace import Trace

START, END = "otel:span_start", "otel:span_end"
_NUMBERS = ("span_id", "start_ns", "duration_ns", "parent_id", "parent_is_remote", "trace_flags")
_TEXTS = ("trace_id", "name", "status", "attributes", "kind", "description", "scope")
_FIELDS = (*_NUMBERS, *_TEXTS, "common_pid", "common_timestamp")
# What OpenTelemetry's protocol has room for.
_TIMES = range(1 << 64)
_TRACE_ID = re.compile("[0-9a-f]{32}")


def read_bridge(
    trace: Trace, kinds: Collection[str], statuses: Collection[str], counts: SpanCounts
) -> list[FoundSpan]:
    """Return the spans that ended in a trace, by their ends; what is left out is counted.

    `kinds` and `statuses` are the names that OpenTelemetry has.  Raises TracepointError where the events lack
    a field.
    """
    if END not in trace:
        return []
    found = []
    starts = _starts(trace)
    for row in zip(*_columns(trace, END, _FIELDS), strict=True):
        values: dict[str, Any] = dict(zip(_FIELDS, row, strict=True))
        if _is_valid(values, kinds, statuses):
            begin = starts.pop((values["trace_id"], values["span_id"]), None)
            found.append(_span_of(values, begin, counts))
        else:
            counts.n_invalid += 1
    counts.n_open += len(starts)
    return found


def _starts(trace: Trace) -> dict[tuple[str, int], int]:
    """Return when each span began by the trace's clock, by its ids; none where that was not recorded."""
    if START not in trace:
        return {}
    trace_ids, span_ids, times = _columns(trace, START, ("trace_id", "span_id", "common_timestamp"))
    return dict(zip(zip(trace_ids, span_ids, strict=True), times, strict=True))


def _columns(trace: Trace, event: str, fields: Sequence[str]) -> list[list[Any]]:
    table = trace[event]
    if missing := [name for name in fields if name not in table.columns]:
        raise TracepointError(
            f"{trace.file.path}: {event} has no field {', '.join(missing)}: it is not an event of this "
            "version's TraceSpanProcessor"
        )
    return [table[name].in_utf8.tolist() for name in fields]


def _is_valid(values: dict[str, Any], kinds: Collection[str], statuses: Collection[str]) -> bool:
    """Return whether a record is that of a span: one cut off, or of another program, may not be."""
    return (
        None not in values.values()
        and _TRACE_ID.fullmatch(values["trace_id"]) is not None
        and int(values["trace_id"], 16) != 0
        and values["span_id"] != 0
        and values["start_ns"] + values["duration_ns"] in _TIMES
        and values["kind"] in kinds
        and values["status"] in statuses
    )


def _span_of(values: dict[str, Any], begin: int | None, counts: SpanCounts) -> FoundSpan:
    attributes, is_whole = read_attributes(values["attributes"])
    counts.n_incomplete += not is_whole
    start, duration, end = values["start_ns"], values["duration_ns"], values["common_timestamp"]
    return FoundSpan(
        trace_id=int(values["trace_id"], 16),
        span_id=values["span_id"],
        name=values["name"],
        start_ns=start,
        end_ns=start + duration,
        tid=values["common_pid"],
        begin=end - duration if begin is None else begin,
        end=end,
        attributes=attributes,
        parent_id=values["parent_id"],
        parent_is_remote=bool(values["parent_is_remote"]),
        trace_flags=values["trace_flags"],
        kind=values["kind"],
        status=values["status"],
        description=values["description"],
        scope=values["scope"],
    )
