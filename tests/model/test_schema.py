"""The model as JSON: it reads back, and nothing else is read."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import strategies
from effort import examples
from tracepoint.errors import SourceError
from tracepoint.model.python.declare import declare
from tracepoint.model.python.fields import scalar, string
from tracepoint.model.read import read_header_text
from tracepoint.model.schema import SCHEMA, header_from_json, header_to_json, read_json, write_json
from tracepoint.model.write import header_of

SLOW = settings(deadline=None, max_examples=examples(150), suppress_health_check=list(HealthCheck))

EVENT = declare(
    "9p_retry",
    system="demo",
    proto="int n, const char *s",
    struct=[scalar("int", "n"), string("s")],
    assign={},
    printk='"%d %s", n, s',
)
MODEL = header_to_json(header_of([EVENT]))


@SLOW
@given(strategies.headers())
def test_reads_back(header):
    assert read_json(write_json(header)) == header
    assert read_json(write_json(header, indent=None)) == header


def test_what_it_looks_like():
    assert MODEL["schema"] == SCHEMA == "tracepoint.model/1"
    (event,) = MODEL["events"]
    assert event == {"name": "9p_retry", "system": "demo", "macro": "TRACE_EVENT", "class": "9p_retry"}
    assert MODEL["classes"][0]["fields"] == [
        {"kind": "field", "type": "int", "name": "n"},
        {"kind": "string", "name": "s", "source": "s"},
    ]
    assert MODEL["classes"][0]["proto"][1] == {"type": "const char *", "name": "s"}


def test_a_class_of_another_header_stands_in_its_event():
    header = read_header_text("DEFINE_EVENT(there, here, TP_PROTO(int n), TP_ARGS(n));")
    value = header_to_json(header)
    assert value["classes"] == []
    assert value["events"][0]["class"]["name"] == "there"
    assert header_from_json(value) == header


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("schema",), "tracepoint.model/2", "this version reads 'tracepoint.model/1'"),
        (("schema",), None, "model.schema: a string is wanted, not nothing"),
        (("extra",), 1, "model: unknown member 'extra'"),
        (("events",), {}, "model.events: a list is wanted, not an object"),
        (("events", 0), 7, "model.events[0]: an object is wanted, not a number"),
        (("events", 0, "name"), "a b", "model.events[0].name: 'a b' cannot follow"),
        (("events", 0, "name"), "x\n", "cannot follow"),
        (("events", 0, "system"), "a b", "model.events[0].system: 'a b' is not one word"),
        (("events", 0, "macro"), "SYSCALL", "model.events[0].macro: 'SYSCALL' is none of"),
        (("events", 0, "class"), "zz", "no class 'zz'"),
        (("events", 0, "is_nop"), 1, "true or false is wanted"),
        (("events", 0, "flags"), "a, b", "a comma here would begin another argument"),
        (("classes", 0, "assign"), "f(", "model.classes[0].assign: '(' is never closed"),
        (("classes", 0, "assign"), ")", "has no opening bracket"),
        (("classes", 0, "printk"), '"x', "is never closed"),
        (("classes", 0, "printk"), "\n#define x", "a preprocessor directive is not valid here"),
        (("classes", 0, "proto", 0, "type"), "int x, char", "a comma here"),
        (("classes", 0, "proto", 0, "name"), "1x", "is not a C identifier"),
        (("classes", 0, "args", 0), 3, "model.classes[0].args[0]: a string is wanted"),
        (("classes", 0, "fields", 0, "kind"), "blob", "model.classes[0].fields[0].kind: 'blob' is none of"),
        (("classes", 0, "fields", 0, "type"), "", "is empty"),
        (("classes", 0, "fields", 0, "length"), "4", "unknown member 'length'"),
        (("classes", 0, "fields", 1, "source"), None, "a string is wanted, not nothing"),
        (("form", "includes"), ["a.h"], "model.form.includes[0]: <file>"),
        (("form", "includes"), ['<a.h>\n#error "x"'], "model.form.includes[0]: <file>"),
        (("form", "guard"), True, "a string is wanted, not true or false"),
    ],
)
def test_anything_else_is_an_error_that_names_the_place(path, value, message):
    model = copy.deepcopy(MODEL)
    place = model
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(SourceError) as error:
        header_from_json(model)
    assert message in str(error.value)


@pytest.mark.parametrize(
    "text", ["", "{", "[" * 100000, '{"schema": "a", "schema": "b"}', "[]", "null", '"x"', "1e999", "NaN"]
)
def test_what_is_no_model_is_an_error(text):
    with pytest.raises(SourceError):
        read_json(text)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*MODEL, "name", "kind"]), inner, max_size=5)
    ),
    max_leaves=8,
)


@SLOW
@given(st.data())
def test_damage_is_an_error_or_another_model(data):
    model = copy.deepcopy(MODEL)
    place = model
    while isinstance(place, (dict, list)) and place:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if data.draw(st.booleans()) or not isinstance(place[key], (dict, list)):
            place[key] = data.draw(json_values)
            break
        place = place[key]
    try:
        header = read_json(json.dumps(model))
    except SourceError:
        return
    assert read_json(write_json(header)) == header
