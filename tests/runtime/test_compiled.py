"""A compiled assignment gives the machine's record, or leaves the decision to it."""

import tempfile
import timeit
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from effort import examples
from tracepoint.errors import TracepointError
from tracepoint.layout.abi import Abi
from tracepoint.layout.compute import compute_layout
from tracepoint.layout.sizes import TypeSizes
from tracepoint.runtime.declare.load import _Stage
from tracepoint.tree.headers import read_header

EVENT = """
TRACE_EVENT_CONDITION(c_event,
	TP_PROTO(struct page *page, int i, unsigned int u, u64 w, s8 c, const char *text),
	TP_ARGS(page, i, u, w, c, text),
	TP_CONDITION({condition}),
	TP_STRUCT__entry({fields}),
	TP_fast_assign({statements}),
	TP_printk("x")
);
"""
FUNCTIONS = {
    "page_to_pfn": lambda page: page.pfn,
    "both": lambda a, b: (a, b)[0],
    "LIMIT": 7,
    "current": None,
}


def stage_of(fields, statements, condition="i > 0", functions=FUNCTIONS):
    text = EVENT.format(fields=fields, statements=statements, condition=condition)
    text = (
        "#undef TRACE_SYSTEM\n#define TRACE_SYSTEM c\n#if !defined(_C_H) || defined(TRACE_HEADER_MULTI_READ)\n"
        "#define _C_H\n#include <linux/tracepoint.h>\n" + text + "#endif\n#include <trace/define_trace.h>\n"
    )
    # A folder of its own: its neighbours are read for names.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c.h"
        path.write_text(text)
        header = read_header(path)
    event = header.events[0]
    layout = compute_layout(event, Abi.X86_64, environment=header.environment)
    return _Stage(event, layout, TypeSizes(Abi.X86_64, environment=header.environment), functions)


def outcome(function, args):
    try:
        return function(*args)
    except TracepointError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - whatever an argument's own methods raise
        return type(error), str(error)


LEAVES = st.sampled_from(
    "i u w c page->flags page->owner->id page_to_pfn(page) READ_ONCE(page->flags) LIMIT".split()
    + "0 1 3u 5UL 0x80000000 ~0ULL 'a' true".split()
)
OPERATORS = st.sampled_from("+ - * / % & | ^ << >> == != < > <= >= && ||".split())
TYPES = st.sampled_from(["int", "unsigned int", "u8", "s16", "u64", "long", "unsigned char"])


def deeper(inner):
    return st.one_of(
        st.builds("({} {} {})".format, inner, OPERATORS, inner),
        st.builds("({} ? {} : {})".format, inner, inner, inner),
        st.builds("{}{}".format, st.sampled_from("-~!"), inner.map(lambda text: f"({text})")),
        st.builds("({}){}".format, TYPES, inner.map(lambda text: f"({text})")),
    )


EXPRESSIONS = st.recursive(LEAVES, deeper, max_leaves=5)
FIELDS = ["int", "u8", "s16", "unsigned long", "u64", "s64", "unsigned int", "bool"]
ODD = st.one_of(
    st.integers(-(2**70), 2**70),
    st.integers(-5, 5),
    st.sampled_from(
        [None, True, "text", b"x", 1.5, [1, 2], object(), 2**31, 2**32, 2**63, 2**64 - 1, -(2**63)]
    ),
)
NUMBERS = st.one_of(st.integers(0, 100), st.integers(0, 100), ODD)


@st.composite
def arguments(draw):
    flags, owner, pfn, *rest = (draw(NUMBERS) for _ in range(7))
    name = draw(st.one_of(st.text(max_size=9), st.sampled_from([None, 3, b"raw", "a\0b", "\udc80"])))
    page = SimpleNamespace(flags=flags, owner={"id": owner, "name": name}, pfn=pfn)
    return (draw(st.sampled_from([page, page, page, None])), *rest, name)


@pytest.mark.thorough
@settings(max_examples=examples(400), suppress_health_check=list(HealthCheck))
@given(EXPRESSIONS, EXPRESSIONS, EXPRESSIONS, st.tuples(*[st.sampled_from(FIELDS)] * 2), st.data())
def test_the_same_record_and_errors(first, second, condition, types, data):
    fields = f"__field({types[0]}, a) __string(name, page->owner->name) __field({types[1]}, b)"
    statements = f"__entry->a = {first}; __assign_str(name, page->owner->name); __entry->b = {second};"
    stage = stage_of(fields, statements, condition)
    for _ in range(5):
        args = data.draw(arguments())
        assert outcome(stage.assign, args) == outcome(stage.assign_slowly, args)
        assert outcome(stage.holds, args) == outcome(stage.holds_slowly, args)


@pytest.mark.parametrize(
    ("fields", "statements"),
    [
        ("__field(unsigned long, pfn) __field(int, r)", "__entry->pfn = page_to_pfn(page); __entry->r = i;"),
        ("__field(u64, a)", "__entry->a = page->flags & 4 ? -i : i;"),
        ("__string(n, text) __field(u8, a)", "__assign_str(n, text); __entry->a = (u8)w << 2;"),
        ("__string(n, text)", "__assign_str(n);"),
        ("__field(void *, p)", "__entry->p = page;"),
        ("__field(int, a)", "__entry->a = page->owner->id + LIMIT;"),
        ("__rel_string(n, text) __field(int, a)", "__assign_rel_str(n, text);"),
        ("__field(bool, a) __field(bool, b)", "__entry->a = u; __entry->b = page->flags & 2;"),
    ],
)
def test_what_is_plain_is_compiled(fields, statements):
    stage = stage_of(fields, statements)
    page = SimpleNamespace(flags=5, owner={"id": 3, "name": "ada"}, pfn=7)
    args = (page, 1, 2, 3, 4, "text")
    assert stage._quick_assign is not None
    assert stage._quick_assign(*args) == stage.assign_slowly(*args)
    assert stage._quick_holds(*args) is stage.holds_slowly(*args) is True


@pytest.mark.parametrize(
    ("fields", "statements"),
    [
        ("__array(char, t, 8)", "strscpy(__entry->t, text, 8);"),
        ("__field(int, a)", "__entry->a = 1; __entry->a = 2;"),
        ("__field(int, a) __field(int, b)", "__entry->a = i; __entry->b = __entry->a;"),
        ("__field(int, a)", "if (i) __entry->a = 1;"),
        ("__field(int, a)", "__entry->a = nobody(i);"),
        ("__string(n, text)", ""),
        ("__string(n, text)", '__assign_str(n, "other");'),
        ("__dynamic_array(u8, d, i)", "memset(__get_dynamic_array(d), 0, i);"),
    ],
)
def test_what_is_not_plain_is_the_machines(fields, statements):
    stage = stage_of(fields, statements)
    assert stage._quick_assign is None
    args = (SimpleNamespace(), 1, 2, 3, 4, "text")
    assert outcome(stage.assign, args) == outcome(stage.assign_slowly, args)


@pytest.mark.parametrize("number", [2**64, 2**70, -(2**63) - 1])
@pytest.mark.parametrize("ctype", ["u64", "int", "void *"])
@pytest.mark.parametrize(
    "text", ["page->flags", "both(w, 1)", "page_to_pfn(page)", "BIG", "BIG ? 1 : 2", "i << BIG"]
)
def test_what_c_has_no_room_for_is_never_stored(number, ctype, text):
    """Leaves of unknown type and constants: compiled or not, cut to no field and taken for no condition."""
    stage = stage_of(
        f"__field({ctype}, a)", f"__entry->a = {text};", f"{text} != 5", {**FUNCTIONS, "BIG": number}
    )
    args = (SimpleNamespace(flags=number, pfn=number), 1, 2, number, 4, "text")
    for function in (stage.assign, stage.assign_slowly, stage.holds, stage.holds_slowly):
        assert "has more than the 64 bits" in str(outcome(function, args)), function


@pytest.mark.parametrize("value", [True, False, 2, 0, 256])
def test_what_python_calls_bool_is_plain(value):
    stage = stage_of("__field(bool, a) __field(int, i)", "__entry->a = page->flags; __entry->i = i;", "i")
    args = (SimpleNamespace(flags=value), bool(value), 2, 3, 4, "text")
    assert stage._quick_assign(*args) == stage.assign_slowly(*args)
    assert stage._quick_assign(*args)[8] == bool(value)
    assert stage._quick_holds(*args) is stage.holds_slowly(*args) is bool(value)


def test_missing_and_odd_objects():
    stage = stage_of("__field(int, a)", "__entry->a = page->flags;")
    assert "no 'flags'" in outcome(stage.assign, (SimpleNamespace(), 0, 0, 0, 0, ""))
    assert "is None" in outcome(stage.assign, (None, 0, 0, 0, 0, ""))
    assert outcome(stage.assign, ({"flags": 9}, 0, 0, 0, 0, ""))[8:12] == b"\t\0\0\0"


@pytest.mark.bench
def test_it_takes_microseconds():
    fields = "__field(unsigned long, pfn) __field(int, r) __string(n, page->owner->name)"
    statements = "__entry->pfn = page_to_pfn(page); __entry->r = page->flags & 4 ? -i : i; __assign_str(n);"
    stage = stage_of(fields, statements)
    page = SimpleNamespace(flags=5, owner={"id": 3, "name": "ada"}, pfn=7)
    took = min(timeit.repeat(lambda: stage.assign(page, 1, 2, 3, 4, "x"), number=1000, repeat=20)) / 1000
    assert took < 5e-6
