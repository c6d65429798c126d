"""Whatever a header declares: a module comes out, or a GenerateError with the reason."""

from __future__ import annotations

import contextlib
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from generate.samples import one_event
from strategies import headers
from tracepoint.assign.inputs import find_inputs
from tracepoint.errors import TracepointError
from tracepoint.generate import bpf_counter, kernel_module, probe_module
from tracepoint.layout.compute import compute_layout
from tracepoint.model.event import Event
from tracepoint.model.read import read_header_text


def balanced(text: str) -> bool:
    bare = re.sub(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
    return all(bare.count(a) == bare.count(b) for a, b in ("()", "{}", "[]"))


def made(make):
    """What a maker makes; None where it refuses on purpose."""
    with contextlib.suppress(TracepointError):
        return make()
    return None


@settings(max_examples=examples(60))
@given(headers())
def test_modules_of_random_declarations(header) -> None:
    inputs = {}
    for event in header.events:
        try:
            inputs[event.full_name] = find_inputs(event, compute_layout(event))
        except TracepointError:
            inputs[event.full_name] = ()
    for more in ({}, {"inputs": inputs}, {"prefix": "p_", "system": "s"}):
        files = made(lambda more=more: kernel_module(header, name="m", **more))
        if files is None:
            continue
        assert balanced(files["m.c"])
        assert "@" not in files["m.c"]
        names = {event.name for event in read_header_text(files["m_trace.h"]).events}
        assert names == {more.get("prefix", "") + event.name for event in header.events}


@settings(max_examples=examples(60))
@given(headers())
def test_probes_and_programs_of_random_declarations(header) -> None:
    for item in (*header.events, *header.tracepoints):
        makers = [lambda item=item: probe_module(item, name="p", by_name=True)]
        if isinstance(item, Event):
            makers.append(lambda item=item: bpf_counter(item, name="p"))
        for make in makers:
            files = made(make)
            assert files is None or balanced(files["p.c"])


@given(st.text(alphabet="abn_ ->*&()[]{};=+?:\"'.,1\n", max_size=60))
def test_any_assignment_is_rewritten_or_refused(text: str) -> None:
    made(lambda: module_of_assignment(text))


def module_of_assignment(text: str):
    header = one_event("__field(int, a)", text)
    inputs = {event.full_name: find_inputs(event, compute_layout(event)) for event in header.events}
    return kernel_module(header, name="m", inputs=inputs)
