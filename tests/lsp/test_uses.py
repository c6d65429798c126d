"""Where a field is used, its other name, and the arguments of a call."""

from __future__ import annotations

import pytest

from tracepoint.errors import TracepointError
from tracepoint.lsp.definition import called
from tracepoint.lsp.signature import call_at, call_signature, macro_signature
from tracepoint.lsp.uses import field_uses, renamable, rename_field
from tracepoint.model.read import read_header_text

HEADER = """#undef TRACE_SYSTEM
#define TRACE_SYSTEM demo
DECLARE_EVENT_CLASS(pair,
	TP_PROTO(int n, const char *name),
	TP_ARGS(n, name),
	TP_STRUCT__entry(
		__field(int, n)
		__field(int, nn)
		__string(name, name)
	),
	TP_fast_assign(
		__entry->n = n;
		__entry->nn = __entry->n + n;
		__assign_str(name);
	),
	TP_printk("n=%d %d %s", __entry->n, __entry->nn, __get_str(name))
);
DEFINE_EVENT_PRINT(pair, tick, TP_PROTO(int n, const char *name), TP_ARGS(n, name),
	TP_printk("n is %d", __entry->n));
DEFINE_EVENT(pair, tock, TP_PROTO(int n, const char *name), TP_ARGS(n, name));
TRACE_EVENT(other, TP_PROTO(int n), TP_ARGS(n), TP_STRUCT__entry(__field(int, n)),
	TP_fast_assign(__entry->n = n;), TP_printk("%d", __entry->n));
"""


def at(text, found, nth=0):
    place = -1
    for _ in range(nth + 1):
        place = text.index(found, place + 1)
    return place


def renamed(text, place, name):
    header = read_header_text(text, "demo.h")
    for use in reversed(rename_field(header, place, name)):
        text = text[: use.start] + name + text[use.end :]
    return text


@pytest.mark.parametrize(
    "found", ["n)\n\t\t__field(int, nn)", "n = n;", "n + n", "n, __entry->nn", "n));\nDEFINE_EVENT("]
)
def test_a_field_is_renamed_from_each_of_its_uses(found):
    expected = HEADER.replace("__field(int, n)\n", "__field(int, count)\n")
    head, separator, tail = expected.partition("TRACE_EVENT(other")
    for after in (" = n;", " + n", ", __entry->nn", "));\nDEFINE_EVENT("):
        head = head.replace(f"__entry->n{after}", f"__entry->count{after}")
    assert renamed(HEADER, at(HEADER, found), "count") == head + separator + tail


def test_a_string_is_renamed_in_its_helpers_and_not_in_the_prototype():
    found = renamed(HEADER, at(HEADER, "name)\n\t),") - len("name, "), "label")
    assert "__string(label, name)" in found
    assert "__assign_str(label)" in found
    assert "__get_str(label)" in found
    assert found.count("label") == 3


def test_each_use_is_shown_once_in_order():
    header = read_header_text(HEADER, "demo.h")
    places = [use.start for use in field_uses(header, at(HEADER, "n = n;"))]
    assert places == sorted(set(places))
    assert len(places) == 5
    assert renamable(header, at(HEADER, "n = n;")).text == "n"
    assert field_uses(header, at(HEADER, "TP_PROTO")) == []
    assert renamable(header, at(HEADER, "int n") + 4) is None


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nn", "pair has a field nn already"),
        ("3x", "not a valid name of a field"),
        ("a b", "not a valid name of a field"),
        ("common_n", "all events have"),
    ],
)
def test_names_that_no_field_can_have_are_refused(name, words):
    with pytest.raises(TracepointError, match=words):
        rename_field(read_header_text(HEADER, "demo.h"), at(HEADER, "n = n;"), name)


def test_a_use_in_a_macro_is_refused_with_its_line():
    text = HEADER.replace("DECLARE_EVENT_CLASS", "#define SHOWN __entry->n\nDECLARE_EVENT_CLASS", 1)
    with pytest.raises(TracepointError, match="line 3 uses __entry->n outside"):
        rename_field(read_header_text(text, "demo.h"), at(text, "n = n;"), "count")
    with pytest.raises(TracepointError, match="no field here"):
        rename_field(read_header_text(text, "demo.h"), 0, "count")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("trace_tick(", ("trace_tick", 0)),
        ("f(1); trace_tick(a, g(b, c), ", ("trace_tick", 2)),
        ('trace_tick("(,", ', ("trace_tick", 1)),
        ("trace_tick(a[1, 2], ((x), ", ("trace_tick", 1)),
        ("f(1)", None),
        ("if (x) { y", None),
        (")) , (", None),
        ("trace_tick(/* a, b */ 1, // (", ("trace_tick", 1)),
    ],
)
def test_the_call_that_is_written(text, expected):
    found = call_at(text, len(text))
    assert (found and tuple(found)) == expected


def test_signatures():
    header = read_header_text(HEADER, "demo.h")
    thing = called(header, "trace_tock")
    assert call_signature("trace_tock", thing) == (
        "void trace_tock(int n, const char *name)",
        ("int n", "const char *name"),
    )
    assert macro_signature("__field").parameters == ("type", "name")
    assert macro_signature("TRACE_EVENT").parameters[0] == "name"
    assert macro_signature("printk") is None
