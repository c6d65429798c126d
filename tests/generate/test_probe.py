"""Probe modules."""

from __future__ import annotations

import pytest

from generate.samples import TICK, header_of_text
from tracepoint.errors import GenerateError
from tracepoint.generate import probe_module
from tracepoint.tree.tracing_macros import TreeFacts

EVENT = header_of_text(TICK)["tick"]


def test_registers_with_private_data_and_waits_at_the_end() -> None:
    text = probe_module(EVENT, name="p", header='"demo_trace.h"')["p.c"]
    assert '#include "demo_trace.h"' in text
    assert "register_trace_tick(probe_hit, &probe_private)" in text
    body = text.partition("static void __exit")[2]
    order = [
        "debugfs_remove(",
        "unregister_trace_tick(",
        "tracepoint_synchronize_unregister();",
        "free_percpu(",
    ]
    assert sorted(order, key=body.index) == order
    assert "static void probe_hit(void *__data, int n, bool is_hot, const char *name," in text


def test_default_header_is_that_of_the_system() -> None:
    assert "#include <trace/events/demo.h>" in probe_module(EVENT, name="p")["p.c"]


def test_by_name_needs_no_header() -> None:
    text = probe_module(EVENT, name="p", by_name=True)["p.c"]
    assert 'if (!strcmp(point->name, "tick"))' in text
    assert "struct page;" in text
    assert "demo.h" not in text
    assert "tracepoint_probe_unregister(probe_private.point, (void *)probe_hit," in text


@pytest.mark.parametrize(
    ("has_suffix", "call"), [(False, "register_trace_bare("), (True, "register_trace_bare_tp(")]
)
def test_tracepoints(has_suffix: bool, call: str) -> None:
    (point,) = header_of_text("DECLARE_TRACE(bare, TP_PROTO(int n), TP_ARGS(n));").tracepoints
    text = probe_module(point, name="p", header="<x.h>", facts=TreeFacts(1, has_tp_suffix=has_suffix))["p.c"]
    assert call in text


def test_refused() -> None:
    (point,) = header_of_text("DECLARE_TRACE(bare, TP_PROTO(int n), TP_ARGS(n));").tracepoints
    with pytest.raises(GenerateError, match="is not a header to include"):
        probe_module(point, name="p")
    with pytest.raises(GenerateError, match="is not a header to include"):
        probe_module(EVENT, name="p", header='<a>\n#error "x"')
