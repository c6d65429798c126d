"""Spans of OpenTelemetry: those recorded as events come back equal, and pairs of events become some."""

import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracepoint as tp
from tracepoint.analysis.otel.attributes import read_attributes
from tracepoint.analysis.otel.parents import link_parents
from tracepoint.analysis.otel.span import FoundSpan
from tracepoint.errors import TracepointError
from tracepoint.model.python.types import u64
from tracepoint.runtime.bridges.log_records import pairs_text
from tracepoint.runtime.bridges.spans import TraceSpanProcessor
from tracepoint.runtime.declare.event import trace_event
from tracepoint.runtime.files.tree import ControlFiles
from tracepoint.runtime.fire import mechanism
from tracepoint.runtime.hierarchy import Tracing, switch_events
from tracepoint.runtime.rings.save import save

WHY = "opentelemetry-sdk is not installed: pip install 'tracepoint[otel]'"
api = pytest.importorskip("opentelemetry.trace", reason=WHY)
sdk = pytest.importorskip("opentelemetry.sdk.trace", reason=WHY)
export = pytest.importorskip("opentelemetry.sdk.trace.export", reason=WHY)
memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter", reason=WHY)

GOLDEN = "tests/tracefile/golden/cut.v6.dat"


class Service:
    """A program with OpenTelemetry and events of its own, recorded; `kept` are the spans as its SDK ends them."""

    def __init__(self):
        self.tracing = Tracing(mechanism.DEFAULT)
        self.tree = ControlFiles(self.tracing)
        self.kept = memory.InMemorySpanExporter()
        provider = sdk.TracerProvider(shutdown_on_exit=False)
        # The outer processor gets a span last: all that the bridge records is before.
        provider.add_span_processor(TraceSpanProcessor(tracing=self.tracing))
        provider.add_span_processor(export.SimpleSpanProcessor(self.kept))
        self.tracer = provider.get_tracer("shop")
        make = {"system": "app", "printk": '"id=%llu", request', "tracing": self.tracing}

        @trace_event(**make)
        def begin(request: u64) -> None: ...

        @trace_event(system="app", printk='"id=%llu wide=%llu", request, wide', tracing=self.tracing)
        def end(request: u64, wide: u64) -> None: ...

        self.begin, self.end = begin, end
        switch_events(self.tracing.events, self.tracing, is_on=True)

    def save(self, folder):
        target = folder / "service.dat"
        save(target, files=self.tree)
        switch_events(self.tracing.events, self.tracing, is_on=False)
        return target


@pytest.fixture
def service():
    made = Service()
    yield made
    switch_events(made.tracing.events, made.tracing, is_on=False)


def exported(path, *args, **options):
    exporter = memory.InMemorySpanExporter()
    with tp.open_trace(path) as trace:
        counts = tp.export_spans(trace, exporter, *args, **options)
    return counts, list(exporter.get_finished_spans())


def essence(span):
    """All of a span that the events have."""
    parts = (span.name, span.context, span.parent, span.kind, span.start_time, span.end_time)
    state = (span.status.status_code, span.status.description, span.instrumentation_scope.name)
    return *parts, *state, dict(span.attributes)


def test_spans_come_back_equal(service, tmp_path):
    attributes = {
        "http.route": "/",
        "n": -3,
        "ratio": 0.25,
        "huge": float("-inf"),
        "ok": True,
        "odd key=": 'it\'s "so" \\ (a=1 b=2',
        "names": ("ä", "b c"),
        "empty": "",
        "flags": [True, False],
    }
    link = api.SpanContext(0xABC, 0xDEF, is_remote=True, trace_flags=api.TraceFlags(1))
    remote = api.set_span_in_context(api.NonRecordingSpan(link))
    with service.tracer.start_as_current_span("order", remote, api.SpanKind.SERVER, attributes=attributes):
        with service.tracer.start_as_current_span("pay", kind=api.SpanKind.CLIENT):
            pass
        with pytest.raises(LookupError), service.tracer.start_as_current_span("ship"):
            raise LookupError("no ship")
    service.tracer.start_span("exact", start_time=1_700_000_000_123_456_789).end(1_700_000_000_123_456_790)
    service.tracer.start_span("open")
    counts, spans = exported(service.save(tmp_path))
    assert [essence(span) for span in spans] == [essence(span) for span in service.kept.get_finished_spans()]
    assert [span.name for span in spans] == ["pay", "ship", "order", "exact"]
    assert (counts.n_spans, counts.n_open, counts.n_incomplete, counts.n_invalid) == (4, 1, 0, 0)


def test_attributes_that_were_cut_are_counted(service, tmp_path):
    with service.tracer.start_as_current_span("order", attributes={"n": 3, "long": "x" * 9000}):
        pass
    counts, (span,) = exported(service.save(tmp_path))
    assert (counts.n_spans, counts.n_incomplete) == (1, 1)
    assert dict(span.attributes) == {"n": 3}


def test_pairs_are_in_the_spans_of_their_thread(service, tmp_path):
    service.begin(7)
    with service.tracer.start_as_current_span("order") as order:
        service.begin(1)
        service.begin(2)
        service.end(2, (1 << 64) - 1)
        service.end(1, 5)
    service.end(7, 0)
    service.end(8, 0)
    service.begin(9)
    before, after = order.start_time, order.end_time
    counts, spans = exported(service.save(tmp_path), [tp.SpanPair("begin", "end", "request", name="step")])
    named = {span.attributes["request"]: span for span in spans if span.name == "step"}
    (own,) = (span for span in spans if span.name == "order")
    assert list(named) == [7, 1, 2]
    assert (counts.n_spans, counts.n_open, counts.n_orphans, counts.n_cut) == (4, 1, 1, 0)
    assert named[7].parent is None
    assert named[1].parent.span_id == own.context.span_id
    assert named[2].parent.span_id == named[1].context.span_id
    assert {named[n].context.trace_id for n in (1, 2)} == {own.context.trace_id}
    assert named[2].attributes["wide"] == "0xffffffffffffffff"
    assert named[1].attributes["wide"] == 5
    # The clocks are joined where a span ends: up to the time that the event takes to fire.
    assert before - 5_000_000 < named[1].start_time <= named[1].end_time < after + 5_000_000


def test_times_of_pairs_are_exact(service, tmp_path):
    service.begin(1)
    service.end(1, 5)
    path = service.save(tmp_path)
    pair = ("app:begin", "app:end", "request")
    with tp.open_trace(path) as trace:
        first, last = (trace[name]["common_timestamp"].tolist()[0] for name in pair[:2])
    zero = time.time_ns()
    _, (span,) = exported(path, [pair], epoch_ns=zero)
    assert (span.start_time, span.end_time) == (zero + first, zero + last)
    assert dict(span.attributes) == {
        "thread.id": span.attributes["thread.id"],
        "thread.name": span.attributes["thread.name"],
        "request": 1,
        "wide": 5,
    }
    named = exported(path, [(*pair, "last", "request {request} {nothing}")], epoch_ns=zero)[1][0]
    assert named.name == "request 1 {nothing}"
    again = exported(path, [pair], epoch_ns=zero)[1][0]
    assert again.context == span.context
    with pytest.raises(TracepointError, match="does not count from 1970: give epoch_ns"):
        exported(path, [pair])


def test_failures_say_what_to_do(service, tmp_path):
    class Failing:
        def export(self, spans):
            return export.SpanExportResult.FAILURE

    with pytest.raises(TracepointError, match="no otel:span_end: record it with TraceSpanProcessor"):
        exported(GOLDEN)
    with service.tracer.start_as_current_span("order"):
        pass
    with (
        tp.open_trace(service.save(tmp_path)) as trace,
        pytest.raises(
            TracepointError, match=r"the exporter failed \(SpanExportResult.FAILURE\) after 0 spans"
        ),
    ):
        tp.export_spans(trace, Failing())


def test_without_the_sdk_it_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    with pytest.raises(
        TracepointError, match=r"opentelemetry is not installed: pip install 'tracepoint\[otel\]'"
    ):
        exported(GOLDEN)


def test_events_of_other_programs_are_counted(tmp_path):
    tracing = Tracing(mechanism.DEFAULT)
    provider = sdk.TracerProvider(shutdown_on_exit=False)
    processor = TraceSpanProcessor(tracing=tracing)
    provider.add_span_processor(processor)
    switch_events(tracing.events, tracing, is_on=True)
    good = ["0" * 31 + "1", 1, "name", 5, "UNSET", "", 7, 0, 0, 1, "SERVER", "", "scope"]
    bad = [(0, "x" * 32), (0, "0" * 32), (1, 0), (4, "FINE"), (6, (1 << 64) - 1), (10, "OTHER")]
    processor._end(*good)
    for place, value in bad:
        processor._end(*good[:place], value, *good[place + 1 :])
    target = tmp_path / "other.dat"
    save(target, files=ControlFiles(tracing))
    switch_events(tracing.events, tracing, is_on=False)
    counts, spans = exported(target)
    assert (counts.n_spans, counts.n_invalid) == (1, len(bad))
    assert (spans[0].start_time, spans[0].end_time) == (7, 12)


SCALARS = st.one_of(
    st.text(max_size=20),
    st.booleans(),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.floats(allow_nan=False),
)
VALUES = SCALARS | st.lists(SCALARS, max_size=4).map(tuple)


@given(st.dictionaries(st.text(min_size=1, max_size=9), VALUES, max_size=5))
def test_attributes_are_read_as_they_were_written(attributes):
    text = pairs_text(attributes, 100_000).decode()
    assert read_attributes(text) == (attributes, True)


@given(st.dictionaries(st.text(min_size=1, max_size=9), VALUES, min_size=1, max_size=5), st.data())
def test_attributes_that_were_cut_have_no_other_values(attributes, data):
    room = len(pairs_text(attributes, 100_000))
    if room < 4:
        return
    text = pairs_text(attributes, data.draw(st.integers(3, room - 1))).decode(errors="replace")
    found, is_whole = read_attributes(text)
    assert not is_whole
    assert found.items() <= attributes.items()


@given(st.text(st.sampled_from("ab='\"\\([{)]}., -1nN")) | st.text())
def test_no_text_is_refused(text):
    found, _ = read_attributes(text)
    assert isinstance(found, dict)


def test_deep_texts_are_left_out():
    for text in ("a=" + "(" * 4000, "a=" + "-" * 4000 + "1", "a=" + "9" * 5000, "a=b", "a=1+2j", "a={**1}"):
        assert read_attributes(text) == ({}, False), text


def span(begin, end, span_id, tid=1):
    return FoundSpan(span_id, span_id, "s", 0, 0, tid, begin, end, {})


def test_parents_hold_all_of_their_spans():
    spans = [
        span(0, 100, 1),
        span(10, 50, 2),
        span(20, 60, 3),
        span(30, 40, 4),
        span(60, 70, 5),
        span(30, 40, 6, 2),
    ]
    link_parents(spans, [span(0, 200, 9)])
    assert [one.parent_id for one in spans] == [9, 1, 1, 3, 1, 0]
    assert {one.trace_id for one in spans} == {9, 6}
