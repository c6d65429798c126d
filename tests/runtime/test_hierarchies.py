"""Hierarchies beside that of the process: each has its own events, instances and control files."""

import pytest

import tracepoint as tp
from tracepoint.runtime.files.tree import ControlFiles, process_files
from tracepoint.runtime.fire.mechanism import PURE
from tracepoint.runtime.hierarchy import Tracing


def declare(tracing, system="two"):
    @tp.trace_event(system=system, printk='"%u", n', tracing=tracing)
    def same(n: tp.u32) -> None: ...

    return same


def numbers(tracing):
    return [int.from_bytes(record.data[8:12], "little") for record in tracing.records()]


def test_each_has_its_own_events_and_records():
    first, second = Tracing(), Tracing(PURE)
    ours, theirs = declare(first), declare(second)
    assert first["two:same"].tracepoint is ours
    assert second["two:same"].tracepoint is theirs
    first["two"].enable()
    ours(1)
    theirs(2)
    theirs.enable()
    theirs(3)
    assert (numbers(first), numbers(second)) == ([1], [3])
    with pytest.raises(KeyError):
        tp.tracing["two:same"]


def test_an_instance_looks_events_up_in_its_hierarchy():
    tracing = Tracing()
    event = declare(tracing)
    mine = tracing.make_instance("mine")
    mine["two"].enable()
    event(1)
    assert (numbers(mine), numbers(tracing), mine.enabled_events) == ([1], [], ["two:same"])
    assert (mine.state, tracing.state) == ("1", "0")


def test_a_class_and_synthetic_events_are_in_theirs():
    first, second = Tracing(), Tracing()

    class Tick(tp.TraceEvent, system="two", tracing=first):
        n: tp.u32
        printk = '"%u", n'

    assert first[Tick.full_name].tracepoint is Tick
    files = ControlFiles(first)
    files.write_text("synthetic_events", "lat u64 lat")
    assert first["synthetic:lat"].system == "synthetic"
    for other in (ControlFiles(second), process_files()):
        assert other.read_text("synthetic_events") == ""
    assert second.events == ()


def test_headers_too(tmp_path):
    path = tmp_path / "toy.h"
    path.write_text(
        "#undef TRACE_SYSTEM\n#define TRACE_SYSTEM toy\n#include <linux/tracepoint.h>\n"
        "DECLARE_TRACE(toy_bare, TP_PROTO(int n), TP_ARGS(n));\n#include <trace/define_trace.h>\n"
    )
    first, second = Tracing(), Tracing()
    loaded = [tp.load(path, tracing=tracing)["toy_bare"] for tracing in (first, second, second)]
    assert loaded[0] is not loaded[1]
    assert loaded[1] is loaded[2]
    assert first.tracepoint("toy_bare") is loaded[0]
