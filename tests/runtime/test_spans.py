"""Spans of OpenTelemetry as events, with its SDK."""

import pytest

from tracepoint.runtime.bridges.spans import TraceSpanProcessor
from tracepoint.runtime.files.tree import ControlFiles

sdk = pytest.importorskip(
    "opentelemetry.sdk.trace", reason="opentelemetry-sdk is not installed: pip install opentelemetry-sdk"
)


@pytest.fixture
def tracer(runtime):
    provider = sdk.TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(TraceSpanProcessor(tracing=runtime.tracing))
    return provider.get_tracer("shop")


def bodies(tree):
    lines = tree.read_text("trace").splitlines()
    return [line.split(": ", 1)[1] for line in lines if not line.startswith("#")]


def test_spans_begin_and_end_as_events(runtime, tracer):
    tree = ControlFiles(runtime.tracing)
    with tracer.start_as_current_span("not seen"):
        pass
    tree.write_text("events/otel/enable", "1")
    attributes = {"http.route": "/", "n": 3}
    with (
        tracer.start_as_current_span("order", attributes=attributes) as outer,
        tracer.start_as_current_span("pay") as inner,
    ):
        pass
    own, child = outer.get_span_context(), inner.get_span_context()
    trace = f"trace={own.trace_id:032x}"
    took = [span.end_time - span.start_time for span in (inner, outer)]
    assert [body.rstrip() for body in bodies(tree)] == [
        f"span_start: {trace} span={own.span_id:x} parent=0 order",
        f"span_start: {trace} span={child.span_id:x} parent={own.span_id:x} pay",
        f"span_end: {trace} span={child.span_id:x} pay took={took[0]}ns UNSET",
        f"span_end: {trace} span={own.span_id:x} order took={took[1]}ns UNSET http.route='/' n=3",
    ]
    assert runtime.tracing.faults[0] == 0


def test_long_names_and_failures_are_kept(runtime, tracer):
    tree = ControlFiles(runtime.tracing)
    tree.write_text("events/otel/span_end/enable", "1")
    with (
        pytest.raises(LookupError),
        tracer.start_as_current_span("n" * 9000, attributes={"long": "x" * 9000}),
    ):
        raise LookupError
    (body,) = bodies(tree)
    assert "n" * 600 + " took=" in body
    assert "ns ERROR long='xxx" in body
    assert runtime.tracing.faults[0] == 0
