"""Assignments as programs: input values in, stored bytes out."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assign.common import fire
from effort import examples
from pace import count_turns
from tracepoint.errors import SourceError
from tracepoint.layout.abi import Abi

A = "__field(int, a)"


@pytest.mark.parametrize(
    ("ctype", "given_value", "stored"),
    [
        ("u8", 300, 44),
        ("s8", 200, -56),
        ("u16", -1, 65535),
        ("s32", 0x80000000, -(1 << 31)),
        ("u64", -1, (1 << 64) - 1),
        ("bool", 256, 1),
    ],
)
def test_a_store_converts_as_c_does(ctype, given_value, stored):
    fired = fire(f"__field({ctype}, a)", "__entry->a = p->x;", {"p->x": given_value})
    assert fired["a"] == stored
    assert fired.result.is_complete


def test_a_value_that_does_not_fit_is_reported():
    fired = fire("__field(u8, a)", "__entry->a = p->x;", {"p->x": 300})
    (conversion,) = fired.result.conversions
    assert (conversion.input_, conversion.value, conversion.stored, conversion.field) == (
        "p->x",
        300,
        44,
        "a",
    )


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("n - 1 > u", 1),  # -1 becomes unsigned beside u
        ("n / 2", 0),
        ("-7 / 2", -3),
        ("-7 % 3", -1),
        ("u - 1", -1),
        ("~0u >> 28", 15),
        ("(u8)n + (s8)0xff", -1),
        ("n ? 1 : 2", 2),
        ("s ?: 3", 7),
        ("n || u", 0),
        ("!n && !u", 1),
        ("1 << 3 | 1", 9),
        ("(n, 5)", 5),
        ("sizeof(u64) + sizeof(__entry->a)", 12),
        ("min(3, 7) + max_t(u8, 2, 258)", 5),
        ("BIT(4) | GENMASK(1, 0)", 19),
        ("MAJOR(MKDEV(8, 1)) * 100 + MINOR(MKDEV(8, 1))", 801),
        ("DIV_ROUND_UP(9, 4)", 3),
        ("ilog2(4096)", 12),
        ("IS_ERR((void *)-5) + PTR_ERR((void *)-5)", -4),
        ("ntohs(0x1234)", 0x3412),
        ("({ int x = 4; x * 2; })", 8),
        ("likely(n == 0)", 1),
        ('strlen("four")', 4),
    ],
)
def test_expressions(expression, value):
    fired = fire(A, f"__entry->a = {expression};", {"n": 0, "u": 0, "s": 7})
    assert fired.reasons == []
    assert fired["a"] == value


def test_big_endian_swaps_differ():
    text = "__entry->a = be16_to_cpu(0x1234); __entry->b = le16_to_cpu(0x1234);"
    both = "__field(int, a) __field(int, b)"
    little, big = fire(both, text), fire(both, text, abi=Abi.S390X)
    assert (little["a"], little["b"]) == (0x3412, 0x1234)
    assert (big["a"], big["b"]) == (0x1234, 0x3412)
    assert big.raw("a") == b"\0\0\x12\x34"


def test_long_has_the_size_of_the_abi():
    fired = fire("__field(unsigned long, a)", "__entry->a = p->x;", {"p->x": 1 << 40}, abi=Abi.I386)
    assert fired["a"] == 0
    assert fired.layout["a"].size == 4


@pytest.mark.parametrize(
    ("assign", "value"),
    [
        ("int i; for (i = 0; i < 5; i++) __entry->a += i;", 10),
        ("int i = 3; while (i--) __entry->a++;", 3),
        ("do { __entry->a = 4; } while (0);", 4),
        ("int i; for (i = 0; ; i++) { if (i == 2) continue; if (i > 3) break; __entry->a += i; }", 4),
        (
            "switch (n) { case 1: __entry->a = 1; break; case 2 ... 4: __entry->a = 2; default: __entry->a += 5; }",
            7,
        ),
        ("switch (n) { case 1: __entry->a = 1; break; default: __entry->a = 9; }", 9),
        ("if (n > 2) __entry->a = 1; else __entry->a = 2;", 1),
        ("__entry->a = 1; return; __entry->a = 2;", 1),
        ("int t[3] = { 4, 5, 6 }; __entry->a = t[1] + ARRAY_SIZE(t);", 8),
        ("static const u8 t[] = { [2] = 9 }; __entry->a = t[2] + sizeof(t);", 12),
        ("int x = 1, *q = &x; *q = 6; __entry->a = x;", 6),
        ("u32 v = 0x01020304; u8 *b = (u8 *)&v; __entry->a = b[0];", 4),
        ("int x = 1; { int x = 2; __entry->a = x; } __entry->a += x;", 3),
    ],
)
def test_control_flow_and_locals(assign, value):
    fired = fire(A, assign, {"n": 3})
    assert fired.reasons == []
    assert fired["a"] == value


def test_arrays_and_pointers_into_the_record():
    fields = "__array(u8, addr, 4) __array(u32, list, 3) __array(u8, v6, 16)"
    fired = fire(
        fields,
        "__be32 *p32 = (__be32 *)__entry->addr; struct in6_addr *in6; int i;"
        "*p32 = p->saddr; for (i = 0; i < 3; i++) __entry->list[i] = p->v[i];"
        "in6 = (struct in6_addr *)__entry->v6; *in6 = p->v6addr; in6->s6_addr[15] = 7;",
        {"p->saddr": 0x0100A8C0, "p->v[0]": 1, "p->v[1]": 2, "p->v[2]": 3, "p->v6addr": b"\x20\x01"},
    )
    assert fired.reasons == []
    assert fired.raw("addr") == bytes((192, 168, 0, 1))
    assert struct.unpack("<3I", fired.raw("list")) == (1, 2, 3)
    assert fired.raw("v6") == b"\x20\x01" + bytes(13) + b"\x07"


def test_socket_addresses_store_member_by_member():
    fired = fire(
        "__array(__u8, saddr, sizeof(struct sockaddr_in6))",
        "struct sockaddr_in *v4 = (void *)__entry->saddr; memset(v4, 0xff, sizeof(*v4));"
        "v4->sin_family = 2; v4->sin_port = p->port; v4->sin_addr.s_addr = p->addr;",
        {"p->port": 0x5000, "p->addr": 0x0100007F},
    )
    assert fired.reasons == []
    assert fired.raw("saddr")[:8] == b"\x02\x00\x00\x50\x7f\x00\x00\x01"
    assert fired.raw("saddr")[8:16] == b"\xff" * 8


@pytest.mark.parametrize(
    ("call", "raw"),
    [
        ("memcpy(__entry->c, s, 8)", b"abcdefgh"),
        ("memcpy(__entry->c, s, sizeof(__entry->c))", b"abcdefgh"),
        ("strncpy(__entry->c, s, 8)", b"abcdefgh"),
        ("strscpy(__entry->c, s, 8)", b"abcdefg\0"),
        ("strlcpy(__entry->c, s, 4)", b"abc\0\0\0\0\0"),
        ('strscpy_pad(__entry->c, p ? "x" : s, 8)', b"x" + bytes(7)),
        ('strcpy(__entry->c, "ab")', b"ab" + bytes(6)),
        ("memset(__entry->c, 0x41, 3)", b"AAA" + bytes(5)),
        ('snprintf(__entry->c, 8, "%02x-%d-%s", 10, -1, "zz")', b"0a--1-z\0"),
        ("put_unaligned_be32(0x01020304, __entry->c)", b"\1\2\3\4" + bytes(4)),
    ],
)
def test_copies(call, raw):
    fired = fire("__array(char, c, 8)", call + ";", {"s": "abcdefghij", "p": 1})
    assert fired.reasons == []
    assert fired.raw("c") == raw


def test_a_copy_that_overruns_is_named_and_stores_nothing():
    fired = fire("__array(char, c, 8)", "memcpy(__entry->c, s, 400);", {"s": "abc"})
    assert "400 bytes are copied into 8" in fired.reasons[0]
    assert fired.result.unknown.keys() == {"c"}


def test_unknown_functions_are_leaves_and_may_fill_what_they_get():
    fired = fire(
        "__array(char, rwbs, 8) __field(int, a) __field(int, b)",
        "blk_fill_rwbs(__entry->rwbs, p->opf); __entry->a = foo(p->x, n + 1); bar(&__entry->b);",
        {"__entry->rwbs": "WS", "foo(p->x, n + 1)": 5, "__entry->b": 8},
    )
    assert fired.reasons == []
    assert (fired["rwbs"], fired["a"], fired["b"]) == ("WS", 5, 8)


def test_locals_resolve_to_what_they_stand_for():
    fired = fire(
        "__field(int, a) __field(int, b)",
        "struct bar *q = p->q; const struct baz *z = bar_baz(q); int i = z->i; __entry->a = z->x->y; __entry->b = get(i);",
        {"bar_baz(p->q)->x->y": 3, "bar_baz(p->q)->i": 1, "get(bar_baz(p->q)->i)": 4},
    )
    assert fired.reasons == []
    assert (fired["a"], fired["b"]) == (3, 4)


def test_only_the_path_taken_is_asked_for():
    fired = fire(A, "__entry->a = p ? p->x : q(n);", {"p": 0, "q(n)": 2})
    assert [input_.text for input_ in fired.asked] == ["p", "q(n)"]
    assert fired["a"] == 2


@pytest.mark.parametrize(
    ("assign", "reason"),
    [
        ("goto out;", "goto"),
        ("__entry->a = 1 / (n - n);", "divides by zero"),
        ("for (;;) n++;", "did not end"),
        ("for (;;) ;", "did not end"),
        ("__entry->a = nobody->knows;", "has no value"),
        ("__entry->nothing = 1;", "no field nothing"),
        ("__entry->a = ((struct foo *)0)->x;", "NULL"),
        ("if (nobody) __entry->a = 1;", "has no value"),
        ("int t[2]; t[5] = 1;", "outside"),
        ("int t[1 << 30]; __entry->a = t[0];", "elements"),
    ],
)
def test_what_cannot_be_followed_is_named(assign, reason):
    fired = fire(A, assign, {"n": 1})
    assert any(reason in text for text in fired.reasons), fired.reasons
    assert not fired.result.is_complete


def test_fields_behind_an_unknown_condition_are_unknown_not_wrong():
    fired = fire("__field(int, a) __field(int, b)", "__entry->a = 1; if (x) __entry->a = 2; __entry->b = 3;")
    assert fired.result.unknown.keys() == {"a"}
    assert fired["b"] == 3


def test_unassigned_fields_are_told():
    fired = fire("__field(int, a) __field(int, b)", "__entry->b = 3;")
    assert fired.result.unassigned == ("a",)


def test_strings_behind_pointers_get_an_address():
    fired = fire("__field(const char *, a)", '__entry->a = n ? "yes" : s;', {"n": 1})
    assert fired.result.strings == {fired["a"]: b"yes"}


def test_condition():
    fired = fire(A, "__entry->a = n;", {"n": 0}, macro="TP_CONDITION(n > 0), ")
    assert not fired.result.has_fired
    assert fire(A, "__entry->a = n;", {"n": 1}, macro="TP_CONDITION(n > 0), ").result.has_fired


@pytest.mark.parametrize(
    ("given_value", "stored"), [(1 << 32, 2), (1, 1), (-(1 << 32), 2), ((1 << 32) + 1, 1)]
)
def test_a_condition_sees_no_more_of_a_value_than_its_type_holds(given_value, stored):
    assert (
        fire("__field(int, f)", "if (n) __entry->f = 1; else __entry->f = 2;", {"n": given_value})["f"]
        == stored
    )


@pytest.mark.thorough
def test_work_is_bounded():
    nest = "".join(f"for (int i{k} = 0; i{k} < 9000; i{k}++) " for k in range(8))
    fired = fire(A, nest + "__entry->a++;")
    assert any("did not end" in text for text in fired.reasons)


@pytest.mark.thorough
def test_many_pieces_that_cannot_be_followed_cost_in_proportion():
    with count_turns() as few:
        fire(A, "int i; for (i = 0; i < 1000; i++) __entry->a += p->x[i];", {"p->x[0]": 2})
    with count_turns() as many:
        fire(A, "int i; for (i = 0; i < 8000; i++) __entry->a += p->x[i];", {"p->x[0]": 2})
    # In proportion they cost 8 times as much; each compared with all before, 50 times.
    assert many.millions < 20 * few.millions


@pytest.mark.thorough
@settings(max_examples=examples(150), deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "__entry->a = n;", "int i;", "i = 3;", "if (n)", "else", "{", "}", "for (i = 0; i < n; i++)",
                "__entry->a += p->x[i];", "u8 *q = (u8 *)__entry->c;", "q++;", "*q = 1;", "memcpy(q, s, n);",
                "__assign_str(t, s);", "__entry->c[n] = 1;", "switch (n) {", "case 1:", "default:", "break;",
                "return;", "foo(&i);", "__entry->a = ({ n; });", 'snprintf(__entry->c, n, "%d", i);',
            ]
        ),
        max_size=12,
    ),
    st.integers(-3, 1 << 20),
)  # fmt: skip
def test_any_program_ends_without_a_crash(parts, n):
    try:
        fired = fire(
            "__field(int, a) __array(char, c, 8) __string(t, s)",
            " ".join(parts),
            {"n": n, "s": "text", "foo": 1, "p->x[0]": 2},
        )
    except (SourceError, KeyError):
        return
    assert len(fired.result.record) >= 24


def test_a_function_given_the_end_of_the_record_stores_nothing():
    fired = fire(
        "__field(u32, n) __dynamic_array(u8, data, 0)",
        "__entry->n = n; fill(p, __get_dynamic_array(data));",
        {"n": 7},
    )
    assert fired["n"] == 7
    assert fired.result.record[fired.layout.size_bytes :] == b""


def test_a_list_without_an_end_is_left_where_its_text_grows_long():
    class Always(dict):
        def get(self, _text):
            return 1

    statements = "struct q *q = NULL; while ((q = next_of_a_long_list(p, q))) __entry->n = q->id;"
    fired = fire("__field(u32, n)", statements, Always(any=1))
    assert "an input of more than 1000 characters" in fired.reasons[0]
    assert len(fired.asked) < 150
    assert max(len(input_.text) for input_ in fired.asked) <= 1000
