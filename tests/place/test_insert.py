"""Where calls go: entry, before and after statements, and the shape of what is written."""

from __future__ import annotations

import pytest

from place.helpers import AFTER, BEFORE, ENTRY, RETURNS, body, c, place, put, refusal


def check(old: str, expected: str, where: str, statement: str = "", *args: str, **more: object) -> None:
    text = body(old)
    assert put(text, where, statement, *args, **more) == body(expected)  # type: ignore[arg-type]


ENTRIES = {
    "no declarations": ("g();", "trace_x(a);\ng();"),
    "declarations": ("int b;\n\ng();", "int b;\n\ntrace_x(a);\ng();"),
    "no blank line after declarations": ("int b;\ng();", "int b;\n\ntrace_x(a);\ng();"),
    "only declarations": ("int b;", "int b;\n\ntrace_x(a);"),
    "empty": ("", "trace_x(a);"),
    "a long comment stands apart": (
        "int b;\n\n/*\n * go\n */\ng();",
        "int b;\n\ntrace_x(a);\n\n/*\n * go\n */\ng();",
    ),
    "comment belongs to the statement": ("int b;\n\n/* go */\ng();", "int b;\n\ntrace_x(a);\n/* go */\ng();"),
    "static and typedef names": (
        "static int n;\nfoo_t *p = q(a);\nstruct s s = { 1 }, *r;\n\ng();",
        "static int n;\nfoo_t *p = q(a);\nstruct s s = { 1 }, *r;\n\ntrace_x(a);\ng();",
    ),
    "macros that declare": (
        "DEFINE_WAIT(wait);\nLIST_HEAD(list);\nDECLARE_BITMAP(map, 8);\n\ng(&wait);",
        "DEFINE_WAIT(wait);\nLIST_HEAD(list);\nDECLARE_BITMAP(map, 8);\n\ntrace_x(a);\ng(&wait);",
    ),
    "a macro that declares by what follows": (
        "ODD_THING(cursor, a);\nint b;\n\ng();",
        "ODD_THING(cursor, a);\nint b;\n\ntrace_x(a);\ng();",
    ),
    "a macro that declares by its use": (
        "ODD_THING(cursor, a);\n\ng(&cursor);",
        "ODD_THING(cursor, a);\n\ntrace_x(a);\ng(&cursor);",
    ),
    "a macro that does not declare": ("VM_BUG_ON(a);\ng();", "trace_x(a);\nVM_BUG_ON(a);\ng();"),
    "function pointer": ("int (*fn)(int) = g;\n\nfn(1);", "int (*fn)(int) = g;\n\ntrace_x(a);\nfn(1);"),
    "local label": ("__label__ out;\n\ng();", "__label__ out;\n\ntrace_x(a);\ng();"),
    "guard": (
        "int b;\nguard(mutex)(&lock);\n\ng();",
        "int b;\nguard(mutex)(&lock);\n\ntrace_x(a);\ng();",
    ),
    "attribute": ("int b __maybe_unused;\n\ng();", "int b __maybe_unused;\n\ntrace_x(a);\ng();"),
    "type with attribute": (
        "__maybe_unused struct s *b = h(a);\n\ng();",
        "__maybe_unused struct s *b = h(a);\n\ntrace_x(a);\ng();",
    ),
    "label": ("int b;\n\nagain:\ng();\ngoto again;", "int b;\n\ntrace_x(a);\nagain:\ng();\ngoto again;"),
    "declarations after statements stay": ("g();\nint b = 1;", "trace_x(a);\ng();\nint b = 1;"),
    "static_assert": ("static_assert(1);\nint b;\n\ng();", "static_assert(1);\nint b;\n\ntrace_x(a);\ng();"),
    "multiplication is none": ("b * c + d;\ng();", "trace_x(a);\nb * c + d;\ng();"),
}


@pytest.mark.parametrize("name", ENTRIES)
def test_entry_is_after_the_leading_declarations(name: str) -> None:
    check(*ENTRIES[name], ENTRY, "", "a")


def test_entry_goes_behind_the_conditional_of_declarations() -> None:
    old = "void f(int a)\n{\n\tint b;\n#ifdef X\n\tint c;\n#endif\n\tg();\n}\n"
    assert put(old, ENTRY, "", "a") == old.replace("#endif\n", "#endif\n\n\ttrace_x(a);\n")


def test_entry_goes_before_the_conditional_of_statements() -> None:
    old = "void f(int a)\n{\n\tint b;\n\n#ifdef X\n\th();\n#endif\n\tg();\n}\n"
    assert put(old, ENTRY, "", "a") == old.replace("\n#ifdef", "\n\ttrace_x(a);\n#ifdef")


BESIDE = {
    "before": ("g();\nh();", "g();\ntrace_x(a);\nh();", BEFORE, "h();"),
    "after": ("g();\nh();", "g();\ntrace_x(a);\nh();", AFTER, "g();"),
    "after the last": ("g();\nh();", "g();\nh();\ntrace_x(a);", AFTER, "h();"),
    "text without semicolon": ("g();\nh();", "g();\ntrace_x(a);\nh();", AFTER, "g()"),
    "white space does not matter": ("g(a,  b);\nh();", "g(a,  b);\ntrace_x(a);\nh();", AFTER, "g( a,b ) ;"),
    "comment above": ("g();\n/* why */\nh();", "g();\ntrace_x(a);\n/* why */\nh();", BEFORE, "h();"),
    "comment at the end": ("g(); /* why */\nh();", "g(); /* why */\ntrace_x(a);\nh();", AFTER, "g();"),
    "a long comment at the end": (
        "g(); /* why\n      * and how */\nh();",
        "g(); /* why\n      * and how */\ntrace_x(a);\nh();",
        AFTER,
        "g();",
    ),
    "a comment that stands apart": ("g();\n/* a part */\n\nh();", "g();\n/* a part */\n\ntrace_x(a);\nh();", BEFORE, "h();"),
    "an if by its head": (
        "if (a) {\n    g();\n}\nh();",
        "trace_x(a);\nif (a) {\n    g();\n}\nh();",
        BEFORE,
        "if (a)",
    ),
    "after an if": ("if (a)\n    g();\nh();", "if (a)\n    g();\ntrace_x(a);\nh();", AFTER, "if (a)"),
    "after an if and else": (
        "if (a)\n    g();\nelse\n    k();\nh();",
        "if (a)\n    g();\nelse\n    k();\ntrace_x(a);\nh();",
        AFTER,
        "if (a)",
    ),
    "the only body of an if": (
        "if (a)\n    g();\nh();",
        "if (a) {\n    g();\n    trace_x(a);\n}\nh();",
        AFTER,
        "g();",
    ),
    "both arms get braces": (
        "if (a)\n    g();\nelse\n    h();",
        "if (a) {\n    g();\n} else {\n    trace_x(a);\n    h();\n}",
        BEFORE,
        "h();",
    ),
    "the other arm has braces": (
        "if (a) {\n    g();\n    k();\n} else\n    h();",
        "if (a) {\n    g();\n    k();\n} else {\n    h();\n    trace_x(a);\n}",
        AFTER,
        "h();",
    ),
    "a chain of arms": (
        "if (a)\n    g();\nelse if (b)\n    h();\nelse\n    k();",
        "if (a) {\n    g();\n} else if (b) {\n    trace_x(a);\n    h();\n} else {\n    k();\n}",
        BEFORE,
        "h();",
    ),
    "comment between arms": (
        "if (a)\n    g(); /* one */\n/* two */\nelse\n    h();",
        "if (a) {\n    trace_x(a);\n    g(); /* one */\n/* two */\n} else {\n    h();\n}",
        BEFORE,
        "g();",
    ),
    "comment after the head": (
        "if (a) /* yes */\n    g();",
        "if (a) { /* yes */\n    g();\n    trace_x(a);\n}",
        AFTER,
        "g();",
    ),
    "on one line with its if": ("if (a) g();\nh();", "if (a) {\n    trace_x(a);\n    g();\n}\nh();", BEFORE, "g();"),
    "arms on one line": (
        "if (a) g(); else h();",
        "if (a) {\n    g();\n    trace_x(a);\n} else {\n    h();\n}",
        AFTER,
        "g();",
    ),
    "body of a for": (
        "for (i = 0; i < 3; i++)\n    g();\nh();",
        "for (i = 0; i < 3; i++) {\n    trace_x(a);\n    g();\n}\nh();",
        BEFORE,
        "g();",
    ),
    "body of a kernel loop": (
        "list_for_each_entry(p, &list, node)\n    g(p);\nh();",
        "list_for_each_entry(p, &list, node) {\n    g(p);\n    trace_x(a);\n}\nh();",
        AFTER,
        "g(p);",
    ),
    "in the block of a kernel loop": (
        "hash_for_each(t, b, p, node) {\n    g(p);\n}",
        "hash_for_each(t, b, p, node) {\n    g(p);\n    trace_x(a);\n}",
        AFTER,
        "g(p)",
    ),
    "body of a do": (
        "do\n    g();\nwhile (a);",
        "do {\n    g();\n    trace_x(a);\n} while (a);",
        AFTER,
        "g();",
    ),
    "several on a line": ("g(); h(); k();", "g();\ntrace_x(a);\nh(); k();", BEFORE, "h();"),
    "after one of several": ("g(); h();", "g();\ntrace_x(a);\nh();", AFTER, "g();"),
    "after a case label": (
        "switch (a) {\ncase 1:\n    g();\n}",
        "switch (a) {\ncase 1:\n    trace_x(a);\n    g();\n}",
        AFTER,
        "case 1:",
    ),
    "on the line of its label": (
        "switch (a) {\ncase 1: g(); break;\n}",
        "switch (a) {\ncase 1:\n    trace_x(a);\n    g(); break;\n}",
        BEFORE,
        "g();",
    ),
    "after a label": ("out:\n    g();", "out:\n    trace_x(a);\n    g();", AFTER, "out:"),
    "a label by its name": ("out:\n    g();", "out:\n    trace_x(a);\n    g();", AFTER, "out"),
    "before a label that is fallen into": ("g();\nout:\n    h();", "g();\ntrace_x(a);\nout:\n    h();", BEFORE, "out:"),
    "in a statement expression": (
        "b = ({\n    int n = g();\n\n    h(n);\n    n;\n});",
        "b = ({\n    int n = g();\n\n    h(n);\n    trace_x(a);\n    n;\n});",
        AFTER,
        "h(n);",
    ),
    "a macro without semicolon": ("COUNT(a)\ng();", "COUNT(a)\ntrace_x(a);\ng();", AFTER, "COUNT(a)"),
    "after a switch": (
        "switch (a) {\ncase 1:\n    break;\n}\nh();",
        "switch (a) {\ncase 1:\n    break;\n}\ntrace_x(a);\nh();",
        AFTER,
        "switch (a)",
    ),
    "after a pair of macros": (
        "do_each_thread(g, p) {\n    h();\n} while_each_thread(g, p);\nk();",
        "do_each_thread(g, p) {\n    h();\n} while_each_thread(g, p);\ntrace_x(a);\nk();",
        AFTER,
        "do_each_thread(g, p)",
    ),
    "after the declarations that follow": (
        "int b = 1;\nint d;\n\ng();",
        "int b = 1;\nint d;\n\ntrace_x(a);\ng();",
        AFTER,
        "int b = 1;",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BESIDE)
def test_beside_a_statement(name: str) -> None:
    old, expected, where, statement = BESIDE[name]
    check(old, expected, where, statement, "a")


UNREACHED = {
    "after return": ("return;", AFTER, "return;", "after this `return` is never reached"),
    "after goto": ("goto out;\nout:\ng();", AFTER, "goto out;", "after this `goto` is never reached"),
    "after break": ("for (;;) {\n    break;\n}", AFTER, "break;", "after this `break` is never reached"),
    "after continue": ("while (a) {\n    continue;\n}", AFTER, "continue;", "after this `continue` is never"),
    "after an endless loop": (
        "for (;;) {\n    g();\n}",
        AFTER,
        "for (;;)",
        "after this `for` is never reached",
    ),
    "after while 1": ("while (1)\n    g();", AFTER, "while (1)", "after this `while` is never reached"),
    "after arms that all leave": (
        "if (a)\n    return;\nelse\n    goto out;\nout:\ng();",
        AFTER,
        "if (a)",
        "after this `if` is never reached",
    ),
    "after panic": ("panic(a);", AFTER, "panic(a);", "after this `panic` is never reached"),
    "before a label after a goto": (
        "goto b;\nout:\ng();\nb:\nh();",
        BEFORE,
        "out:",
        "control does not fall into it",
    ),
    "before the first case": (
        "switch (a) {\ncase 1:\n    g();\n}",
        BEFORE,
        "case 1:",
        "between `switch` and its first `case` never runs",
    ),
    "before a case after a break": (
        "switch (a) {\ncase 1:\n    break;\ncase 2:\n    g();\n}",
        BEFORE,
        "case 2:",
        "is never reached",
    ),
    "between two labels": (
        "switch (a) {\ncase 1:\ncase 2:\n    g();\n}",
        AFTER,
        "case 1:",
        "between two labels of a switch would fall through",
    ),
    "after fallthrough": (
        "switch (a) {\ncase 1:\n    g();\n    fallthrough;\ncase 2:\n    h();\n}",
        AFTER,
        "fallthrough;",
        "is never reached",
    ),
    "in the header of a for": ("for (i = 0; i < 3; i++)\n    g();", AFTER, "i++", "in the header of a `for`"),
    "a part of a statement": ("b = g(a) + 1;", AFTER, "g(a)", "only part of a statement"),
    "not there": ("g_one(a);", AFTER, "g_ome(a);", "did you mean `g_one(a);`?"),
    "twice": ("g();\nh();\ng();", AFTER, "g();", "is 2 statements here, in lines 3, 5: give the line"),
    "the value of a statement expression": (
        "b = ({ g(); a; });",
        AFTER,
        "a;",
        "the value of a statement expression",
    ),
    "before a declaration": ("int b;\nint d;\n\ng();", BEFORE, "int d;", "would be a statement before it"),
    "after a label before a declaration": (
        "switch (a) {\ncase 1:\n    int b = 2;\n    g(b);\n}",
        AFTER,
        "case 1:",
        "a statement before a declaration",
    ),
    "an if after else": (
        "if (a)\n    g();\nelse if (b)\n    h();",
        BEFORE,
        "if (b)",
        "is directly after `else`",
    ),
}


@pytest.mark.parametrize("name", UNREACHED)
def test_places_that_make_no_sense_are_refused(name: str) -> None:
    old, where, statement, reason = UNREACHED[name]
    assert reason in refusal(body(old), where, statement, "a")


def test_a_line_chooses_among_equal_statements() -> None:
    text = body("g();\nh();\ng();")
    assert put(text, BEFORE, "g();", "a", line=5) == body("g();\nh();\ntrace_x(a);\ng();")


LINES = {
    "the statement of the line": ("g();\nh();", 4, BEFORE, "g();\ntrace_x(a);\nh();"),
    "within a long statement": ("g(a,\n  b,\n  c);\nh();", 4, AFTER, "g(a,\n  b,\n  c);\ntrace_x(a);\nh();"),
    "within a head": (
        "if (a &&\n    b)\n    g();",
        4,
        BEFORE,
        "trace_x(a);\nif (a &&\n    b)\n    g();",
    ),
    "the end of a block": (
        "if (a) {\n    g();\n}\nh();",
        5,
        AFTER,
        "if (a) {\n    g();\n}\ntrace_x(a);\nh();",
    ),
    "a label and its statement": (
        "switch (a) {\ncase 1: g();\n}",
        4,
        AFTER,
        "switch (a) {\ncase 1: g();\n    trace_x(a);\n}",
    ),
}


@pytest.mark.parametrize("name", LINES)
def test_a_line_means_its_statement(name: str) -> None:
    old, line, where, expected = LINES[name]
    check(old, expected, where, "", "a", line=line)


BAD_LINES = {
    "outside": ("g();", 9, BEFORE, "line 9 is not in this function, which is in lines 2 to 4"),
    "two statements": ("g(); h();", 3, BEFORE, "line 3 has 2 statements"),
    "nothing": (
        "g();\n\n/* c */\nh();",
        5,
        BEFORE,
        "line 5 has no statement: the nearest begin in line 3 and 6",
    ),
    "a brace": ("if (a) {\n    g();\n}", 5, BEFORE, "line 5 begins or ends a block"),
    "else": ("if (a) {\n    g();\n} else {\n    h();\n}", 5, AFTER, "line 5 begins or ends a block"),
    "the function's brace": ("g();", 4, AFTER, "use its entry or its returns"),
}


@pytest.mark.parametrize("name", BAD_LINES)
def test_lines_without_one_statement_are_refused(name: str) -> None:
    old, line, where, reason = BAD_LINES[name]
    assert reason in refusal(body(old), where, "", "a", line=line)


def test_conditionals_keep_their_branch() -> None:
    old = "void f(int a)\n{\n#ifdef X\n\tg();\n#else\n\th();\n#endif\n\tk();\n}\n"
    assert put(old, AFTER, "g();", "a") == old.replace("g();\n", "g();\n\ttrace_x(a);\n")
    assert put(old, BEFORE, "h();", "a") == old.replace("\th();", "\ttrace_x(a);\n\th();")
    assert put(old, BEFORE, "k();", "a") == old.replace("\tk();", "\ttrace_x(a);\n\tk();")


def test_statements_across_a_conditional_are_refused() -> None:
    old = "void f(int a)\n{\n#ifdef X\n\tif (a)\n#endif\n\t\tg();\n\tb = 1 +\n#ifdef X\n\t\t2;\n#else\n\t\t3;\n#endif\n}\n"
    assert "crosses the boundary of the branch `#ifdef X`" in refusal(old, BEFORE, "if (a)", "a")
    assert "a conditional begins or ends between" in refusal(old, AFTER, "g();", "a")


def test_a_conditional_inside_of_a_statement_does_not_matter() -> None:
    old = "void f(int a)\n{\n\tg(a,\n#ifdef X\n\t  1,\n#endif\n\t  2);\n\th();\n}\n"
    assert put(old, AFTER, "", "a", line=3) == old.replace("\th();", "\ttrace_x(a);\n\th();")


def test_dead_code_is_refused_as_such() -> None:
    old = "void f(int a)\n{\n#if 0\n\tg(1);\n#endif\n\th();\n}\n"
    assert "is under `#if 0`, which is never compiled" in refusal(old, AFTER, "g(1);", "a")
    assert "is under `#if 0`" in refusal(old, AFTER, "", "a", line=4)


def test_branches_with_other_braces_are_not_entered() -> None:
    old = "void f(int a)\n{\n#ifdef X\n\tif (a) {\n\t\tg(1);\n#else\n\tif (!a) {\n\t\tg(2);\n#endif\n\t\th();\n\t}\n}\n"
    assert put(old, BEFORE, "h();", "a") == old.replace("\t\th();", "\t\ttrace_x(a);\n\t\th();")
    assert "open and close brackets differently" in refusal(old, AFTER, "g(2);", "a")


LONG = ("page->mapping->host->i_ino", "page->mapping->host->i_size", "page->index")


def test_long_calls_are_wrapped_below_the_first_argument() -> None:
    new = put(body("g();"), BEFORE, "g();", *LONG)
    assert new == body(
        "trace_x(page->mapping->host->i_ino, page->mapping->host->i_size,\n    page->index);\ng();"
    )
    assert all(len(line.expandtabs(8)) <= 80 for line in new.split("\n"))


def test_costly_arguments_are_guarded() -> None:
    assert put(body("g();"), BEFORE, "g();", "page_count(page)") == body(
        "if (trace_x_enabled())\n    trace_x(page_count(page));\ng();"
    )
    found = place(body("g();"), BEFORE, "g();", "page_count(page)")
    assert any("page_count() may be expensive" in note for note in found.notes)


@pytest.mark.parametrize(
    "arg", ["page_to_pfn(page)", "READ_ONCE(page->flags)", "a + 1", "page->flags", "sizeof(a)"]
)
def test_cheap_arguments_are_not(arg: str) -> None:
    assert "enabled" not in put(body("g();"), BEFORE, "g();", arg)


def test_the_guard_can_be_asked_for_and_forbidden() -> None:
    assert "if (trace_x_enabled())\n" in put(body("g();"), BEFORE, "g();", "a", guard=True)
    assert "enabled" not in put(body("g();"), BEFORE, "g();", "h(a)", guard=False)


def test_line_ends_of_the_file_are_kept() -> None:
    old = "void f(int a)\r\n{\r\n\tif (a)\r\n\t\tg();\r\n\treturn;\r\n}\r\n"
    new = put(old, AFTER, "g();", "a")
    assert new == old.replace("(a)\r\n\t\tg();\r\n", "(a) {\r\n\t\tg();\r\n\t\ttrace_x(a);\r\n\t}\r\n", 1)
    assert new.count("\n") == new.count("\r\n")


def test_spans_and_notes_say_what_was_done() -> None:
    text = body("if (a)\n    g();")
    found = place(text, AFTER, "g();", "a")
    assert [str(span) for span in found.spans] == ["mm/a.c:4:3"]
    assert (found.function_span.line, found.function_span.end_line) == (1, 5)
    assert found.notes == ("braces are added in line 4",)
    assert all(edit.path == "mm/a.c" for edit in found.edits)


def test_an_earlier_call_is_noted() -> None:
    found = place(body("g();\ntrace_x(a);"), ENTRY, "", "a")
    assert "trace_x() is already called in line 4" in found.notes


def test_a_body_on_one_line_is_spread() -> None:
    assert put("void f(int a) { g(); }\n", ENTRY, "", "a") == "void f(int a)\n{\n\ttrace_x(a);\n\tg();\n}\n"
    assert put("void f(int a) {}\n", RETURNS, "", "a") == "void f(int a)\n{\n\ttrace_x(a);\n}\n"
    expected = "void f(int a)\n{\n\tint b;\n\n\ttrace_x(a);\n\tg();\n}\n"
    assert put("void f(int a) { int b; g(); }\n", ENTRY, "", "a") == expected
    expected = "int f(int a)\n{\n\tint ret;\n\n\tret = g();\n\ttrace_x(ret);\n\treturn ret;\n}\n"
    assert put("int f(int a) { return g(); }\n", RETURNS, "", "RETURN_VALUE") == expected


def test_helpers_write_kernel_style() -> None:
    assert c("\n    a\n        b\n") == "a\n\tb\n"
