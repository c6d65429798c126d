"""Plans are read from TOML, and arguments split, or refused with the reason."""

from __future__ import annotations

import pytest

from tracepoint.errors import PlaceError
from tracepoint.place.plan import Plan, read_plan, split_args

PLAN = """
why = "because it is needed"
[[event]]
system = "pond"
text = 'TRACE_EVENT(a, ...)'
[[call]]
at = "water/shore.c:shore_visit"
after = ["gone();", "n_visits++;"]
call = "a(duck, n)"
guard = true
"""


def read(text: str) -> Plan:
    return read_plan(text, "p.toml", lambda name: f"text of {name}")


def test_plan_is_read() -> None:
    plan = read(PLAN)
    assert plan.why == "because it is needed"
    assert plan.events[0].text == "TRACE_EVENT(a, ...)"
    call = plan.calls[0]
    assert (call.path, call.event, call.args, call.guard) == ("water/shore.c", "a", ("duck", "n"), True)
    assert [p.statement for p in call.places] == ["gone();", "n_visits++;"]
    from_file = read(PLAN.replace("text = 'TRACE_EVENT(a, ...)'", "file = 'events/a.h'"))
    assert from_file.events[0].text == "text of events/a.h"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("why =", "why", "p.toml: "),
        ("why", "wy", "the plan has no wy"),
        ('"because it is needed"', "1", "why of the plan has the wrong type (int)"),
        ("[[event]]", "[event]", "event of the plan has the wrong type"),
        ("text", "txt", "event 1 has no txt"),
        ("text = 'TRACE_EVENT(a, ...)'", "", "event 1 needs one of text, file, and name with proto"),
        ("text = 'TRACE_EVENT(a, ...)'", "file = '../a.h'", "is not a file next to the plan"),
        ("text = 'TRACE_EVENT(a, ...)'", "file = '/a.h'", "is not a file next to the plan"),
        ("text = 'TRACE", "name = 'a'\ntext = 'TRACE", "event 1 needs one of"),
        ("text = 'TRACE", "proto = 'int n'\ntext = 'TRACE", "proto and fields need name"),
        ("shore.c:shore_visit", "shore_visit", "is not a FILE:FUNCTION"),
        ("water/shore.c", "water/../../shore.c", "is not a path of a file below the tree"),
        ("shore.c", "shore.h", "headers must not call trace_x()"),
        ("shore.c", "shore.S", "not a C file"),
        ("after = [", "entry = true\nafter = [", "only one of entry, after"),
        ('after = ["gone();", "n_visits++;"]', "", "name a place"),
        ('"gone();"', "1", "after is a statement, or a list of them"),
        ("a(duck, n)", "a(duck", "is not a call of an event"),
        ("a(duck, n)", "a(duck,, n)", "is not a list of arguments"),
        ("a(duck, n)", "a(duck), g(n)", "is not a list of arguments"),
        ("a(duck, n)", "a-b", "names no event"),
        ("guard = true", "args = 'x'", "has its arguments twice"),
        ("guard = true", "line = true", "wrong type (bool)"),
    ],
)
def test_plans_that_are_none(old: str, new: str, reason: str) -> None:
    assert old in PLAN
    with pytest.raises(PlaceError) as caught:
        read(PLAN.replace(old, new, 1))
    assert reason in str(caught.value)


def test_deep_toml_is_refused() -> None:
    with pytest.raises(PlaceError):
        read("a = " + "[" * 100_000)


@pytest.mark.parametrize("text", ["a;b", "a)", "(a", "a,", '"', "a, {b"])
def test_arguments_that_are_none(text: str) -> None:
    with pytest.raises(PlaceError):
        split_args(text)
