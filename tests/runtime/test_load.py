"""Kernel headers fired with Python objects."""

import inspect
import pickle
import struct
from pathlib import Path
from types import SimpleNamespace

import pytest

from tracepoint.tree import disk

HEADER = """
#undef TRACE_SYSTEM
#define TRACE_SYSTEM toy
#if !defined(_TRACE_TOY_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_TOY_H
#include <linux/tracepoint.h>

TRACE_EVENT(toy_swap_out,
	TP_PROTO(struct page *page, int ret),
	TP_ARGS(page, ret),
	TP_STRUCT__entry(__field(unsigned long, pfn) __field(int, ret) __string(name, page->owner->name)),
	TP_fast_assign(
		__entry->pfn = page_to_pfn(page);
		__entry->ret = page->flags & 4 ? -ret : ret;
		__assign_str(name, page->owner->name);
	),
	TP_printk("pfn=%lu ret=%d %s", __entry->pfn, __entry->ret, __get_str(name))
);

DECLARE_EVENT_CLASS(toy_class,
	TP_PROTO(const char *what, unsigned int n),
	TP_ARGS(what, n),
	TP_STRUCT__entry(__array(char, what, 8) __field(u16, n)),
	TP_fast_assign(strscpy(__entry->what, what, 8); __entry->n = n;),
	TP_printk("%s %u", __entry->what, __entry->n)
);
DEFINE_EVENT(toy_class, toy_begin, TP_PROTO(const char *what, unsigned int n), TP_ARGS(what, n));
DEFINE_EVENT(toy_class, toy_end, TP_PROTO(const char *what, unsigned int n), TP_ARGS(what, n));

TRACE_EVENT_CONDITION(toy_big,
	TP_PROTO(struct page *page),
	TP_ARGS(page),
	TP_CONDITION(page->order > 2),
	TP_STRUCT__entry(__field(u8, order)),
	TP_fast_assign(__entry->order = page->order;),
	TP_printk("%u", __entry->order)
);

TRACE_EVENT_FN(toy_edges,
	TP_PROTO(int n),
	TP_ARGS(n),
	TP_STRUCT__entry(__field(int, n)),
	TP_fast_assign(__entry->n = n;),
	TP_printk("%d", __entry->n),
	toy_reg, toy_unreg
);

DECLARE_TRACE(toy_bare, TP_PROTO(int n), TP_ARGS(n));

TRACE_EVENT(toy_odd,
	TP_PROTO(int n),
	TP_ARGS(n),
	TP_STRUCT__entry(__field(struct nobody_knows, n)),
	TP_fast_assign(),
	TP_printk("x")
);
#endif
#include <trace/define_trace.h>
"""


class Page:
    def __init__(self, pfn, order=0, flags=0, owner="ada"):
        self.pfn = pfn
        self.order = order
        self.flags = flags
        self.owner = {"name": owner}


@pytest.fixture
def toy(runtime, tmp_path):
    path = tmp_path / "toy.h"
    path.write_text(HEADER)
    calls = []
    functions = {
        "page_to_pfn": lambda page: page.pfn,
        "toy_reg": lambda: calls.append("reg"),
        "toy_unreg": lambda: calls.append("unreg"),
    }
    load = runtime.load
    return SimpleNamespace(
        header=load(path, functions=functions),
        again=lambda: load(path, functions=functions),
        calls=calls,
        tracing=runtime.tracing,
        load=runtime.load,
    )


def taken(toy):
    return [record.data for record in toy.tracing.read_records()]


def test_attributes_items_and_functions(toy):
    event = toy.header.trace_toy_swap_out
    event(Page(1), 2)
    event.enable()
    event(Page(7), 2)
    event(Page(8, flags=4, owner="bob"), ret=2)
    first, second = taken(toy)
    assert struct.unpack_from("<QiI", first, 8) == (7, 2, 4 << 16 | 24)
    assert first[24:28] == b"ada\0"
    assert struct.unpack_from("<Qi", second, 8) == (8, -2)
    assert struct.unpack_from("<H", first) == (event.id,)
    assert toy.tracing.faults[0] == 0


def test_the_format_is_the_kernels(toy):
    text = toy.header["toy_begin"].format
    assert "\tfield:char what[8];\toffset:8;\tsize:8;\tsigned:1;\n" in text
    assert text.endswith('print fmt: "%s %u", REC->what, REC->n\n')


def test_a_class_has_several_events(toy):
    begin, end = toy.header.trace_toy_begin, toy.header.trace_toy_end
    end.enable()
    begin("begin", 1)
    end("a long name", 70_000)
    assert [r[8:18] for r in taken(toy)] == [b"a long \0" + struct.pack("<H", 70_000 & 0xFFFF)]


def test_conditions(toy):
    event, seen = toy.header.trace_toy_big, []
    event.register(lambda page: seen.append(page.order))
    event.enable()
    for order in (1, 3, 2, 9):
        event(Page(1, order))
    assert seen == [3, 9]
    assert [r[8] for r in taken(toy)] == [3, 9]
    event(SimpleNamespace())
    assert [where for _, where, _ in toy.tracing.faults[1]] == ["condition"]


def test_reg_and_unreg(toy):
    event = toy.header.trace_toy_edges
    event.enable()
    with event.register(lambda n: None):
        pass
    event.disable()
    assert toy.calls == ["reg", "unreg"]


def test_without_a_record(toy):
    hook, seen = toy.header.trace_toy_bare, []
    hook(1)
    with hook.register(seen.append):
        hook(2)
    hook(3)
    assert seen == [2]
    assert "toy_bare" not in [e.event.name for e in toy.tracing.events]
    with pytest.raises(Exception, match="does not take"):
        hook.register(lambda: None)


def test_what_is_loaded_pickles_by_name(toy):
    for name in ("toy_begin", "toy_bare"):
        assert pickle.loads(pickle.dumps(toy.header[name])) is toy.header[name]
    with pytest.raises(AttributeError, match="toy_bard"):
        pickle.loads(pickle.dumps(toy.header["toy_bare"]).replace(b"toy_bare", b"toy_bard"))


def test_what_is_loaded_has_names_and_a_signature(toy):
    for name, full_name in (("toy_begin", "toy:toy_begin"), ("toy_bare", "toy_bare")):
        found = toy.header[name]
        assert (found.__name__, found.__qualname__, found.name) == (name, full_name, full_name)
        assert tuple(inspect.signature(found).parameters) == found.parameters
        assert f"    {name}({', '.join(found.parameters)}) -> None" in found.__doc__
        assert [attribute for attribute in dir(found) if not hasattr(found, attribute)] == []
    assert "probes" not in dir(toy.header["toy_bare"])


@pytest.mark.parametrize(("ret", "is_recorded"), [(-1, True), ((1 << 32) - 1, True), (1 << 32, False)])
def test_numbers_that_their_parameter_has_no_room_for(toy, ret, is_recorded):
    event = toy.header.trace_toy_swap_out
    event.enable()
    event(Page(7), ret)
    assert len(taken(toy)) == is_recorded
    if not is_recorded:
        assert "ret has more than the 32 bits of int" in toy.tracing.faults[1][0][2]


@pytest.mark.parametrize(
    ("page", "text"),
    [
        (None, "has no"),
        (SimpleNamespace(pfn=1, flags=0), "page, a SimpleNamespace, has no 'owner'"),
        (SimpleNamespace(pfn="x" * 3, flags=0, owner={"name": "a"}), "is a str, not a number"),
        (SimpleNamespace(pfn=1.5, flags=0, owner={"name": "a"}), "is a float"),
        (SimpleNamespace(pfn=1, flags=0, owner={"name": object()}), "is a object"),
    ],
)
def test_what_cannot_be_read_is_a_fault(toy, page, text):
    event = toy.header.trace_toy_swap_out
    event.enable()
    assert event(page, 1) is None
    count, ((name, where, reason),) = toy.tracing.faults
    assert (count, name, where) == (1, "toy:toy_swap_out", "assign")
    assert text in reason
    assert taken(toy) == []


def test_functions_that_nobody_gave(runtime, tmp_path):
    path = tmp_path / "toy.h"
    path.write_text(HEADER)
    header = runtime.load(path)
    header.trace_toy_swap_out.enable()
    header.trace_toy_swap_out(Page(1), 1)
    assert "page_to_pfn() is the kernel's; give it with functions=" in runtime.tracing.faults[1][0][2]


def test_problems_are_the_events_own(toy):
    assert set(toy.header.problems) == {"toy_odd"}
    with pytest.raises(Exception, match=r"toy_odd: .*nobody_knows"):
        toy.header.trace_toy_odd  # noqa: B018 - reading it is the test
    with pytest.raises(AttributeError, match=r"declares no trace_nosuch\(\)"):
        toy.header.trace_nosuch  # noqa: B018
    with pytest.raises(KeyError):
        toy.header["nosuch"]


def test_a_record_that_no_ring_holds_is_a_problem_of_its_event(toy, tmp_path):
    path = tmp_path / "large.h"
    text = HEADER.replace("__field(u8, order)", "__field(u8, order) __array(char, more, 5000)")
    path.write_text(text.replace("toy_", "large_").replace("TRACE_SYSTEM toy", "TRACE_SYSTEM large"))
    found = toy.load(path)
    assert "a record of 5012 bytes is longer than 4072" in found.problems["large_big"]
    assert "large_edges" in found


def test_loading_again_gives_the_same(toy):
    again = toy.again()
    assert again["toy_begin"] is toy.header["toy_begin"]
    assert again["toy_bare"] is toy.header["toy_bare"]


def test_a_second_declaration_is_refused(toy, tmp_path):
    other = tmp_path / "other.h"
    other.write_text(HEADER)
    with pytest.raises(Exception, match=r"declared twice: at .*toy\.h:\d+ and at .*other\.h:\d+"):
        toy.load(other)


def test_what_lies_far_below_the_header_is_not_read(runtime, tmp_path, monkeypatch):
    """A header in a home or in /tmp: the folders below hold anything."""
    read, read_it = [], disk.read_if_sane

    def noted(path):
        if path.endswith(".c"):
            read.append(Path(path).name)
        return read_it(path)

    monkeypatch.setattr(disk, "read_if_sane", noted)
    for name in ("near.c", "below/next.c", "below/far/lost.c"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    path = tmp_path / "toy.h"
    path.write_text(HEADER)
    runtime.load(path)
    assert read == ["near.c", "next.c"]
