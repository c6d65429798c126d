"""A span as both sources of them give it: the events of `TraceSpanProcessor`, and pairs of events."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class FoundSpan:
    """A span of a trace; `begin` and `end` are times of the trace's clock in ns, of the thread `tid`.

    `start_ns` and `end_ns` are ns since 1970; `parent_id` is 0 for a span without a parent, `trace_flags` 1
    for one that is sampled.  `kind` and `status` are names of OpenTelemetry's `SpanKind` and `StatusCode`.
    """

    trace_id: int
    span_id: int
    name: str
    start_ns: int
    end_ns: int
    tid: int
    begin: int
    end: int
    attributes: dict[str, object]
    parent_id: int = 0
    parent_is_remote: bool = False
    trace_flags: int = 1
    kind: str = "INTERNAL"
    status: str = "UNSET"
    description: str = ""
    scope: str = "tracepoint"


@dataclass(slots=True)
class SpanCounts:
    """What `export_spans` made of a trace, and what it could not.

    `n_spans` were exported, `n_incomplete` of them without all of their attributes.  Left out were `n_open`
    begins without an end, `n_cut` whose end a loss may hide, `n_orphans` ends without a begin, and
    `n_invalid` ends of spans whose ids, kind or status are not OpenTelemetry's.  `lost` are the events that
    each CPU lost, as `Trace.lost` has them.
    """

    n_spans: int = 0
    n_incomplete: int = 0
    n_open: int = 0
    n_cut: int = 0
    n_orphans: int = 0
    n_invalid: int = 0
    lost: dict[int, int] = field(default_factory=dict)
