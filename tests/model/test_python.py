"""Events declared from Python, and models written as Python."""

from __future__ import annotations

from typing import Annotated

import pytest
from hypothesis import HealthCheck, given, settings

import strategies
from effort import examples
from tracepoint.errors import SourceError, TracepointError
from tracepoint.model.origin import Code
from tracepoint.model.python.declare import declare, declare_class, declare_tracepoint, define_event
from tracepoint.model.python.fields import (
    array,
    bitmask,
    cpumask,
    dynamic_array,
    scalar,
    sockaddr,
    string,
    struct_field,
    vstring,
)
from tracepoint.model.python.names import resolve_assign, resolve_print
from tracepoint.model.python.types import (
    CArray,
    DeclarationTypeError,
    char_array,
    double,
    event_from_class,
    event_from_function,
    float32,
    s8,
    s32,
    snake_case,
    string_t,
    u8,
    u64,
)
from tracepoint.model.python.write import write_python
from tracepoint.model.read import read_header_text
from tracepoint.model.write import header_of, write_header

SLOW = settings(deadline=None, max_examples=examples(100), suppress_health_check=list(HealthCheck))

ALL = [
    scalar("int", "n"),
    array("u8", "raw", 6),
    array("char", "comm", "TASK_COMM_LEN"),
    struct_field("struct rusage", "usage"),
    dynamic_array("u32", "list", "n"),
    string("name", "dev->name"),
    string("rname", "dev->name", rel=True),
    vstring("msg", "vaf->fmt", "vaf->va"),
    bitmask("bits", 64),
    cpumask("cpus"),
    sockaddr("addr", "sizeof(*sap)", rel=True),
]


def test_equal_to_the_same_declaration_in_a_header():
    event = declare(
        "tick",
        system="demo",
        proto="struct device *dev, int n",
        struct=[scalar("int", "n"), string("name", "dev->name")],
        assign={"n": "n + 1"},
        printk='"%d %s", n, name',
    )
    header = read_header_text("""
        #define TRACE_SYSTEM demo
        TRACE_EVENT(tick, TP_PROTO(struct device *dev, int n), TP_ARGS(dev, n),
            TP_STRUCT__entry(__field(int, n) __string(name, dev->name)),
            TP_fast_assign(__entry->n = n + 1; __assign_str(name, dev->name);),
            TP_printk("%d %s", __entry->n, __get_str(name)));
    """)
    assert header.events == (event,)
    assert event.origin is None


def test_each_kind_of_field_is_assigned_and_read_in_its_way():
    values = {
        "raw": "dev->raw",
        "usage": "*ru",
        "list": "src",
        "bits": "src",
        "cpus": "m",
        "addr": "sap",
        "comm": "c",
    }
    event = declare(
        "all",
        system="demo",
        proto="int n",
        struct=ALL,
        assign=values,
        printk='"", n, raw, list, rname, bits, cpus, addr',
    )
    assert event.assign.text.split("; ") == [
        "memcpy(__entry->raw, dev->raw, sizeof(__entry->raw))",
        "__entry->usage = *ru",
        "memcpy(__get_dynamic_array(list), src, __get_dynamic_array_len(list))",
        "__assign_bitmask(bits, src, 64)",
        "__assign_cpumask(cpus, m)",
        "__assign_rel_sockaddr(addr, sap, sizeof(*sap))",
        "strscpy_pad(__entry->comm, c, sizeof(__entry->comm))",
        "__entry->n = n",
        "__assign_str(name, dev->name)",
        "__assign_rel_str(rname, dev->name)",
        "__assign_vstr(msg, vaf->fmt, vaf->va);",
    ]
    assert event.printk.text == (
        '"", __entry->n, __entry->raw, __get_dynamic_array(list), __get_rel_str(rname), __get_bitmask(bits), '
        "__get_cpumask(cpus), __get_rel_sockaddr(addr)"
    )
    assert read_header_text(write_header([event])).events == (event,)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('"%d", n', '"%d", __entry->n'),
        ('"n", __entry->n, x->n, y.n, n(1), struct n', '"n", __entry->n, x->n, y.n, n(1), struct n'),
        ('"%s", __get_str(name), name', '"%s", __get_str(name), __get_str(name)'),
        ('"%s", n ? name : "n"', '"%s", __entry->n ? __get_str(name) : "n"'),
        ('"%d",n+n', '"%d",__entry->n+__entry->n'),
    ],
)
def test_bare_names_in_printk(text, wanted):
    assert resolve_print(text, ALL) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("n = n;", "__entry->n = n;"),
        ("if (n) raw[0] = n; else n++;", "if (n) __entry->raw[0] = n; else __entry->n++;"),
        ("usage = u; list = usage;", "__entry->usage = u; __entry->list = __entry->usage;"),
        ("int bits = 1; n = bits;", "int bits = 1; __entry->n = bits;"),
        ("__entry->n = dev->n; __assign_str(name, n);", "__entry->n = dev->n; __assign_str(name, n);"),
    ],
)
def test_bare_names_in_assign(text, wanted):
    assert resolve_assign(text, ALL, ["n", "dev"]) == wanted


def test_code_is_taken_as_it_is():
    event = declare(
        "a", system="s", struct=[scalar("int", "n")], assign=Code("n = 1;"), printk=Code('"%d", n')
    )
    assert (event.assign.text, event.printk.text) == ("n = 1;", '"%d", n')


@pytest.mark.parametrize(
    ("arguments", "macro"),
    [
        ({}, "TRACE_EVENT"),
        ({"condition": "n"}, "TRACE_EVENT_CONDITION"),
        ({"reg": "r", "unreg": "u"}, "TRACE_EVENT_FN"),
        ({"reg": "r", "unreg": "u", "condition": "n"}, "TRACE_EVENT_FN_COND"),
        ({"writable_size": "4"}, "TRACE_EVENT_WRITABLE"),
    ],
)
def test_the_variant_follows_from_what_is_given(arguments, macro):
    event = declare("a", system="s", proto="int n", printk='""', **arguments)
    assert event.macro == macro
    assert read_header_text(write_header([event])).events == (event,)


@pytest.mark.parametrize(
    ("declaration", "message"),
    [
        (lambda: declare("a b", system="s", printk='""'), "cannot follow `trace_`"),
        (lambda: declare("a", system="", printk='""'), "system '' is not a name"),
        (lambda: declare("a", system="a:b", printk='""'), "is not a name"),
        (lambda: declare("a", system="s", printk=""), "printk of a is empty"),
        (lambda: declare("a", system="s", printk='"%d"', macro="FOO"), "'FOO' is none of"),
        (lambda: declare("a", system="s", proto="int", printk='""'), "parameter 'int' has no name"),
        (lambda: declare("a", system="s", proto="int x, int x", printk='""'), "two parameters"),
        (lambda: declare("a", system="s", proto="int (x", printk='""'), "is never closed"),
        (lambda: declare("a", system="s", struct=["int x"], printk='""'), "is not a field"),
        (
            lambda: declare("a", system="s", struct=[scalar("int", "x")] * 2, printk='""'),
            "two fields are called 'x'",
        ),
        (
            lambda: declare("a", system="s", struct=[scalar("int", "x")], assign={}, printk='""'),
            "field 'x' gets no value",
        ),
        (lambda: declare("a", system="s", assign={"y": "1"}, printk='""'), "'y' is not a field"),
        (
            lambda: declare(
                "a",
                system="s",
                proto="int n",
                struct=[scalar("int", "n")],
                assign={"n": "1; x()"},
                printk='""',
            ),
            None,
        ),
        (lambda: scalar("int", "a b"), "is not a C identifier"),
        (lambda: scalar("", "a"), "is empty"),
        (lambda: array("int", "a", "1, 2"), "a comma here"),
        (
            lambda: define_event(declare_class("c", printk='""'), "e", system="s", condition="a", reg="b"),
            "at once",
        ),
        (lambda: declare_tracepoint("a", proto="int n", macro="TRACE_EVENT"), "is none of"),
    ],
)
def test_wrong_declarations_are_refused(declaration, message):
    if message is None:
        assert declaration().assign.text == "__entry->n = 1; x();"
        return
    with pytest.raises(SourceError) as error:
        declaration()
    assert message in str(error.value)


def test_a_dynamic_field_may_share_its_name():
    event = declare(
        "a",
        system="s",
        proto="int ring",
        struct=[string("ring", "r->name"), scalar("u32", "ring")],
        assign=Code(""),
        printk='""',
    )
    assert len(event.fields) == 2


@SLOW
@given(strategies.headers())
def test_python_text_declares_the_same(header):
    names: dict[str, object] = {}
    text = write_python(header)
    exec(text, names)
    assert names["header"] == header, text


def test_python_text_is_readable():
    text = write_python(
        read_header_text(
            write_header(
                [
                    declare(
                        "class",
                        system="s",
                        proto="int n",
                        struct=[scalar("int", "n")],
                        assign={},
                        printk='"%d", n',
                    )
                ]
            )
        )
    )
    assert '_class = declare(\n    "class",' in text.replace("'", '"')
    assert "scalar('int', 'n')," in text
    assert "assign='__entry->n = n;'," in text
    names: dict[str, object] = {}
    exec(text, names)
    assert "class" in names["header"]


# --- functions and classes ------------------------------------------------------------------


def order_placed(
    order_id: u64,
    customer: str,
    total: s32,
    ratio: double,
    tag: char_array[8],
    ok: bool,
    x: float32,
    n: int,
    y: float,
) -> None: ...


def test_a_function_is_an_event():
    event = event_from_function(
        order_placed, system="shop", printk='"order=%llu customer=%s tag=%s", order_id, customer, tag'
    )
    assert event.full_name == "shop:order_placed"
    assert str(event.proto) == (
        "u64 order_id, const char *customer, s32 total, double ratio, const char *tag, bool ok, float x, s64 n, double y"
    )
    assert [(f.macro, f.ctype) for f in event.fields[:5]] == [
        ("__field", "u64"),
        ("__string", "char"),
        ("__field", "s32"),
        ("__field", "double"),
        ("__array", "char"),
    ]
    assert event.fields[4].length.text == "8"
    assert (
        event.printk.text
        == '"order=%llu customer=%s tag=%s", __entry->order_id, __get_str(customer), __entry->tag'
    )
    assert "strscpy_pad(__entry->tag, tag, sizeof(__entry->tag));" in event.assign.text
    assert read_header_text(write_header([event])).events == (event,)


def test_a_class_is_an_event():
    class HTTPDone:
        system = "web"
        status: s32
        path: string_t
        small: u8
        tag: Annotated[str, CArray("char", 4)]
        _private: dict
        printk = '"%d %s", status, __entry->path'

    event = event_from_class(HTTPDone)
    assert event.full_name == "web:http_done"
    assert [f.name for f in event.fields] == ["status", "path", "small", "tag"]
    assert event.proto.names == ("status", "path", "small", "tag")


def test_a_method_gives_the_prototype():
    class Done:
        status: s8
        printk = '"%d", status'

        def assign(self, order: Order, count: int, anything, ok: u8) -> None:  # noqa: F821
            self.status = order.status

    event = event_from_class(Done, system="web", name="finished")
    assert event.full_name == "web:finished"
    assert str(event.proto) == "struct Order *order, s64 count, void *anything, u8 ok"
    assert not event.assign


def bare(a): ...
def stars(*a: int): ...
def odd(a: dict): ...
def lists(a: list[int]): ...
def keyword(a: int, *, b: int): ...


class NoPrint:
    a: u8


class NoSystem:
    a: u8
    printk = '""'


class Both:
    system = "s"
    a: u8
    printk = '"%d", a'
    assign = 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: event_from_function(bare, system="s", printk='""'),
            "bare(): parameter 'a' has no annotation",
        ),
        (lambda: event_from_function(stars, system="s", printk='""'), "any number of arguments"),
        (
            lambda: event_from_function(odd, system="s", printk='""'),
            "odd(): parameter 'a': dict cannot be recorded",
        ),
        (lambda: event_from_function(lists, system="s", printk='""'), "cannot be recorded"),
        (lambda: event_from_class(NoPrint, system="s"), "class NoPrint has no text printk"),
        (lambda: event_from_class(NoSystem), "class NoSystem has no system"),
        (lambda: event_from_class(Both), "assign is not a method"),
        (lambda: char_array[0], "a length from 1 to 65535"),
        (lambda: char_array["x"], "a length from 1 to 65535"),
    ],
)
def test_what_cannot_be_recorded_is_a_type_error(make, message):
    with pytest.raises(DeclarationTypeError) as error:
        make()
    assert message in str(error.value)
    assert isinstance(error.value, TypeError)
    assert isinstance(error.value, TracepointError)


def test_names_that_cannot_be_resolved():
    def later(a: NoSuchName) -> None: ...  # noqa: F821

    with pytest.raises(DeclarationTypeError, match="later: an annotation cannot be understood"):
        event_from_function(later, system="s", printk='""')


def test_keyword_parameters_are_parameters():
    assert event_from_function(keyword, system="s", printk='"%d", b').proto.names == ("a", "b")


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("OrderPlaced", "order_placed"), ("A", "a"), ("IOError2Big", "io_error2_big"), ("x", "x")],
)
def test_snake_case(name, wanted):
    assert snake_case(name) == wanted


def test_header_of_has_each_class_once():
    cls = declare_class("c", printk='""')
    header = header_of([define_event(cls, n, system="s") for n in "ab"])
    assert header.classes == (cls,)
    assert header.form.guard == "_TRACE_S_H"
