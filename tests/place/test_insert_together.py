"""Several calls in one file: joined where they share braces or a variable, refused where they cannot be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from place.corpus import only_added, strip_calls, tokens_of, undo_values
from place.helpers import AFTER, BEFORE, ENTRY, RETURNS, body, c
from place.test_insert_random import functions
from tracepoint.errors import PlaceError
from tracepoint.place.code import read_code
from tracepoint.place.functions import find_functions
from tracepoint.place.insert import EventCall, InsertionPoint, Where, place_call, place_calls
from tracepoint.place.statements import StatementKind, read_body
from tracepoint.source.text import SourceFile, apply_edits

if TYPE_CHECKING:
    from tracepoint.place.code import SourceCode


def together(text: str, *requests: tuple[Where, str, str]) -> str:
    """The text with a call of `event(args)` at each place."""
    asked = []
    for where, statement, call in requests:
        event, _, args = call.partition("(")
        asked.append(
            (InsertionPoint("f", where, statement), EventCall(event, tuple(filter(None, [args.rstrip(")")]))))
        )
    return apply_edits(text, place_calls(SourceFile("mm/a.c", text), asked))


JOINED = {
    "around the body of an if": (
        "if (a)\n    g();\nh();",
        [(BEFORE, "g();", "x(a)"), (AFTER, "g();", "y(a)")],
        "if (a) {\n    trace_x(a);\n    g();\n    trace_y(a);\n}\nh();",
    ),
    "the other order": (
        "if (a)\n    g();\nh();",
        [(AFTER, "g();", "y(a)"), (BEFORE, "g();", "x(a)")],
        "if (a) {\n    trace_x(a);\n    g();\n    trace_y(a);\n}\nh();",
    ),
    "on one line": (
        "if (a) g();\nh();",
        [(BEFORE, "g();", "x(a)"), (AFTER, "g();", "y(a)")],
        "if (a) {\n    trace_x(a);\n    g();\n    trace_y(a);\n}\nh();",
    ),
    "two before": (
        "while (a)\n    g();",
        [(BEFORE, "g();", "x(a)"), (BEFORE, "g();", "y(a)")],
        "while (a) {\n    trace_x(a);\n    trace_y(a);\n    g();\n}",
    ),
    "two after": (
        "while (a)\n    g(); /* c */",
        [(AFTER, "g();", "x(a)"), (AFTER, "g();", "y(a)")],
        "while (a) {\n    g(); /* c */\n    trace_x(a);\n    trace_y(a);\n}",
    ),
    "both arms": (
        "if (a)\n    g();\nelse\n    h();",
        [(BEFORE, "g();", "x(a)"), (AFTER, "h();", "y(a)")],
        "if (a) {\n    trace_x(a);\n    g();\n} else {\n    h();\n    trace_y(a);\n}",
    ),
    "in each other": (
        "if (a)\n    while (a)\n        g();\nh();",
        [(BEFORE, "while (a)", "x(a)"), (AFTER, "g();", "y(a)")],
        "if (a) {\n    trace_x(a);\n    while (a) {\n        g();\n        trace_y(a);\n    }\n}\nh();",
    ),
    "after the body and after the if": (
        "if (a)\n    g();\nh();",
        [(AFTER, "if (a)", "y(a)"), (AFTER, "g();", "x(a)"), (BEFORE, "h();", "z(a)")],
        "if (a) {\n    g();\n    trace_x(a);\n}\ntrace_y(a);\ntrace_z(a);\nh();",
    ),
    "returns and one of them": (
        "if (a)\n    return;\ng();",
        [(RETURNS, "", "x(a)"), (BEFORE, "return;", "y(a)")],
        "if (a) {\n    trace_x(a);\n    trace_y(a);\n    return;\n}\ng();\ntrace_x(a);",
    ),
    "entry and returns": (
        "if (a)\n    return;\ng();",
        [(ENTRY, "", "x(a)"), (RETURNS, "", "x(a)")],
        "trace_x(a);\nif (a) {\n    trace_x(a);\n    return;\n}\ng();\ntrace_x(a);",
    ),
    "two at the entry": (
        "int b = 1;\ng(b);",
        [(ENTRY, "", "x(a)"), (ENTRY, "", "y(b)")],
        "int b = 1;\n\ntrace_x(a);\ntrace_y(b);\ng(b);",
    ),
}


@pytest.mark.parametrize("name", JOINED)
def test_calls_that_need_the_same_braces_share_them(name: str) -> None:
    old, requests, new = JOINED[name]
    assert together(body(old), *requests) == body(new)


def test_the_returned_value_is_kept_once() -> None:
    text = "int f(int a)\n{\n\tif (a)\n\t\treturn g(a);\n\treturn 0;\n}\n"
    requests = [(RETURNS, "", "x(RETURN_VALUE)"), (ENTRY, "", "z(a)"), (RETURNS, "", "y(RETURN_VALUE)")]
    assert together(text, *requests) == c("""
        int f(int a)
        {
            int ret;

            trace_z(a);
            if (a) {
                ret = g(a);
                trace_x(ret);
                trace_y(ret);
                return ret;
            }
            trace_x(0);
            trace_y(0);
            return 0;
        }
        """)


def test_a_variable_and_a_call_are_behind_one_blank_line() -> None:
    text = "int f(int a)\n{\n\tint b = a;\n\treturn g(b);\n}\n"
    for requests in ([(ENTRY, "", "z(a)")], [(RETURNS, "", "x(RETURN_VALUE)")]):
        both = [(ENTRY, "", "z(a)"), (RETURNS, "", "x(RETURN_VALUE)")]
        new = together(text, *(both if requests == both[:1] else both[::-1]))
        assert new.startswith(
            "int f(int a)\n{\n\tint b = a;\n\tint ret;\n\n\ttrace_z(a);\n\tret = g(b);\n"
        ), new


def test_the_same_call_twice_is_refused() -> None:
    with pytest.raises(PlaceError, match="the same call is added here twice"):
        together(body("g();"), (BEFORE, "g();", "x(a)"), (BEFORE, "g();", "x(a)"))


def test_what_cannot_be_joined_is_refused() -> None:
    with pytest.raises(PlaceError, match="two calls change this place differently"):
        together(body("g(); h();"), (AFTER, "g();", "x(a)"), (BEFORE, "h();", "y(a)"))


@settings(max_examples=examples(150))
@given(functions(), st.data())
def test_two_calls_add_what_each_adds_alone(text: str, data: st.DataObject) -> None:
    code = read_code(SourceFile("a.c", text))
    source = SourceFile("a.c", text)
    asked = [(data.draw(places(code)), EventCall(event, ("a",))) for event in "xy"]
    try:
        alone = [place_call(source, place, call) for place, call in asked]
    except PlaceError:
        return  # test_insert_random.py judges that
    try:
        new = apply_edits(text, place_calls(source, asked))
    except PlaceError as error:
        assert error.reason == "two calls change this place differently"  # noqa: PT017
        return
    tokens = tokens_of(new)
    for found, (_, call) in zip(alone, asked, strict=True):
        tokens, n_calls = strip_calls(tokens, call.event)
        assert n_calls == len(found.spans)
    old = tokens_of(text)
    added = only_added(old, undo_values(tokens, old))
    assert set(added) <= {"{", "}"}
    assert added.count("{") == added.count("}")
    braces = {note for found in alone for note in found.notes if "braces are added" in note}
    assert bool(added) == bool(braces)
    # Without the second call, and the braces, the text is what the first one alone gives.
    first = strip_calls(tokens_of(new), "y")[0]
    expected = tokens_of(apply_edits(text, alone[0].edits))
    assert [t for t in first if t not in "{}"] == [t for t in expected if t not in "{}"]


@st.composite
def places(draw: st.DrawFn, code: SourceCode) -> InsertionPoint:
    where = draw(st.sampled_from(list(Where)))
    if where in (ENTRY, RETURNS):
        return InsertionPoint("f", where)
    statements = read_body(code, find_functions(code)[0]).walk()
    chosen = draw(st.sampled_from([s for s in statements if s.kind is not StatementKind.BLOCK]))
    text = code.file.text[code.tokens[chosen.first].start : code.tokens[chosen.last].end]
    return InsertionPoint("f", where, text, code.line(chosen.first))
