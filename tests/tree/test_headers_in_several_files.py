"""A trace header whose events lie in several files, and the folders that Makefiles add."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracepoint.diagnostics import Severity
from tracepoint.tree.headers import HeaderReader
from tracepoint.tree.index.build import build_index
from tracepoint.tree.index.syscalls import read_copied_arguments
from tracepoint.tree.query.tree import Tree

AROUND = """\
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rv
#if !defined(_TRACE_RV_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_RV_H
#include <linux/tracepoint.h>
DECLARE_EVENT_CLASS(event_da,
	TP_PROTO(char *state, bool final), TP_ARGS(state, final),
	TP_STRUCT__entry(__array(char, state, LENGTH) __field(bool, final)),
	TP_fast_assign(memcpy(__entry->state, state, LENGTH); __entry->final = final;),
	TP_printk("%s%s", __entry->state, __entry->final ? " (final)" : "")
);
#include <monitors/wip/wip_trace.h>
#endif
#include <trace/define_trace.h>
"""
PART = """\
#ifdef CONFIG_WIP
DEFINE_EVENT(event_da, event_wip, TP_PROTO(char *state, bool final), TP_ARGS(state, final));
#endif
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    files = {
        "include/linux/tracepoint.h": "",
        "kernel/rv/Makefile": "ccflags-y += -I $(src)\nccflags-$(CONFIG_X) += -I$(srctree)/lib/far\n",
        "kernel/rv/rv_trace.h": '#include "lengths.h"\n' + AROUND,
        "kernel/rv/monitors/wip/wip_trace.h": PART,
        "lib/far/lengths.h": "#define LENGTH 24\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_events_of_a_part_are_those_of_the_header_around_it(tree: Path) -> None:
    header = HeaderReader().read(tree / "kernel/rv/rv_trace.h")
    assert [event.full_name for event in header.events] == ["rv:event_wip"]
    assert header.events[0].origin is not None
    assert header.events[0].origin.span.path.endswith("wip/wip_trace.h")
    assert header.events[0].origin.span.line == 2


def test_a_part_read_alone_has_no_events_and_no_error(tree: Path) -> None:
    header = HeaderReader().read(tree / "kernel/rv/monitors/wip/wip_trace.h")
    assert header.events == ()
    assert [d for d in header.diagnostics if d.severity is Severity.ERROR] == []


def test_an_unknown_class_is_an_error_where_no_header_includes_the_file(tree: Path) -> None:
    (tree / "kernel/rv/rv_trace.h").unlink()
    header = HeaderReader().read(tree / "kernel/rv/monitors/wip/wip_trace.h")
    assert [d.code for d in header.diagnostics] == ["TP007"]


def test_the_index_knows_the_file_and_what_makefiles_add(tree: Path) -> None:
    indexed = Tree.of(build_index(str(tree))[0])
    (event,) = indexed.events()
    assert (event.full_name, event.header, event.file, event.line) == (
        "rv:event_wip",
        "kernel/rv/rv_trace.h",
        "kernel/rv/monitors/wip/wip_trace.h",
        2,
    )
    assert str(event.span) == "kernel/rv/monitors/wip/wip_trace.h:2:1"
    assert event.format is not None
    assert [(f.name, f.size) for f in event.format.event_fields] == [("state", 24), ("final", 1)]


def test_a_changed_part_is_read_again(tree: Path) -> None:
    before, _ = build_index(str(tree))
    part = tree / "kernel/rv/monitors/wip/wip_trace.h"
    part.write_text(PART.replace("event_wip", "event_changed"))
    after, _ = build_index(str(tree), before)
    assert [event.name for event in Tree.of(after).events()] == ["event_changed"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "static void check_faultable_syscall(int nr)\n{",
        "static void check_faultable_syscall(int nr)\n{\n case __NR_x: mask = BIT(99999999999999999999);\n}\n",
    ],
)
def test_damaged_lists_of_copied_arguments_are_survived(text: str) -> None:
    assert read_copied_arguments(text) == {}


def test_sizes_and_texts_of_copied_arguments() -> None:
    text = """
static void check_faultable_syscall(struct trace_event_call *call, int nr)
{
	switch (nr) {
#ifdef __NR_write
	case __NR_write: /* bytes */
#endif
		sys_data->user_mask = BIT(1);
		sys_data->user_arg_size = 2;
		break;
	case __NR_sethostname:
		sys_data->user_mask = BIT(0);
		sys_data->user_arg_size = 1;
		sys_data->user_arg_is_str = 1;
		break;
	case __NR_link:
	case __NR_rename:
		sys_data->user_mask = BIT(0) | BIT(1);
		break;
	default:
		sys_data->user_mask = 0;
		return;
	}
}
"""
    assert read_copied_arguments(text) == {
        "write": [2, 0],
        "sethostname": [1, 1],
        "link": [3, 1],
        "rename": [3, 1],
    }


def test_custom_events_are_of_the_system_custom(tmp_path: Path) -> None:
    (tmp_path / "include/linux").mkdir(parents=True)
    (tmp_path / "include/linux/tracepoint.h").write_text("")
    (tmp_path / "include/mine.h").write_text(
        "TRACE_CUSTOM_EVENT(tick, TP_PROTO(int n), TP_ARGS(n), TP_STRUCT__entry(__field(int, n)),\n"
        '\tTP_fast_assign(__entry->n = n;), TP_printk("%d", __entry->n));\n'
    )
    tree = Tree.of(build_index(str(tmp_path), jobs=1)[0])
    assert [event.full_name for event in tree.events()] == ["custom:tick"]
    assert tree.events()[0].is_custom
