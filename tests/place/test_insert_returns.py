"""Calls before every return, and the value that is returned."""

from __future__ import annotations

import pytest

from place.helpers import ENTRY, RETURNS, c, place, put, refusal


def function(text: str, kind: str = "int ", params: str = "int a, struct page *page") -> str:
    lines = c(text).strip("\n").split("\n") if text else []
    return f"{kind}f({params})\n{{\n" + "".join(f"\t{line}\n" if line else "\n" for line in lines) + "}\n"


VALUES = {
    "constant": ("return -EINVAL;", "trace_x(-EINVAL);\nreturn -EINVAL;"),
    "number": ("return 0;", "trace_x(0);\nreturn 0;"),
    "parameter": ("return a;", "trace_x(a);\nreturn a;"),
    "local": ("int err = g();\n\nreturn err;", "int err = g();\n\ntrace_x(err);\nreturn err;"),
    "arithmetic": ("return a + 2 * a;", "int ret;\n\nret = a + 2 * a;\ntrace_x(ret);\nreturn ret;"),
    "conditional": ("return a ? -EIO : 0;", "int ret;\n\nret = a ? -EIO : 0;\ntrace_x(ret);\nreturn ret;"),
    "parentheses": ("return (a);", "trace_x(a);\nreturn (a);"),
    "not": ("return !a;", "trace_x(!a);\nreturn !a;"),
    "an error pointer": ("return ERR_PTR(-EIO);", "trace_x(ERR_PTR(-EIO));\nreturn ERR_PTR(-EIO);"),
    "a cast": ("return (long)page;", "int ret;\n\nret = (long)page;\ntrace_x(ret);\nreturn ret;"),
    "a call": ("return g();", "int ret;\n\nret = g();\ntrace_x(ret);\nreturn ret;"),
    "memory": ("return page->a;", "int ret;\n\nret = page->a;\ntrace_x(ret);\nreturn ret;"),
    "dereference": ("return *p;", "int ret;\n\nret = *p;\ntrace_x(ret);\nreturn ret;"),
    "side effect": ("return a++;", "int ret;\n\nret = a++;\ntrace_x(ret);\nreturn ret;"),
    "a global": ("return count;", "int ret;\n\nret = count;\ntrace_x(ret);\nreturn ret;"),
    "an existing variable": (
        "int err = 0;\n\nreturn g(err);",
        "int err = 0;\n\nerr = g(err);\ntrace_x(err);\nreturn err;",
    ),
    "a variable of another type": (
        "long err = 0;\n\nreturn g(err);",
        "long err = 0;\nint ret;\n\nret = g(err);\ntrace_x(ret);\nreturn ret;",
    ),
    "a variable that others know": (
        "int err;\n\nh(&err);\nreturn g(err);",
        "int err;\nint ret;\n\nh(&err);\nret = g(err);\ntrace_x(ret);\nreturn ret;",
    ),
    "a static variable": (
        "static int ret;\n\nreturn g(ret);",
        "static int ret;\nint err;\n\nerr = g(ret);\ntrace_x(err);\nreturn err;",
    ),
    "a local array": ("int m[2];\n\nreturn m[a];", "int m[2];\nint ret;\n\nret = m[a];\ntrace_x(ret);\nreturn ret;"),
    "without space": ("return(g());", "int ret;\n\nret = (g());\ntrace_x(ret);\nreturn ret;"),
    "several lines": ("return g(a,\n         a);", "int ret;\n\nret = g(a,\n         a);\ntrace_x(ret);\nreturn ret;"),
    "unbraced": (
        "if (a)\n    return g();\nreturn 1;",
        "int ret;\n\nif (a) {\n    ret = g();\n    trace_x(ret);\n    return ret;\n}\ntrace_x(1);\nreturn 1;",
    ),
    "one line": (
        "if (a) return g();\nreturn 1;",
        "int ret;\n\nif (a) {\n    ret = g();\n    trace_x(ret);\n    return ret;\n}\ntrace_x(1);\nreturn 1;",
    ),
    "arms": (
        "if (a)\n    return g();\nelse\n    return 2;",
        "int ret;\n\nif (a) {\n    ret = g();\n    trace_x(ret);\n    return ret;\n} else {\n    trace_x(2);\n    return 2;\n}",
    ),
    "arms on one line": (
        "if (a) return g(); else return 2;",
        "int ret;\n\nif (a) {\n    ret = g();\n    trace_x(ret);\n    return ret;\n} else {\n    trace_x(2);\n    return 2;\n}",
    ),
    "cases on one line": (
        "switch (a) {\ncase 1: return 3;\ndefault: return g();\n}",
        "int ret;\n\nswitch (a) {\ncase 1:\n    trace_x(3);\n    return 3;\ndefault:\n    ret = g();\n    trace_x(ret);\n    return ret;\n}",
    ),
    "comment on the line": ("return g(); /* c */", "int ret;\n\nret = g(); /* c */\ntrace_x(ret);\nreturn ret;"),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_the_returned_value(name: str) -> None:
    old, new = VALUES[name]
    assert put(function(old), RETURNS, "", "RETURN_VALUE") == function(new)


def test_the_value_inside_of_an_argument_keeps_its_meaning() -> None:
    new = put(function("return -EIO;"), RETURNS, "", "-RETURN_VALUE")
    assert new == function("trace_x(-(-EIO));\nreturn -EIO;")


def test_the_type_of_the_variable_is_that_of_the_function() -> None:
    old = function("return g();", "static noinline __init const struct page *")
    assert "\n\tconst struct page *ret;\n\n\tret = g();\n" in put(old, RETURNS, "", "RETURN_VALUE")
    old = "SYSCALL_DEFINE1(f, int, fd)\n{\n\treturn g(fd);\n}\n"
    assert "{\n\tlong ret;\n\n\tret = g(fd);\n" in put(old, RETURNS, "", "RETURN_VALUE")


def test_a_type_that_is_not_understood_is_refused() -> None:
    old = "static int (*f(int a))(int)\n{\n\treturn g(a);\n}\n"
    assert "the type that f() returns is not understood" in refusal(old, RETURNS, "", "RETURN_VALUE")
    assert "trace_x(a);\n\treturn" in put(old, RETURNS, "", "a")


def test_a_name_of_the_function_or_file_is_not_taken_twice() -> None:
    old = function("ret();\nerr = rc;\nreturn g();")
    assert "int error;\n\n" in put(old, RETURNS, "", "RETURN_VALUE")


def test_declarations_in_a_branch_get_the_variable_before_them() -> None:
    old = "int f(int a)\n{\n#ifdef X\n\tint b;\n#endif\n\n\treturn g();\n}\n"
    assert put(old, RETURNS, "", "RETURN_VALUE").startswith("int f(int a)\n{\n\tint ret;\n#ifdef X\n")


ENDS = {
    "falls off": ("g();", "g();\ntrace_x(a);"),
    "empty": ("", "trace_x(a);"),
    "early return": ("if (a)\n    return;\ng();", "if (a) {\n    trace_x(a);\n    return;\n}\ng();\ntrace_x(a);"),
    "no end": ("for (;;)\n    if (g())\n        return;", "for (;;)\n    if (g()) {\n        trace_x(a);\n        return;\n    }"),
    "endless loop that is left": (
        "for (;;)\n    if (g())\n        break;",
        "for (;;)\n    if (g())\n        break;\ntrace_x(a);",
    ),
    "a break of an inner loop": (
        "return;\nfor (;;)\n    while (a)\n        break;",
        "trace_x(a);\nreturn;\nfor (;;)\n    while (a)\n        break;",
    ),
    "label at the end": ("g();\nout:\n;", "g();\nout:\n;\ntrace_x(a);"),
    "goto at the end": (
        "again:\nif (a)\n    return;\ngoto again;",
        "again:\nif (a) {\n    trace_x(a);\n    return;\n}\ngoto again;",
    ),
    "does not come back": ("if (a)\n    return;\nBUG();", "if (a) {\n    trace_x(a);\n    return;\n}\nBUG();"),
    "switch with default": (
        "switch (a) {\ncase 1:\n    return;\ndefault:\n    return;\n}",
        "switch (a) {\ncase 1:\n    trace_x(a);\n    return;\ndefault:\n    trace_x(a);\n    return;\n}",
    ),
    "switch without default": (
        "switch (a) {\ncase 1:\n    return;\n}",
        "switch (a) {\ncase 1:\n    trace_x(a);\n    return;\n}\ntrace_x(a);",
    ),
    "do once": ("do {\n    g();\n} while (0);", "do {\n    g();\n} while (0);\ntrace_x(a);"),
    "comment at the end": ("g();\n/* done */", "g();\n/* done */\ntrace_x(a);"),
    "in a statement expression": (
        "b = ({\n    if (a)\n        return;\n    1;\n});",
        "b = ({\n    if (a) {\n        trace_x(a);\n        return;\n    }\n    1;\n});\ntrace_x(a);",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_the_end_of_a_void_function(name: str) -> None:
    old, new = ENDS[name]
    assert put(function(old, "void "), RETURNS, "", "a") == function(new, "void ")


def test_the_end_behind_a_conditional() -> None:
    old = "void f(int a)\n{\n\tg();\n#ifdef X\n\th();\n#endif\n}\n"
    assert put(old, RETURNS, "", "a") == old.replace("#endif\n", "#endif\n\ttrace_x(a);\n")


def test_returns_in_every_branch_are_found() -> None:
    old = "int f(int a)\n{\n#ifdef X\n\treturn 1;\n#else\n\treturn 2;\n#endif\n}\n"
    new = put(old, RETURNS, "", "RETURN_VALUE")
    assert new == old.replace("\treturn 1", "\ttrace_x(1);\n\treturn 1").replace(
        "\treturn 2", "\ttrace_x(2);\n\treturn 2"
    )


def test_a_function_that_never_returns_is_refused() -> None:
    assert refusal(function("for (;;)\n    g();", "void "), RETURNS, "", "a") == "f() never returns"


def test_a_void_function_has_no_value() -> None:
    assert "f() returns nothing" in refusal(function("g();", "void "), RETURNS, "", "RETURN_VALUE")


def test_the_value_has_a_meaning_at_returns_only() -> None:
    assert "only in calls at the returns" in refusal(function("g();", "void "), ENTRY, "", "RETURN_VALUE")


def test_returns_that_cannot_be_seen_are_refused() -> None:
    assert "argument of a macro" in refusal(function("WITH(a, { return 1; });\nreturn 2;"), RETURNS, "", "a")
    old = "int f(int a)\n{\n#ifdef X\n\tif (a) {\n\t\tg();\n#else\n\tif (!a) {\n\t\treturn 5;\n#endif\n\t}\n\treturn 1;\n}\n"
    assert "open and close brackets differently" in refusal(old, RETURNS, "", "a")


def test_what_is_not_seen_is_told() -> None:
    old = "#define CHECK(x) do { if (x) return -1; } while (0)\n" + function("CHECK(a);\nreturn g(a);")
    notes = place(old, RETURNS, "", "a").notes
    assert "the macro CHECK() contains a return: no call can be added before it" in notes
    assert any("before the returned value is computed" in note for note in notes)
    notes = place(old, RETURNS, "", "RETURN_VALUE").notes
    assert "the variable `ret` is added for the returned value" in notes
    notes = place(function("if (a)\n    return 1;\nwhile (g())\n    ;"), RETURNS, "", "a").notes
    assert "no call is added at the end of f(), although control seems to reach it" in notes


def test_a_local_without_value_at_some_return_is_refused() -> None:
    old = function("int err;\n\nif (a)\n    return -EINVAL;\nerr = g();\nreturn err;")
    assert "`err` has no value yet: RETURN_VALUE is the returned value" in refusal(old, RETURNS, "", "err")
    assert put(old, RETURNS, "", "RETURN_VALUE").count("trace_x(") == 2
