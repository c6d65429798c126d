"""Huge and absurd input: a clear refusal, in little time."""

from __future__ import annotations

import pytest

from pace import fewer_turns
from place.helpers import AFTER, BEFORE, ENTRY, RETURNS, put, refusal

TURNS = 400  # in millions of an empty loop; each takes less than 60: nothing may be quadratic
N = 50_000


def function(inside: str) -> str:
    return "int f(int a)\n{\n" + inside + "\n}\n"


REFUSED = {
    "10 MB": (function("\tg(a);\n" * 1_500_000), "too many tokens to be a C file"),
    "blocks": (function("{" * N + "}" * N), "more than 60 nested blocks"),
    "ifs": (function("if (a)\n" * N + "g();"), "more than 60 nested statements"),
    "else ifs": (function("if (a) g(); else " * N + "g();"), "more than 250 `else if` in a row"),
    "open braces": (function("{" * N), "has no closing brace"),
    "closing braces": ("}" * N + "int g(void)\n{\n}\n", "defines no function f()"),
    "open parentheses": (function("g" + "(" * N + ";"), "has no partner"),
    "NUL": (function("\tg(\0);"), "a NUL byte: this is not a C source file"),
    "conditionals": ("#if X\n" * N + "#endif\n" * N, "more than 64 nested conditionals"),
    "no line end": ("int f(int a) { if (", "has no closing brace"),
    "only a quote": ('"', "defines no function f()"),
    "a comment without end": ("int f(int a)\n{\n/* \n}\n", "has no closing brace"),
    "statement expressions": (function("b = " + "({ " * N + "1;" + " });" * N), "more than 60 nested blocks"),
    "returns": (function("return 1;\n" * 2000), "f() has more than 500 returns"),
}


@pytest.mark.limits
@pytest.mark.parametrize("name", REFUSED)
def test_absurd_files_are_refused_in_time(name: str) -> None:
    text, reason = REFUSED[name]
    with fewer_turns(TURNS):
        assert reason in refusal(text, RETURNS if name == "returns" else ENTRY, "")


PLACED = {
    "parentheses": function("g(" + "(" * N + "1" + ")" * N + ");"),
    "statements": function("\tg(a);\n" * N),
    "calls in capitals": function("\tMACRO(b);\n" * N),
    "mentions": "int f(int a)\n{\n\tint b;\n\n" + "\tif (a)\n\t\tb = 1;\n" * N + "\tlast(b);\n}\n",
    "declarations": function("\tint b;\n" * N),
    "functions": "int g(void)\n{\n}\n" * N + function("g();"),
    "conditionals in a row": "#if X\nint a;\n#else\nint b;\n#endif\n" * 20_000 + function("g();"),
    "dead code": "#if 0\nint a;\n#endif\n" * 20_000 + function("g();"),
    "one line": function("g(a); " * N),
    "a long expression": function("a = 1" + " + 1" * N + ";"),
    "braces without heads": "= f() {} " * N + ";\n" + function("g();"),
    "operators": function("a = " + "a ? " * 1000 + "1" + " : 2" * 1000 + ";"),
}


@pytest.mark.limits
@pytest.mark.parametrize("name", PLACED)
def test_large_files_are_worked_on_in_time(name: str) -> None:
    text = PLACED[name]
    with fewer_turns(TURNS):
        arg = "b" if name == "mentions" else "a"
        where, statement = (BEFORE, "last(b);") if name == "mentions" else (ENTRY, "")
        new = put(text, where, statement, arg)
        assert new.count("trace_x(") == 1


@pytest.mark.limits
def test_names_that_are_not_there_are_refused_in_time() -> None:
    text = "int g(void)\n{\n}\n" * N
    with fewer_turns(TURNS):
        assert "defines no function f()" in refusal(text, ENTRY)
        assert "is not a statement of this function" in refusal(
            function("\tg(a);\n" * N), AFTER, "g(b, b, b);"
        )
        assert "too long to search for" in refusal(function("\tg(a);\n"), AFTER, "g(b);" * 2000)


@pytest.mark.parametrize("name", ["NUL", "no line end", "only a quote", "a comment without end"])
def test_small_damage_is_refused(name: str) -> None:
    text, reason = REFUSED[name]
    assert reason in refusal(text, ENTRY, "")


def test_bytes_that_are_not_text_stay() -> None:
    old = function('\tg("\udcff\udc00");')
    assert put(old, ENTRY, "", "a") == old.replace("\tg(", "\ttrace_x(a);\n\tg(")
