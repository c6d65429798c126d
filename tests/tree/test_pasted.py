"""Calls whose name is pasted where they stand: which event they are depends on who includes them."""

from __future__ import annotations

from pathlib import Path

import pytest

import tracepoint as tp
from oracles import kernel_sources
from pace import fewer_turns
from tracepoint.tree.cache import cache_folder
from tracepoint.tree.callsites.calls import SiteKind
from tracepoint.tree.callsites.pasted import find_pastes, fired_by_pastes, is_pasting
from tracepoint.tree.index.build import build_index
from tracepoint.tree.query.tree import Tree

SHARED = """\
static inline void say_event(int a)
{
	if (!CONCATENATE(CONCATENATE(trace_event_, MONITOR), _enabled)())
		return;
	CONCATENATE(trace_event_, MONITOR)(a,
		g(a));
	/* CONCATENATE(trace_error_, MONITOR)(a); */
}
"""
FILES = {
    "include/mon/base.h": SHARED,
    "include/mon/more.h": "#include <mon/base.h>\nvoid f(void)\n{\n\tCONCATENATE(trace_error_, MONITOR)(1);\n}\n",
    "kernel/mon/one/one.h": "#define MONITOR one\n",
    "kernel/mon/one/one.c": '#include <linux/other.h>\n#include "one.h"\n#include <mon/base.h>\n',
    "kernel/mon/two/two.h": "#define MONITOR two\n",
    "kernel/mon/two/two.c": '#include "two.h"\n#include <mon/more.h>\n',
    "kernel/mon/three/three.h": "#define MONITOR three\n",
    "kernel/mon/three/three.c": '#include "three.h"\n',
}
NAMES = {f"{kind}_{name}" for kind in ("event", "error") for name in ("one", "two", "three")}
EVENT = """DEFINE_EVENT(mon, {name}, TP_PROTO(int a), TP_ARGS(a));
"""
TRACE = """\
#undef TRACE_SYSTEM
#define TRACE_SYSTEM mon
DECLARE_EVENT_CLASS(mon, TP_PROTO(int a), TP_ARGS(a), TP_STRUCT__entry(__field(int, a)),
	TP_fast_assign(__entry->a = a;), TP_printk("%d", __entry->a));
"""


def fired() -> dict[str, list[tuple[str, str, int, str]]]:
    pastes = [paste for path, text in FILES.items() for paste in find_pastes(path, text)]
    sources = [path for path in FILES if path.endswith(".c")]
    found = fired_by_pastes(pastes, sources, lambda path: FILES.get(path, ""), NAMES)
    return {path: [(s.kind, s.event, s.line, s.function) for s in sites] for path, sites in found.items()}


def test_each_includer_fires_its_own_event() -> None:
    assert fired() == {
        "include/mon/base.h": [
            (SiteKind.CALL, "event_one", 5, "say_event"),
            (SiteKind.CALL, "event_two", 5, "say_event"),
            (SiteKind.ENABLED, "event_one", 3, "say_event"),
            (SiteKind.ENABLED, "event_two", 3, "say_event"),
        ],
        "include/mon/more.h": [(SiteKind.CALL, "error_two", 4, "f")],
    }


def test_text_of_a_call() -> None:
    texts = [paste.site.text for paste in find_pastes("a.h", SHARED) if paste.site.kind is SiteKind.CALL]
    assert texts == ["CONCATENATE(trace_event_, MONITOR)(a, g(a))"]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "linux"
    trace = TRACE + "".join(EVENT.format(name=name) for name in sorted(NAMES))
    for path, text in {**FILES, "kernel/mon/mon_trace.h": trace, "include/linux/tracepoint.h": ""}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def unused(root: Path) -> list[str]:
    return [event.name for event in tp.open_tree(root).unused_events()]


def test_the_index_follows_the_includers(tree: Path) -> None:
    assert unused(tree) == ["error_one", "error_three", "event_three"]
    (tree / "kernel/mon/three/three.c").write_text('#include "three.h"\n#include <mon/more.h>\n')
    assert unused(tree) == ["error_one"]
    (tree / "kernel/mon/one/one.h").unlink()
    assert unused(tree) == ["error_one", "event_one"]
    sites = tp.open_tree(tree).call_sites("mon:event_two")
    assert [(str(s.span), s.via) for s in sites] == [("include/mon/base.h:5:2", "CONCATENATE")]


def test_headers_that_include_each_other_end(tree: Path) -> None:
    (tree / "include/mon/more.h").write_text('#include <mon/more.h>\n#include "more.h"\n' + SHARED * 2000)
    (tree / "kernel/mon/two/two.h").write_text('#include "two.h"\n' + "#define MONITOR two\n" * 20_000)
    with fewer_turns(400):
        index = Tree.of(build_index(str(tree), jobs=1)[0])
    assert index.call_sites("mon:event_two")


@pytest.mark.oracle
def test_monitors_of_the_newest_kernel() -> None:
    shared = "include/rv/da_monitor.h"
    trees = [cache_folder() / "sources" / name for name in kernel_sources()]
    roots = [
        root
        for root in trees
        if (root / shared).is_file() and "CONCATENATE(trace_" in (root / shared).read_text()
    ]
    if not roots:
        pytest.skip(
            "no kernel source whose monitors share functions: `make test` as root fetches a newer one"
        )
    tree = tp.open_tree(roots[-1])
    assert [event.full_name for event in tree.unused_events() if event.system == "rv"] == []
    functions = {site.function for site in tree.call_sites("rv:error_pagefault")}
    assert functions == {"ltl_illegal_state"}
    assert {site.function for site in tree.call_sites("rv:event_wip")} == {"da_trace_event"}


@pytest.mark.parametrize("part", ["CONCAT", "CONCAT(trace_a, ", "PASTE "])
def test_endless_words_take_no_time(part: str) -> None:
    text = "void f(void)\n{\n" + part * 30_000 + "\n}\n"
    with fewer_turns(200):
        is_pasting(text.encode())
        find_pastes("a.h", text)
