"""What the index of a tree says about the callers decides whether a stored string pointer is a fault."""

import pytest

from tracepoint.cli.main import main
from tracepoint.tree.query.opening import open_tree

HEADER = """#undef TRACE_SYSTEM
#define TRACE_SYSTEM stage
#if !defined(_TRACE_STAGE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_STAGE_H
#include <linux/tracepoint.h>
TRACE_EVENT(stage,
	TP_PROTO(const char *name),
	TP_ARGS(name),
	TP_STRUCT__entry(__field(const char *, name)),
	TP_fast_assign(__entry->name = name;),
	TP_printk("name=%s", __entry->name)
);
#endif
#include <trace/define_trace.h>
"""


@pytest.fixture
def tree(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "linux"
    for folder in ("include/linux", "include/trace/events", "kernel"):
        (root / folder).mkdir(parents=True)
    for name in ("Makefile", "Kconfig", "kernel/Makefile", "include/linux/tracepoint.h"):
        (root / name).write_text("")
    (root / "include/trace/events/stage.h").write_text(HEADER)
    return root


def calls(root, argument):
    (root / "kernel/stage.c").write_text(
        "#define CREATE_TRACE_POINTS\n#include <trace/events/stage.h>\n"
        f"void run(const char *name)\n{{\n\ttrace_stage({argument});\n}}\n"
    )


def told(root, capsys):
    main(["check", "--output-format", "concise", str(root / "include/trace/events/stage.h")])
    return [line.split(": ", 1)[1] for line in capsys.readouterr().out.splitlines()]


FAULT = "TP326 stage: %s shows the stored pointer name, and no caller passes a tracepoint_string()"


def test_a_plain_string_is_a_fault_once_the_tree_is_indexed(tree, capsys):
    calls(tree, '"first"')
    assert told(tree, capsys) == []
    open_tree(tree, jobs=1)
    assert told(tree, capsys) == [FAULT]


def test_a_string_that_readers_can_know_is_none(tree, capsys):
    calls(tree, 'tracepoint_string("first")')
    open_tree(tree, jobs=1)
    assert told(tree, capsys) == []


def test_an_index_of_another_state_of_the_tree_says_nothing(tree, capsys):
    calls(tree, '"first"')
    open_tree(tree, jobs=1)
    calls(tree, 'tracepoint_string("first")')
    assert told(tree, capsys) == []


def test_an_event_that_nothing_calls_is_not_judged(tree, capsys):
    open_tree(tree, jobs=1)
    assert told(tree, capsys) == []
