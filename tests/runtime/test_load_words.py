"""What assignments of kernel headers say beyond numbers: functions of objects, of the record, constants."""

import struct
from types import SimpleNamespace

import pytest

from tracepoint.tree.loader import FileLoader

EVENT = """
#undef TRACE_SYSTEM
#define TRACE_SYSTEM words
#if !defined(_TRACE_WORDS_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_WORDS_H
#include <linux/tracepoint.h>

typedef u32 nid_t;
enum dirt {{ NR_CLEAN, NR_DIRTY = 7 }};

TRACE_EVENT(said,
	TP_PROTO(struct thing *thing, nid_t *nid),
	TP_ARGS(thing, nid),
	TP_STRUCT__entry({fields}),
	TP_fast_assign({statements}),
	TP_printk("x")
);
#endif
#include <trace/define_trace.h>
"""


@pytest.fixture
def said(runtime, tmp_path):
    """Return a function from fields and statements to what the record holds after its head, or the fault."""
    load = runtime.load

    def make(fields, statements, thing, nid=(1, 2, 3), functions=None):
        path = tmp_path / "words.h"
        path.write_text(EVENT.format(fields=fields, statements=statements))
        loaded = load(path, functions=functions)
        assert loaded.problems == {}
        loaded.trace_said.enable()
        loaded.trace_said(thing, nid)
        records = runtime.tracing.records()
        return records[0].data[8:] if records else runtime.tracing.faults[1][-1][2]

    return make


def test_an_objects_own_functions(said):
    """`fence->ops->name(fence)` is a method as Python has them."""
    thing = SimpleNamespace(number=4, ops=SimpleNamespace(count=lambda thing, n: thing.number + n))
    assert said("__field(int, n)", "__entry->n = thing->ops->count(thing, 3);", thing) == b"\7\0\0\0"


def test_arrays_of_a_typedef_are_stored_by_element(said):
    made = said(
        "__array(nid_t, nid, 3)",
        "__entry->nid[0] = nid[0]; __entry->nid[1] = nid[1]; __entry->nid[2] = nid[2];",
        None,
    )
    assert struct.unpack("<3I", made) == (1, 2, 3)


def test_dynamic_arrays_of_a_typedef_are_stored_by_element(said):
    made = said(
        "__dynamic_array(nid_t, nid, 2)",
        "((nid_t *)__get_dynamic_array(nid))[0] = nid[0]; ((nid_t *)__get_dynamic_array(nid))[1] = nid[2];",
        None,
    )
    assert struct.unpack_from("<2HII", made) == (12, 8, 1, 3)


@pytest.mark.parametrize(
    ("argument", "wanted"),
    [
        ("NR_DIRTY", 7),
        ("thing->a ? thing->b : NR_CLEAN", 5),
        ("thing->none ? thing->none->b : -thing->b", -5),
        ("!thing->a", 0),
        ("thing->none && thing->none->b", 0),
        ("thing->a || thing->none->b", 1),
        ("~thing->b & 0xff", 250),
        ("NULL", -1),
    ],
)
def test_arguments_of_the_users_functions(said, argument, wanted):
    """What the machine does not look into is read as C would."""
    thing = {"a": 1, "b": 5, "none": None}
    functions = {"told": lambda value: -1 if value is None else int(value)}
    made = said("__field(int, n)", f"__entry->n = told({argument});", thing, functions=functions)
    assert struct.unpack("<i", made) == (wanted,)


def test_functions_that_store_into_the_record(said):
    """The user's gets the other arguments, and what it returns is stored."""
    fields, statements = "__array(char, rwbs, 8)", "blk_fill_rwbs(__entry->rwbs, thing->opf);"
    fill = {"blk_fill_rwbs": lambda opf: "W" + "S" * opf}
    assert said(fields, statements, {"opf": 1}, functions=fill) == b"WS\0\0\0\0\0\0"


def test_functions_that_store_are_asked_for(said):
    fields, statements = "__array(char, rwbs, 8)", "blk_fill_rwbs(__entry->rwbs, thing->opf);"
    told = said(fields, statements, {"opf": 1})
    assert "blk_fill_rwbs() stores into the record" in told
    assert "functions={'blk_fill_rwbs': ...}" in told


def test_what_is_in_the_record_is_no_argument(said):
    told = said(
        "__field(int, n) __field(int, m)",
        "__entry->n = 1; __entry->m = told(__entry->n);",
        None,
        functions={"told": abs},
    )
    assert "what is in the record" in told


def test_the_headers_of_a_tree_are_read_once(runtime, tmp_path, monkeypatch):
    """All events of a kernel took 93 seconds to load, 80 of them reading the same files again."""
    load = runtime.load
    (tmp_path / "include/trace/events").mkdir(parents=True)
    (tmp_path / "include/linux").mkdir(parents=True)
    (tmp_path / "include/linux/tracepoint.h").write_text("")
    (tmp_path / "include/linux/shared.h").write_text("#define SHARED 5\n")
    read = []
    plain = FileLoader._read
    monkeypatch.setattr(FileLoader, "_read", lambda self, path: (read.append(path), plain(self, path))[1])
    for name in ("one", "two"):
        text = EVENT.format(fields="__array(u8, a, SHARED)", statements="").replace("said", name)
        text = text.replace("#include <linux/tracepoint.h>", "#include <linux/shared.h>").replace(
            "words", name
        )
        path = tmp_path / f"include/trace/events/{name}.h"
        path.write_text(text)
        assert load(path)[name].layout["a"].size == 5
    assert sum(path.endswith("linux/shared.h") for path in read) == 1
