"""Spans of OpenTelemetry as events: the processor that `TracerProvider.add_span_processor()` takes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tracepoint.model.python.types import string_t, u8, u64  # noqa: TC001 - events read them from annotations
from tracepoint.runtime.bridges.log_records import bounded_text, pairs_text
from tracepoint.runtime.declare.event import trace_event
from tracepoint.runtime.hierarchy import tracing

if TYPE_CHECKING:
    from tracepoint.runtime.hierarchy import Tracing


# A record has 4072 bytes: room for a name, a description and a scope beside the attributes.
_MAX_NAME = 600
_MAX_SCOPE = 100
_MAX_ATTRIBUTES = 2400


class TraceSpanProcessor:
    """Fires `otel:span_start` and `otel:span_end` for each recorded span.

    Both have `trace_id` (32 hexadecimal digits), `span_id`, `parent_id`, 0 for none, and `name`.  The end has
    all of the span but its events and links: `start_ns` since 1970, `duration_ns`, `kind`, `status`, and the
    attributes as text, `http.route='/' n=3`; `tp.export_spans()` makes spans of it again.  While both are
    off no text is made.  It needs no package of OpenTelemetry itself.  `tracing` is the hierarchy that gets
    the events.

    >>> processor = TraceSpanProcessor()
    >>> processor.force_flush()
    True
    """

    def __init__(self, *, tracing: Tracing = tracing) -> None:
        start = '"trace=%s span=%llx parent=%llx %s", trace_id, span_id, parent_id, name'
        fields = "trace_id, span_id, name, duration_ns, status, attributes"
        end = f'"trace=%s span=%llx %s took=%lluns %s %s", {fields}'
        make = partial(trace_event, system="otel", tracing=tracing)
        self._start: Any = make(name="span_start", printk=start)(_started)
        self._end: Any = make(name="span_end", printk=end)(_ended)

    def __repr__(self) -> str:
        return f"<TraceSpanProcessor, {'on' if self._start or self._end else 'off'}>"

    def on_start(self, span: Any, parent_context: object = None) -> None:
        """Fire the start."""
        del parent_context
        if self._start:
            own, parent = span.get_span_context(), span.parent
            parent_id = parent.span_id if parent is not None else 0
            name = bounded_text(lambda: str(span.name))
            self._start(f"{own.trace_id:032x}", own.span_id, parent_id, name)

    def on_end(self, span: Any) -> None:
        """Fire the end."""
        if self._end:
            own, parent, scope = span.get_span_context(), span.parent, span.instrumentation_scope
            start, status = span.start_time or 0, span.status
            self._end(
                f"{own.trace_id:032x}",
                own.span_id,
                _text(span.name, _MAX_NAME),
                max((span.end_time or 0) - start, 0),
                status.status_code.name,
                pairs_text(span.attributes or {}, _MAX_ATTRIBUTES),
                start,
                0 if parent is None else parent.span_id,
                parent is not None and parent.is_remote,
                own.trace_flags,
                span.kind.name,
                _text(status.description or "", _MAX_NAME),
                _text(scope.name if scope is not None else "", _MAX_SCOPE),
            )

    def _on_ending(self, span: Any) -> None:
        """Do nothing: the SDK calls it since 1.29, while attributes may still be set."""

    def shutdown(self) -> None:
        """Do nothing: rings keep what was recorded."""

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Return True: an event is recorded when it fires, so nothing waits."""
        del timeout_millis
        return True


def _started(trace_id: string_t, span_id: u64, parent_id: u64, name: string_t) -> None:
    del trace_id, span_id, parent_id, name


def _text(value: object, room: int) -> bytes:
    return bounded_text(lambda: str(value))[:room]


def _ended(  # noqa: PLR0917 - the fields of a span
    trace_id: string_t,
    span_id: u64,
    name: string_t,
    duration_ns: u64,
    status: string_t,
    attributes: string_t,
    start_ns: u64,
    parent_id: u64,
    parent_is_remote: u8,
    trace_flags: u8,
    kind: string_t,
    description: string_t,
    scope: string_t,
) -> None:
    del trace_id, span_id, name, duration_ns, status, attributes, start_ns, parent_id, parent_is_remote
    del trace_flags, kind, description, scope
