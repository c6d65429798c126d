"""Call sites in C text: which count, in which function, also through macros."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracepoint.tree.callsites.calls import SiteKind, classify, read_facts
from tracepoint.tree.callsites.macros import HiddenCalls, find_hiders, scope_of
from tracepoint.tree.callsites.text import Define, Functions, function_name, functions_of, read_code

NAMES = {"foo", "foo_enabled_x", "9p_get"}


def sites(text: str) -> list[tuple[str, str, int, str]]:
    return [(s.kind, s.event, s.line, s.function) for s in read_facts(text, NAMES).sites]


def in_function(body: str) -> str:
    return "static int f(void)\n{\n\t" + body + "\n}\n"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("trace_foo(1);", SiteKind.CALL),
        ("trace_foo_rcuidle(1);", SiteKind.CALL),
        ("trace_call__foo(1);", SiteKind.CALL),
        ("trace_foo\n\t\t(1);", SiteKind.CALL),
        ("if (trace_foo_enabled()) g();", SiteKind.ENABLED),
        ("if (tracepoint_enabled(foo)) g();", SiteKind.ENABLED),
        ("register_trace_foo(p, NULL);", SiteKind.REGISTER),
        ("register_trace_prio_foo(p, NULL, 1);", SiteKind.REGISTER),
        ("unregister_trace_foo(p, NULL);", SiteKind.UNREGISTER),
        ("log(x, trace_foo, 1);", SiteKind.REFERENCE),
    ],
)
def test_each_kind_of_mention(body: str, kind: SiteKind) -> None:
    assert sites(in_function(body)) == [(kind, "foo", 3, "f")]


@pytest.mark.parametrize(
    "text",
    [
        in_function("/* trace_foo(1) */"),
        in_function("// trace_foo(1)"),
        in_function('puts("trace_foo(1) \\" trace_foo(2)");'),
        in_function("my_trace_foo(1);"),
        in_function("trace_foobar(1);"),
        in_function("g('\"'); /* \" */ h(); /* trace_foo(1) */"),
        "#if 0\n" + in_function("trace_foo(1);") + "#endif\n",
        "#if 0\n#ifdef A\n#else\n#endif\n" + in_function("trace_foo(1);") + "#endif\n",
        "void trace_foo(int a);\n",
        "static inline void trace_foo(int a)\n{\n}\n",
        "static inline void trace_foo(int a) { }\n",
    ],
)
def test_what_is_no_call(text: str) -> None:
    assert sites(text) == []


def test_the_other_branch_of_if_0_counts() -> None:
    text = "#if 0\nint a;\n#else\n" + in_function("trace_foo(1);") + "#endif\n"
    assert sites(text) == [("call", "foo", 6, "f")]


def test_place_and_text_of_a_call() -> None:
    site = read_facts(in_function('if (x)\n\t\ttrace_foo(a, g(b),\n\t\t\t  "c, )");'), NAMES).sites[0]
    assert (site.line, site.column, site.text) == (4, 3, 'trace_foo(a, g(b), "c, )")')


@pytest.mark.parametrize(
    ("text", "function"),
    [
        ("int a(void) { return 0; }\nint b(void) { trace_foo(1); }\n", "b"),
        ("EXPORT_SYMBOL(x)\nstatic int b(int c,\n\t     int d)\n{\n\ttrace_foo(1);\n}\n", "b"),
        ("#ifdef A\nint a(int x)\n#else\nint a(long x)\n#endif\n{\n\ttrace_foo(1);\n}\n", "a"),
        ("struct s {\n\tint x;\n};\nvoid b(struct s *s)\n{\n\tif (s) {\n\t\ttrace_foo(1);\n\t}\n}\n", "b"),
        ("__printf(1, 2)\nvoid b(const char *f, ...)\n{\nout:\n\ttrace_foo(1);\n}\n", "b"),
        ("int b(int x)\n{\n\twhile (x) {\n\t\tx--;\n}\n\tif (x) {\n\t\ttrace_foo(1);\n\t}\n}\n", "b"),
        ("COMPAT_SYSCALL_DEFINE2(b, int, x, int, y)\n{\n\ttrace_foo(1);\n}\n", "compat_sys_b"),
        ("DEFINE_IDTENTRY_ERRORCODE(exc_b)\n{\n\ttrace_foo(1);\n}\n", "exc_b"),
    ],
)
def test_function_around(text: str, function: str) -> None:
    assert [site[3] for site in sites(text)] == [function]


def test_a_name_that_ends_in_enabled_is_taken_whole() -> None:
    assert classify("trace_foo_enabled_x", NAMES) == (SiteKind.CALL, "foo_enabled_x")
    assert classify("trace_9p_get", NAMES) == (SiteKind.CALL, "9p_get")
    assert classify("trace_bar", NAMES) is None
    assert classify("register_trace_bar", NAMES) is None


def test_exports() -> None:
    text = "EXPORT_TRACEPOINT_SYMBOL(foo);\nEXPORT_TRACEPOINT_SYMBOL_GPL(foo);\n/* EXPORT_TRACEPOINT_SYMBOL(foo); */\n"
    assert read_facts(text, NAMES).exports == [("foo", 1, False), ("foo", 2, True)]


@given(st.text(alphabet="{}()\n;\"'/*\\#a =t_", max_size=300))
def test_blanking_keeps_length_and_lines(text: str) -> None:
    code = read_code(text).code
    assert len(code) == len(text)
    assert [i for i, c in enumerate(code) if c == "\n"] == [i for i, c in enumerate(text) if c == "\n"]
    functions = Functions(code)
    assert all(isinstance(functions.around(i), str) for i in range(0, len(text), 7))
    assert all(name for name, _, _ in functions_of(code))


@given(st.text(max_size=80))
def test_any_head_has_a_name_or_none(head: str) -> None:
    assert isinstance(function_name(head), str)


def hidden(define: str, use: str, *, path: str = "mm/a.c", where: str = "mm/a.c", names: set[str] = NAMES):
    defines = [(path, d) for d in read_facts(define, names).defines]
    found = HiddenCalls(find_hiders(defines), names).find(where, use)
    return [(s.kind, s.event, s.function, s.via) for s in found]


def test_pasted_names() -> None:
    define = (
        "#define T(type, ...) do { if (trace_##type##_enabled()) trace_##type(__VA_ARGS__); } while (0)\n"
    )
    assert hidden(define, in_function("T(foo, 1);")) == [
        (SiteKind.ENABLED, "foo", "f", "T"),
        (SiteKind.CALL, "foo", "f", "T"),
    ]


def test_macro_that_makes_the_name_of_another_one() -> None:
    define = "#define _NAME(n) (trace_##n)\n#define NAME(n) _NAME(n)\n#define ice_trace(n, args...) NAME(n)(args)\n"
    assert hidden(define, in_function("ice_trace(foo, 1);")) == [(SiteKind.CALL, "foo", "f", "ice_trace")]


def test_macro_that_makes_functions() -> None:
    define = "#define D(n) void one_##n(void) { }\\\n void two_##n(void) { trace_##n(1); }\n"
    assert hidden(define, "D(foo)\n") == [(SiteKind.CALL, "foo", "two_foo", "D")]


def test_macro_that_calls_one_event() -> None:
    define = "#define get_id() ({ trace_foo(1); 2; })\n"
    assert hidden(define, in_function("id = get_id();")) == [(SiteKind.CALL, "foo", "f", "get_id")]
    assert [s.kind for s in read_facts(define, NAMES).sites] == [SiteKind.MACRO]


def test_macros_of_other_files_are_not_seen() -> None:
    define = "#define T(type) trace_##type()\n"
    use = in_function("T(foo);")
    assert hidden(define, use, path="mm/b.c") == []
    assert hidden(define, use, path="net/b.h") == []
    assert hidden(define, use, path="mm/b.h") != []
    assert hidden(define, use, path="include/linux/b.h") != []


def test_a_macro_that_never_ends_or_calls_itself_finds_nothing() -> None:
    assert hidden("#define T(type) T(trace_##type) T(type)\n", in_function("T(foo")) == []
    loop = (
        "".join(f"#define L{i}(t) L{i + 1}(t) L{i + 1}(t)\n" for i in range(40))
        + "#define L40(t) trace_##t()\n"
    )
    assert hidden(loop, in_function("L0(foo);")) == []


def test_scopes() -> None:
    assert scope_of("kernel/cgroup/cgroup-internal.h") == "kernel/cgroup/"
    assert scope_of("x.h") == ""
    assert find_hiders([("include/linux/tracepoint.h", Define("D", " D(n) trace_##n", 1))]) == []
