"""Whole kernel trees are read, and the names are those of a booted kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oracles import (
    data_file,
    kernel_source,
    kernel_sources,
    lend_headers,
    modules_of,
    package_with_modules,
    wrongly_missing,
)
from tracepoint.diagnostics import Severity
from tracepoint.layout.objects import read_object

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.model.event import TraceHeader

pytestmark = pytest.mark.oracle

NEWER = [name for name in kernel_sources() if name not in {"linux-source-6.1", "linux-source-6.12"}]
EVERY_TREE = pytest.mark.parametrize(
    "headers", ["linux-source-6.1", "linux-source-6.12", *NEWER], indirect=True
)
OF_6_1 = pytest.mark.parametrize("headers", ["linux-source-6.1"], indirect=True)
#: The booted kernel of the recorded data.
RECORDED = "6.1.187"


@pytest.fixture(scope="module")
def headers(request: pytest.FixtureRequest) -> Iterator[list[TraceHeader]]:
    """All headers of one source at a time."""
    yield from lend_headers(kernel_source(request.param))


@EVERY_TREE
def test_every_header_is_understood(headers: list[TraceHeader]) -> None:
    assert sum(bool(h.system) for h in headers) >= 340
    assert sum(len(h.events) for h in headers) >= 5000
    found = [d for h in headers for d in h.diagnostics if d.severity is Severity.ERROR]
    assert [str(d) for d in found] == []


@OF_6_1
def test_all_events_of_a_booted_kernel_are_found(headers: list[TraceHeader]) -> None:
    names = set(data_file("available_events").read_text().split())
    wanted = {name for name in names if not name.startswith("syscalls:")}
    known = {event.full_name for header in headers for event in header.events}
    assert len(wanted) == 628
    assert wrongly_missing(wanted - known, kernel_source(), RECORDED) == []


@OF_6_1
def test_all_events_of_debian_modules_are_found(headers: list[TraceHeader]) -> None:
    known = {event.full_name for header in headers for event in header.events}
    pattern = "linux-image-6.1.0-*-amd64_*"
    objects = [data for data in modules_of(pattern) if b"_ftrace_events" in data]
    named = {f"{f.system}:{f.name}" for data in objects for f in read_object(data)}
    assert len(objects) > 100
    assert len(named) > 3400
    version = package_with_modules(pattern).name.rpartition("_")[2]
    assert wrongly_missing(named - known, kernel_source(), version) == []
    assert len(named - known) < 0.01 * len(named)


@OF_6_1
def test_what_came_out_of_a_macro_points_into_its_own_header(headers: list[TraceHeader]) -> None:
    for header in headers:
        assert header.source is not None
        for event in header.events:
            assert event.origin is not None
            span = event.origin.span
            assert span.path == header.path
            assert 1 <= span.line <= header.source.n_lines
