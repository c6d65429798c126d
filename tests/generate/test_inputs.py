"""Input mode: what stands in the place of an input, and the line that sets it."""

from __future__ import annotations

import pytest

from generate.samples import TICK, header_of_text, inputs_of, one_event
from tracepoint.errors import GenerateError
from tracepoint.generate import kernel_module, plan_inputs


def assigned(fields: str, assign: str, **more: str) -> str:
    """The TP_fast_assign of a module in input mode, with variables spelt as their inputs in <>."""
    header = one_event(fields, assign, **more)
    inputs = inputs_of(header)
    text = kernel_module(header, name="m", inputs=inputs)["m_trace.h"]
    body = text.partition("TP_fast_assign(")[2].partition("TP_printk")[0]
    plan = plan_inputs(header.events, inputs)
    for variable in reversed(plan.of_event("one")):
        body = body.replace(variable.name, f"<{variable.text}>")
    return " ".join(body.split()).removesuffix("),").strip()


INT = "__field(int, a)"
CASES = {
    "plain": (INT, "__entry->a = foo->bar;", "__entry->a = <foo->bar>;"),
    "parameter": (INT, "__entry->a = n + 1;", "__entry->a = <n> + 1;"),
    "call": (INT, "__entry->a = page_to_pfn(foo->page);", "__entry->a = <page_to_pfn(foo->page)>;"),
    "transparent": (INT, "__entry->a = READ_ONCE(foo->x);", "__entry->a = <foo->x>;"),
    "leading local": (INT, "struct q *q = foo->q; __entry->a = q->id;", "__entry->a = <foo->q->id>;"),
    "local set later": (INT, "struct q *q; q = foo->q; __entry->a = q->id;", "__entry->a = <foo->q->id>;"),
    "local number": (INT, "int i = foo->n; __entry->a = i * 2;", "int i = <foo->n>; __entry->a = i * 2;"),
    "ternary": (
        INT,
        "__entry->a = foo->q ? foo->q->id : -1;",
        "__entry->a = <foo->q> ? <foo->q->id> : -1;",
    ),
    "chosen pointer": (
        INT,
        "struct q *q = foo->q ? foo->q : NULL; __entry->a = q ? q->id : 0;",
        "struct q *q = <foo->q> ? <foo->q> : NULL; __entry->a = q ? <foo->q> ? <foo->q->id> : 0 : 0;",
    ),
    "branches": (
        INT,
        "if (foo->x) __entry->a = 1; else __entry->a = foo->y;",
        "if (<foo->x>) { __entry->a = 1; } else { __entry->a = <foo->y>; }",
    ),
    "array in a loop": (
        "__array(u32, a, 2)",
        "int i; for (i = 0; i < 2; i++) __entry->a[i] = foo->v[i];",
        "int i; for (i = 0; i < 2; i++) __entry->a[i] = <foo->v[*]>[i];",
    ),
    "copy": ("__array(u8, a, 6)", "memcpy(__entry->a, foo->mac, 6);", "memcpy(__entry->a, <foo->mac>, 6);"),
    "address of": (
        "__array(u8, a, 4)",
        "memcpy(__entry->a, &foo->ip, 4);",
        "memcpy(__entry->a, <foo->ip>, 4);",
    ),
    "struct": (
        "__field_struct(struct in6_addr, a)",
        "__entry->a = foo->peer;",
        "__entry->a = *(typeof(__entry->a) *)<foo->peer>;",
    ),
    "string": ("__string(a, foo->name)", "__assign_str(a, foo->name);", "__assign_str(a);"),
    "own function": (
        "__array(u8, a, 4)",
        "fill_address(foo, __entry->a);",
        "memcpy(&__entry->a, <__entry->a>, sizeof(__entry->a));",
    ),
    "statement expression": (
        INT,
        "__entry->a = ({ int i = foo->b; i + 1; });",
        "__entry->a = ({ int i = <foo->b>; i + 1; });",
    ),
    "value chosen in a statement expression": (
        INT,
        "__entry->a = ({ int i = foo->b; i ? 1 : 2; });",
        "__entry->a = ({ int i = <foo->b>; i ? 1 : 2; });",
    ),
    "locals of one declaration": (
        INT,
        "int i = 0, k = n; i += k; __entry->a = i;",
        "int i = 0; int k = <n>; i += k; __entry->a = i;",
    ),
    "statement expression as a statement": (
        INT,
        "({ if (foo->x) __entry->a = 1; });",
        "({ if (<foo->x>) __entry->a = 1; });",
    ),
    "mixed operators": (INT, "__entry->a = 1 << n - 1;", "__entry->a = 1 << (<n> - 1);"),
    "switch": (
        INT,
        "switch (foo->x) { case 1: __entry->a = 5; break; default: __entry->a = n; }",
        "switch (<foo->x>) { case 1: __entry->a = 5; break; default: __entry->a = <n>; }",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_inputs_become_variables(name: str) -> None:
    fields, before, after = CASES[name]
    assert assigned(fields, before) == after


def test_sources_lengths_and_conditions_are_inputs_too() -> None:
    header = header_of_text(
        "#define TRACE_SYSTEM demo\nTRACE_EVENT_CONDITION(one, TP_PROTO(struct foo *foo), TP_ARGS(foo),"
        " TP_CONDITION(foo->is_on), TP_STRUCT__entry(__string(s, foo->name) __dynamic_array(u8, d, foo->len)),"
        " TP_fast_assign(__assign_str(s, foo->name); memcpy(__get_dynamic_array(d), foo->data, foo->len);),"
        ' TP_printk("x"));'
    )
    text = kernel_module(header, name="m", inputs=inputs_of(header))["m_trace.h"]
    rest = text.replace("TP_PROTO(struct foo *foo)", "").replace("TP_ARGS(foo)", "")
    assert "foo->" not in rest
    assert "TP_CONDITION(one_in0)" in text


@pytest.mark.parametrize(
    ("assign", "reason"),
    [
        ("goto out; out: __entry->a = 1;", "goto is not followed"),
        ("take_lock(foo); __entry->a = 1;", r"take_lock\(\) does something that cannot be known"),
    ],
)
def test_what_cannot_be_replaced_names_event_and_expression(assign: str, reason: str) -> None:
    header = one_event(INT, assign)
    with pytest.raises(GenerateError, match=f"demo:one: .*{reason}"):
        kernel_module(header, name="m", inputs=inputs_of(header))


def test_types_of_the_variables() -> None:
    header = header_of_text(TICK)
    plan = plan_inputs(header.events, inputs_of(header))
    got = {variable.text: (variable.ctype, variable.size) for variable in plan.of_event("tick")}
    assert got == {
        "name": ("char *", 4096),
        "n": ("int", 4),
        "is_hot": ("bool", 1),
        "where": ("void *", 8),
        "list": ("void *", 4096),
    }


def test_line() -> None:
    header = header_of_text(TICK)
    plan = plan_inputs(header.events, inputs_of(header))
    order = [variable.text for variable in plan.of_event("tick")]
    values = {"name": "a\0b", "n": -2, "is_hot": 7, "where": 0x1000, "list": [1, 0x203]}
    words = dict(zip(order, plan.line("tick", values).split(" "), strict=True))
    assert words == {
        "name": "=61",
        "n": "=feffffff",
        "is_hot": "=01",
        "where": "=0010000000000000",
        "list": "=01000302",
    }
    assert plan.line("tick", {}) == "-"
    assert plan.line("tick", {"name": "", "list": b"\x00\xff"}).startswith("=")


def test_elements_of_an_array_are_one_word() -> None:
    header = one_event("__array(u32, a, 2)", "int i; for (i = 0; i < 2; i++) __entry->a[i] = foo->v[i];")
    plan = plan_inputs(header.events, inputs_of(header))
    assert plan.line("one", {"foo->v[1]": 5}) == "=0000000005"
    with pytest.raises(GenerateError, match="index 99999"):
        plan.line("one", {"foo->v[99999]": 5})


def test_formats_have_no_directives() -> None:
    header = one_event(
        "__vstring(a, vaf->fmt, vaf->va)",
        "__assign_vstr(a, vaf->fmt, vaf->va);",
        proto="struct va_format *vaf",
        args="vaf",
    )
    plan = plan_inputs(header.events, inputs_of(header))
    assert plan.line("one", {"vaf->fmt": "5%d"}) == "=" + b"5%%d".hex()


@pytest.mark.parametrize("value", ["text", b"bytes", [1]])
def test_a_number_must_be_one(value: object) -> None:
    header = one_event(INT, "__entry->a = foo->b;")
    plan = plan_inputs(header.events, inputs_of(header))
    with pytest.raises(GenerateError, match=r"foo->b: .* is not a number"):
        plan.line("one", {"foo->b": value})


def test_too_long_a_value() -> None:
    header = one_event("__string(a, foo->s)", "__assign_str(a, foo->s);")
    plan = plan_inputs(header.events, inputs_of(header))
    with pytest.raises(GenerateError, match="5000 bytes are more than a record holds"):
        plan.line("one", {"foo->s": "x" * 5000})
