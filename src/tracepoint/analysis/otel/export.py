"""Spans of a trace for an exporter of OpenTelemetry."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from tracepoint.analysis.otel.bridge import END, read_bridge
from tracepoint.analysis.otel.named import SpanPair, read_pair
from tracepoint.analysis.otel.parents import link_parents
from tracepoint.analysis.otel.span import SpanCounts
from tracepoint.decode.libraries import import_library
from tracepoint.errors import TracepointError
from tracepoint.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tracepoint.analysis.otel.span import FoundSpan
    from tracepoint.decode.trace import Trace

# What the SDK's own processor gives an exporter at once.
_BATCH = 512


def export_spans(
    trace: Trace,
    exporter: Any,
    pairs: Iterable[SpanPair | tuple[str, ...]] = (),
    *,
    epoch_ns: int | None = None,
    resource: Any = None,
) -> SpanCounts:
    """Give an exporter of OpenTelemetry's SDK the spans of a trace; return how many, and what was left out.

    They are those that `TraceSpanProcessor` recorded, with their own ids, times and attributes, and one for
    each begin and end of `pairs`, `(BEGIN, END, KEY)` or `SpanPair`, whose fields are its attributes, and
    whose parent is the innermost span of its thread that holds it.  `epoch_ns` is the time in ns since 1970
    at which the trace's clock was 0; without it, it is computed from the recorded spans.  `resource` is what
    the spans are of (the SDK's `Resource`).  The exporter is not shut down.

    Raises TracepointError without the SDK (`tracepoint[otel]`), where there are no such events, where
    `epoch_ns` is needed, and when the exporter fails.

    >>> import tracepoint as tp
    >>> from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    >>> exporter = InMemorySpanExporter()
    >>> with tp.open_trace("tests/tracefile/golden/cut.v6.dat") as trace:
    ...     pair = ("sched_waking", "sched_switch", "pid=next_pid")
    ...     counts = export_spans(trace, exporter, [pair], epoch_ns=0)
    >>> counts.n_spans, exporter.get_finished_spans()[0].name
    (2, 'sched_waking')
    """
    sdk = _Sdk(resource)
    named = [SpanPair(*pair) for pair in pairs]
    if not named and END not in trace:
        raise TracepointError(
            f"{trace.file.path}: no {END}: record it with TraceSpanProcessor, or name pairs of events"
        )
    counts = SpanCounts(lost=trace.lost)
    found = read_bridge(trace, sdk.kinds, sdk.statuses, counts)
    if named:
        zero = _epoch_of(trace, found) if epoch_ns is None else epoch_ns
        made = [span for pair in named for span in read_pair(trace, pair, zero, counts)]
        link_parents(made, found)
        found += made
    for batch in _batches(found):
        result = exporter.export([sdk.span(one) for one in batch])
        if result != sdk.success:
            raise TracepointError(
                f"{trace.file.path}: the exporter failed ({result}) after {counted(counts.n_spans, 'span')}"
            )
        counts.n_spans += len(batch)
    return counts


def _epoch_of(trace: Trace, spans: Sequence[FoundSpan]) -> int:
    """Return the time since 1970 at which the trace's clock was 0, by spans whose times are known in both."""
    if trace.clock == "counter":
        raise TracepointError(f"{trace.file.path}: the clock 'counter' counts events and has no times")
    if not spans:
        clock = trace.clock or "of this trace"
        raise TracepointError(
            f"{trace.file.path}: the clock {clock} does not count from 1970: give epoch_ns, such as "
            "time.time_ns() - time.monotonic_ns() on the machine that recorded"
        )
    # The event follows the end that it tells of: the least delay is nearest.
    return max(span.end_ns - span.end for span in spans)


def _batches(spans: Iterable[FoundSpan]) -> Iterator[Sequence[FoundSpan]]:
    rest = iter(spans)
    while batch := list(islice(rest, _BATCH)):
        yield batch


class _Sdk:
    """The parts of OpenTelemetry's SDK that make spans; raises TracepointError where it is not installed."""

    def __init__(self, resource: Any) -> None:
        self._api = import_library("opentelemetry.trace", "otel")
        self._trace = import_library("opentelemetry.sdk.trace", "otel")
        self._scope = import_library("opentelemetry.sdk.util.instrumentation", "otel").InstrumentationScope
        self.kinds = self._api.SpanKind.__members__
        self.statuses = self._api.StatusCode.__members__
        self.success = import_library("opentelemetry.sdk.trace.export", "otel").SpanExportResult.SUCCESS
        resources = import_library("opentelemetry.sdk.resources", "otel")
        self._resource = resources.Resource.create() if resource is None else resource

    def span(self, found: FoundSpan) -> Any:
        """Return a span as exporters take it."""
        status = self.statuses[found.status]
        # The SDK warns of a description of what did not fail.
        description = found.description or None if found.status == "ERROR" else None
        flags = found.trace_flags
        return self._trace.ReadableSpan(
            found.name,
            context=self._context(found.trace_id, found.span_id, flags, is_remote=False),
            parent=self._context(found.trace_id, found.parent_id, flags, is_remote=found.parent_is_remote)
            if found.parent_id
            else None,
            resource=self._resource,
            attributes=found.attributes,
            kind=self.kinds[found.kind],
            status=self._api.Status(status, description),
            start_time=found.start_ns,
            end_time=found.end_ns,
            instrumentation_scope=self._scope(found.scope),
        )

    def _context(self, trace_id: int, span_id: int, flags: int, *, is_remote: bool) -> Any:
        return self._api.SpanContext(trace_id, span_id, is_remote, self._api.TraceFlags(flags))
