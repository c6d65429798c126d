"""A tree that wishes the index ill: it ends, soon, and tells what it left out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pace import fewer_turns
from tracepoint.tree.index.build import build_index
from tracepoint.tree.query.tree import Tree

HEADER = """\
#undef TRACE_SYSTEM
#define TRACE_SYSTEM demo
TRACE_EVENT(tick, TP_PROTO(int n), TP_ARGS(n), TP_STRUCT__entry(__field(int, n)),
	TP_fast_assign(__entry->n = n;), TP_printk("%d", __entry->n));
"""
CALLS = {
    "deep.c": "void f(void)\n{\n" + "{" * 50_000 + "trace_tick(1);" + "}" * 50_000 + "\n}\n",
    "open.c": "void f(void)\n{\n" + "trace_tick(" * 50_000 + "\n}\n",
    "line.c": "int a = 1; " * 500_000 + "trace_tick(2);\n",
    "nul.c": "void g(void)\n{\n\0\0trace_tick(3);\n}\n",
    "crlf.c": "void h(void)\r\n{\r\n\ttrace_tick(4);\r\n}\r\n",
    "latin.c": "void i(void)\n{\n\t/* caf\udce9 */ trace_tick(5);\n}\n",
    "comment.c": "/*" * 200_000 + " trace_tick(6);\n",
    "quote.c": '"' * 200_001 + " trace_tick(7);\n",
    "define.c": "#define A" + "\\\n" * 200_000 + " trace_tick(8)\nvoid j(void)\n{\n\tA;\n}\n",
    "paste.c": "#define P(x) trace_##x(1)\n" + "void k(void)\n{\n" + "\tP(P(tick));\n" * 20_000 + "}\n",
    "head.c": "trace_tick " * 100_000 + "(void)\n{\n}\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "include/linux").mkdir(parents=True)
    (tmp_path / "include/linux/tracepoint.h").write_text("")
    (tmp_path / "include/demo.h").write_text(HEADER)
    return tmp_path


def sites(root: Path) -> list[str]:
    with fewer_turns(400):
        index, _ = build_index(str(root), jobs=1)
    tree = Tree.of(index)
    assert "demo:tick" in {event.full_name for event in tree.events()}
    return [str(site.span) for site in tree.call_sites("tick")]


@pytest.mark.limits
@pytest.mark.parametrize("name", CALLS)
def test_odd_sources_are_read_or_passed_over(root: Path, name: str) -> None:
    (root / name).write_bytes(CALLS[name].encode("utf-8", "surrogateescape"))
    (root / "good.c").write_text("void z(void)\n{\n\ttrace_tick(9);\n}\n")
    assert "good.c:3:2" in sites(root)


@pytest.mark.parametrize("name", ["nul.c", "crlf.c", "latin.c", "line.c"])
def test_calls_in_odd_encodings_are_found(root: Path, name: str) -> None:
    (root / name).write_bytes(CALLS[name].encode("utf-8", "surrogateescape"))
    assert len(sites(root)) == 1


def test_no_pipe_is_waited_for_and_no_loop_followed(root: Path) -> None:
    os.mkfifo(root / "pipe.h")
    (root / "loop").symlink_to(root, target_is_directory=True)
    (root / "self.h").symlink_to(root / "self.h")
    (root / "folder.c").mkdir()
    (root / "good.c").write_text("void z(void)\n{\n\ttrace_tick(9);\n}\n")
    assert sites(root) == ["good.c:3:2"]


def test_headers_that_include_each_other_end(root: Path) -> None:
    (root / "include/a.h").write_text(HEADER.replace("demo", "a") + '#include "b.h"\n')
    (root / "include/b.h").write_text('#include "a.h"\nDEFINE_EVENT(none, b, TP_PROTO(int n), TP_ARGS(n));\n')
    names = {event.full_name for event in Tree.of(build_index(str(root), jobs=1)[0]).events()}
    assert "a:tick" in names


def test_a_makefile_may_say_anything(root: Path) -> None:
    (root / "include/Makefile").write_bytes(
        b"ccflags-y += -I$(src)/../../../../.. -I $(srctree)/\0 -I$(nothing) -I\n" + b"\xff" * 100_000
    )
    (root / "include/demo.h").write_text('#include "passwd_not_there.h"\n' + HEADER)
    assert sites(root) == []
