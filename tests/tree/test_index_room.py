"""What building an index costs: room that is given back, and few words to search files for."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path

from tracepoint.tree.callsites.macros import HiddenCalls, Hider
from tracepoint.tree.headers import paused_collector
from tracepoint.tree.index import build as index
from tracepoint.tree.index.scan import list_files, read_bytes

SMALL = Path(__file__).parent / "small"


def test_what_reading_a_header_leaves_is_freed_at_once() -> None:
    headers = [path for path in list_files(str(SMALL)) if path.startswith("include/trace/events/")]
    index._indexer.cache_clear()
    with paused_collector():
        gc.collect()
        assert index._read_headers(str(SMALL), headers, ())
        # Dozens for each header are in a circle; without a collector they would stay to the end.
        assert gc.collect() < 10


def test_reading_a_file_takes_room_for_that_file_only() -> None:
    tracemalloc.start()
    try:
        assert read_bytes(str(SMALL), "kernel/probe.c")
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_names_of_macros_are_searched_by_what_they_share() -> None:
    names = ["DECLARE_MON_GLOBAL", "DECLARE_MON_PER_CPU", "trace_foo_grow"]
    hiders = [Hider("include/x.h", name, f"{name} trace_foo()", 1, "") for name in names]
    hidden = HiddenCalls(hiders, {"foo"})
    assert list(hidden._usable("mm/a.c", has_trace=False)) == [
        ([b"DECLARE_MON_GLOBAL", b"DECLARE_MON_PER_CPU"], [b"DECLARE_MON_"])
    ]
    assert hidden.may_hold("mm/a.c", b"DECLARE_MON_PER_CPU(x)")
    assert not hidden.may_hold("mm/a.c", b"DECLARE_MON_OTHER(x)")
    assert hidden.may_hold("mm/a.c", b"trace_foo_grow(x)")


def test_only_a_whole_word_is_the_use_of_a_macro() -> None:
    hidden = HiddenCalls([Hider("mm/a.h", "FIRE", "FIRE(x) trace_foo(x)", 1, "mm/")], {"foo"})
    text = "void f(void)\n{\n\tFIREWALL(1);\n\tA_FIRE(2);\n}\n"
    assert not list(hidden.find("mm/a.c", text))
    found = list(hidden.find("mm/a.c", text.replace("A_FIRE", "FIRE")))
    assert [(site.event, site.line) for site in found] == [("foo", 4)]
