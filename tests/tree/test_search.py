"""Without an index, what one name is asked for is searched: the answers are those of the index, few files are read."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import tracepoint as tp
from oracles import kernel_source, kernel_sources
from tracepoint.cli.main import main
from tracepoint.tree.callsites.calls import SiteKind
from tracepoint.tree.declaring import is_made_of
from tracepoint.tree.index.build import build_index
from tracepoint.tree.query.opening import open_searched
from tracepoint.tree.query.search import SearchedTree
from tracepoint.tree.query.tree import Tree, TreeEvent

TRACE_EVENT = """TRACE_EVENT({name}, TP_PROTO(int a), TP_ARGS(a), TP_STRUCT__entry(__field(int, a)),
	TP_fast_assign(__entry->a = a;), TP_printk("%d", __entry->a));
"""
CLASS = """DECLARE_EVENT_CLASS({name}, TP_PROTO(int a), TP_ARGS(a), TP_STRUCT__entry(__field(int, a)),
	TP_fast_assign(__entry->a = a;), TP_printk("%d", __entry->a));
"""
#: Ways to declare and to call events that a search for the name alone would miss.
FILES = {
    "include/linux/tracepoint.h": "",
    "include/trace/events/pond.h": "#define TRACE_SYSTEM pond\n"
    + "".join(TRACE_EVENT.format(name=name) for name in ("pond_dive", "pond_dive_enabled", "pond_swim"))
    + "DECLARE_TRACE(pond_bare, TP_PROTO(int a), TP_ARGS(a));\n",
    "water/pond.c": "#define CREATE_TRACE_POINTS\n#include <trace/events/pond.h>\n"
    "EXPORT_TRACEPOINT_SYMBOL_GPL(pond_dive);\nEXPORT_TRACEPOINT_SYMBOL(pond_swim);\n"
    "void f(void)\n{\n\tif (trace_pond_dive_enabled())\n\t\ttrace_pond_dive(1);\n}\n",
    # A name pasted together by the header's own macro, and a call by one of another header.
    "water/trace.h": "#define TRACE_SYSTEM water\n"
    + CLASS.format(name="water_class")
    + "#define WATER(n) DEFINE_EVENT(water_class, water_##n##_done, TP_PROTO(int a), TP_ARGS(a));\n"
    "WATER(rise)\nWATER(fall)\n",
    "water/tide.h": "#define tide(n) trace_water_##n##_done(1)\n",
    "water/tide.c": '#define CREATE_TRACE_POINTS\n#include "trace.h"\n#include "tide.h"\n'
    "void ebb(void)\n{\n\ttide(fall);\n}\n",
    # By a macro of a file beside it that declares nothing.
    "land/wrap.h": "#define LAND(n) DEFINE_EVENT(land_class, land_##n, TP_PROTO(int a), TP_ARGS(a))\n",
    "land/trace.h": '#define TRACE_SYSTEM land\n#include "wrap.h"\n'
    + CLASS.format(name="land_class")
    + "LAND(slide);\n",
    "land/land.c": '#define CREATE_TRACE_POINTS\n#include "trace.h"\nvoid g(void)\n{\n\ttrace_land_slide(2);\n}\n',
    # Called by a macro of another name, in a file that has neither the event's name nor a paste.
    "land/quake.h": "#define trace_quake(n) trace_land_slide(n)\n",
    "land/quake.c": '#include "quake.h"\nvoid h(void)\n{\n\ttrace_quake(3);\n}\n',
    # In a part of a header, called by a name that is pasted together in a shared header.
    "kernel/watch/watch_trace.h": "#define TRACE_SYSTEM watch\n"
    + CLASS.format(name="event_class")
    + '#include "monitors/owl_trace.h"\n',
    "kernel/watch/monitors/owl_trace.h": "DEFINE_EVENT(event_class, event_owl, TP_PROTO(int a), TP_ARGS(a));\n",
    "kernel/watch/owl.c": "#define NAME owl\n#include <watch/shared.h>\n#define CREATE_TRACE_POINTS\n"
    '#include "watch_trace.h"\n',
    "include/watch/shared.h": "static void seen(void)\n{\n\tCONCATENATE(trace_event_, NAME)(1);\n}\n",
    "samples/custom.h": "#define TRACE_SYSTEM samples\nTRACE_CUSTOM_EVENT(pond_swim, TP_PROTO(int a), TP_ARGS(a),\n"
    '\tTP_STRUCT__entry(__field(int, a)), TP_fast_assign(__entry->a = a;), TP_printk("%d", __entry->a));\n',
    "fs/open.c": "SYSCALL_DEFINE1(close, unsigned int, fd)\n{\n}\nSYSCALL_DEFINE1(closer, int, fd)\n{\n}\n",
    "rust/pond.rs": "declare_trace! { unsafe fn pond_dive(a: c_int); }\nfn f() { pond_dive(1); }\n",
}
N_OTHERS = 30


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A tree of those, among headers and callers of other events."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    files = dict(FILES)
    for n in range(N_OTHERS):
        files[f"other/o{n}_trace.h"] = f"#define TRACE_SYSTEM other{n}\n" + TRACE_EVENT.format(
            name=f"other_{n}"
        )
        files[f"other/o{n}.c"] = f'#include "o{n}_trace.h"\nvoid f(void)\n{{\n\ttrace_other_{n}({n});\n}}\n'
    for path, text in files.items():
        (tmp_path / "linux" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "linux" / path).write_text(text)
    return str(tmp_path / "linux")


def refuse(_old: object) -> Tree:
    raise AssertionError("the whole tree is indexed")


def searched(root: str) -> SearchedTree:
    return SearchedTree(root, refuse, jobs=1)


def facts_of(tree: Tree, event: TreeEvent) -> list[Any]:
    """Everything that a tree says about an event but who mentions it."""
    declared = (
        event.full_name,
        event.header,
        event.span,
        event.macro,
        event.via,
        event.flags,
        event.class_name,
    )
    said = (event.params, event.fields, event.doc, event.condition, event.problem, event.format)
    return [declared, said, tree.creators(event.header), tree.exports(event)]


def answers(tree: Tree, name: str) -> list[Any]:
    events = tree.events(name)
    sites = [tree.call_sites(event, SiteKind) for event in events]
    return [[facts_of(tree, event) for event in events], sites, tree.call_sites(name), tree.tracepoints(name)]


def test_every_name_gets_the_answers_of_the_index(root: str) -> None:
    indexed = Tree.of(build_index(root, jobs=1)[0])
    names = {event.name for event in indexed.events()} | {name for name, _, _ in indexed.tracepoints()}
    assert {"water_fall_done", "land_slide", "event_owl", "pond_bare", "sys_enter_close"} <= names
    assert all(indexed.call_sites(name) for name in ("water_fall_done", "land_slide", "event_owl"))
    tree = searched(root)
    for name in [*sorted(names), "absent", "pond"]:
        assert answers(tree, name) == answers(indexed, name), name
        assert [str(e) for e in tree.events(f"pond:{name}")] == [
            str(e) for e in indexed.events(f"pond:{name}")
        ]


def test_every_system_gets_the_answers_of_the_index(root: str) -> None:
    indexed = Tree.of(build_index(root, jobs=1)[0])
    tree = searched(root)
    assert {"custom", "syscalls", "watch"} <= {*indexed.systems()}
    for system in [*indexed.systems(), "absent"]:
        pattern = f"{system}:"
        assert [facts_of(tree, e) for e in tree.events(pattern)] == [
            facts_of(indexed, e) for e in indexed.events(pattern)
        ], system


@pytest.mark.parametrize(
    ("name", "n_headers", "n_sources"),
    [
        ("other_7", 1, 1),
        ("water_fall_done", 1, 1),
        ("land_slide", 1, 2),
        ("absent", 0, 0),
        ("event_owl", 2, 0),
    ],
)
def test_only_the_files_with_the_name_are_read(root: str, name: str, n_headers: int, n_sources: int) -> None:
    tree = searched(root)
    answers(tree, name)
    (note,) = tree.notes
    n_files = len(FILES) + 2 * N_OTHERS
    # The macro in tide.h may fire any event of water/, and is read with each.
    read = f"{n_headers} headers and {n_sources + (name != 'water_fall_done')} C files read"
    assert note == f"{n_files} files: {n_files} searched, {read}"


def test_questions_about_all_events_make_the_index_once(root: str) -> None:
    tree = open_searched(root)
    assert isinstance(tree, SearchedTree)
    assert [event.full_name for event in tree.events("pond_swim")] == ["custom:pond_swim", "pond:pond_swim"]
    indexed = Tree.of(build_index(root, jobs=1)[0])
    assert tree.systems() == indexed.systems()
    assert [str(e) for e in tree.events()] == [str(e) for e in indexed.events()]
    # What was searched for the first question was not searched again.
    assert any("files: 0 searched" in note for note in tree.notes)
    assert answers(tree, "pond_dive") == answers(indexed, "pond_dive")
    assert not isinstance(open_searched(root), SearchedTree)


@pytest.mark.parametrize(
    "words", [("other_7",), ("water_fall_done", "--callers"), ("pond:pond_dive", "--json", "--callers")]
)
def test_find_prints_the_same_without_an_index(
    root: str, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    assert main(["find", *words, "--tree", root]) == 0
    without = capsys.readouterr().out
    assert not list(Path(root).parent.glob("cache/tracepoint/trees/*"))
    assert main(["index", root]) == 0
    capsys.readouterr()
    assert main(["find", *words, "--tree", root]) == 0
    assert capsys.readouterr().out == without != ""


def test_a_name_of_several_words() -> None:
    assert is_made_of("event_owl", {"event_", "owl"})
    assert is_made_of("event", {"event"})
    assert not is_made_of("event_owl", {"event_", "ow", "wl"})
    assert not is_made_of("event_owl", set())


#: Pasted, in a part, of a system call, custom as well, hidden in macros, with many callers.
NAMES = ("smb3_read_err", "event_wip", "sys_enter_openat", "sched_switch", "cgroup_mkdir", "kmalloc")
#: Those whose mentions are looked for too, which means to look through all files for macros.
MENTIONED = ("cgroup_mkdir", "event_wip")
N_RANDOM = 20


@pytest.mark.oracle
@pytest.mark.parametrize("name", kernel_sources())
def test_names_of_a_kernel_get_the_answers_of_its_index(name: str) -> None:
    root = str(kernel_source(name).resolve())
    indexed = tp.open_tree(root)
    names = sorted({event.name for event in indexed.events()})
    chosen = [*NAMES, *random.Random(9).sample(names, N_RANDOM)]
    tree = searched(root)
    for one in chosen:
        found, expected = ([facts_of(t, e) for e in t.events(one)] for t in (tree, indexed))
        assert found == expected, one
    n_headers = int(tree.notes[0].partition(" searched, ")[2].split()[0])
    assert n_headers < 3 * len(chosen) < len(indexed.headers())
    for one in MENTIONED:
        assert answers(tree, one) == answers(indexed, one), one
