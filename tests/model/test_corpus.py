"""Whole kernel trees are read, and the names are those of a booted kernel."""

from __future__ import annotations

import functools

import pytest

from oracles import data_file, kernel_source, kernel_sources, modules_of
from tracepoint.diagnostics import Severity
from tracepoint.layout.objects import read_object
from tracepoint.model.event import TraceHeader
from tracepoint.tree.headers import HeaderReader, paused_collector
from tracepoint.tree.scan import find_headers

pytestmark = pytest.mark.oracle


@functools.cache
def headers_of(name: str) -> list[TraceHeader]:
    tree = kernel_source(name)
    reader = HeaderReader()
    with paused_collector():
        return [reader.read(path) for path in find_headers([str(tree)])]


NEWER = [name for name in kernel_sources() if name not in {"linux-source-6.1", "linux-source-6.12"}]


@pytest.mark.parametrize("name", ["linux-source-6.1", "linux-source-6.12", *NEWER])
def test_every_header_is_understood(name: str) -> None:
    headers = headers_of(name)
    assert sum(bool(h.system) for h in headers) >= 340
    assert sum(len(h.events) for h in headers) >= 5000
    found = [d for h in headers for d in h.diagnostics if d.severity is Severity.ERROR]
    assert [str(d) for d in found] == []


def test_all_events_of_a_booted_kernel_are_found() -> None:
    names = set(data_file("available_events").read_text().split())
    wanted = {name for name in names if not name.startswith("syscalls:")}
    known = {event.full_name for header in headers_of("linux-source-6.1") for event in header.events}
    assert len(wanted) == 628
    assert wanted - known == set()


def test_all_events_of_debian_modules_are_found() -> None:
    known = {event.full_name for header in headers_of("linux-source-6.1") for event in header.events}
    objects = [data for data in modules_of("linux-image-6.1.0-*-amd64_*") if b"_ftrace_events" in data]
    named = {f"{f.system}:{f.name}" for data in objects for f in read_object(data)}
    assert len(objects) > 100
    assert len(named) > 3400
    assert named - known == set()


def test_what_came_out_of_a_macro_points_into_its_own_header() -> None:
    for header in headers_of("linux-source-6.1"):
        assert header.source is not None
        for event in header.events:
            assert event.origin is not None
            span = event.origin.span
            assert span.path == header.path
            assert 1 <= span.line <= header.source.n_lines
