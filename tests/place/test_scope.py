"""Whether arguments mean something where a call goes."""

from __future__ import annotations

import pytest

from place.helpers import AFTER, BEFORE, ENTRY, RETURNS, body, place, put, refusal
from tracepoint.place.scope import type_problem

FILE = """#define LIMIT 3
#define lower_macro(x) (x)
enum mode { ONE_MODE, other_mode };
static int n_calls;
extern struct page *zero_page;
struct box {
	int size;
	union {
		long wide;
		char narrow[8] __aligned(8);
	};
	struct list_head list, *more;
	int (*ops)(int);
	unsigned flag:1;
};
"""


def boxed(text: str) -> str:
    return FILE + body(text).replace(
        "int a, struct page *page", "int a, struct box *box, const struct box *seen"
    )


KNOWN = [
    "a", "box", "box->size", "box->wide", "box->narrow", "box->more", "box->ops(a)", "box->flag", "n_calls",
    "zero_page", "LIMIT", "ONE_MODE", "other_mode", "lower_macro(a)", "current", "current->pid", "jiffies", "NULL",
    "PAGE_SIZE", "true", "(u32)a", "(pgoff_t)a + 1", "&box->list", "sizeof(struct box)", "a ? box->size : LIMIT",
    '"text"', "__func__", "f", "!box",
]  # fmt: skip


@pytest.mark.parametrize("arg", KNOWN)
def test_names_that_are_known(arg: str) -> None:
    found = place(boxed("g();"), BEFORE, "g();", arg, guard=False)
    assert not any("not" in note for note in found.notes), found.notes


UNKNOWN = {
    "nothing": "`nothing` in the argument `nothing` is not declared",
    "bxo": "did you mean `box`?",
    "box->sise": "struct box has no member `sise`; did you mean `size`?",
    "box.size": "`box` is `struct box *`: use `->` for its members",
    "a->b": "`a` is an integer (int) and has no member `b`",
    "a++": "changes a value, and only while the event is enabled",
    "--a": "changes a value",
    "a = 1": "changes a value",
    "n_calls += a": "changes a value",
    "({ a; })": "contains statements",
    "a, box": "contains a comma",
    "a +": "is not a C expression",
    "": "is not a C expression",
    ")": "is not a C expression",
    "a; b": "is not a C expression",
    "a /* c */": "contains a comment",
    "a // c": "contains a comment",
    "(" * 5000: "is not a C expression",
}


@pytest.mark.parametrize("arg", UNKNOWN, ids=lambda arg: arg[:12])
def test_arguments_that_mean_nothing_are_refused(arg: str) -> None:
    assert UNKNOWN[arg] in refusal(boxed("g();"), BEFORE, "g();", arg)


SCOPES = {
    "an inner block is left": (
        "{\n    int b = 1;\n    g(b);\n}\nh();",
        "h();",
        "b",
        "declared in another block, in line 4",
    ),
    "declared later": (
        "g();\n{\n    int b = 1;\n    h(b);\n}",
        "g();",
        "b",
        "declared only later, in line 5",
    ),
    "a for loop is left": (
        "for (int b = 0; b < 3; b++)\n    g();\nh();",
        "h();",
        "b",
        "declared in another block",
    ),
    "the other arm": (
        "if (a) {\n    int b = 1;\n    g(b);\n} else {\n    h();\n}",
        "h();",
        "b",
        "declared in another block",
    ),
    "no value": ("int b;\n\ng();\nb = 1;", "g();", "b", "`b` has no value yet"),
    "only its size": ("int b;\n\ng(sizeof(b), sizeof b);\nh();", "h();", "b", "`b` has no value yet"),
    "a member of the same name": ("int b;\n\npage->b = 1;\nh();", "h();", "b", "`b` has no value yet"),
    "assigned in the other arm": (
        "int b;\n\nif (a) {\n    b = 1;\n} else {\n    h();\n}",
        "h();",
        "b",
        "`b` has no value yet",
    ),
    "an aggregate without value": ("struct box b;\n\nh();", "h();", "b.size", "`b` has no value yet"),
}


@pytest.mark.parametrize("name", SCOPES)
def test_locals_out_of_scope_or_without_value(name: str) -> None:
    text, statement, arg, reason = SCOPES[name]
    assert reason in refusal(body(text), BEFORE, statement, arg)


GOOD = {
    "a block around": ("{\n    int b = 1;\n\n    {\n        h();\n    }\n}", "b"),
    "a for loop": ("for (int b = 0; b < 3; b++)\n    h();", "b"),
    "assigned": ("int b;\n\nb = 1;\nh();", "b"),
    "by its address": ("int b;\n\ng(&b);\nh();", "b"),
    "in a condition": ("int b;\n\nif ((b = g()))\n    return;\nh();", "b"),
    "by a loop": ("struct box *b;\n\nlist_for_each_entry(b, &list, node) {\n    h();\n}", "b"),
    "by a macro": ("unsigned long b;\n\nlocal_irq_save(b);\nh();", "b"),
    "declared by a macro": ("DEFINE_WAIT(b);\n\nh();", "&b"),
    "declared by an odd macro": ("ODD_WAIT(b, 1);\n\nh();\ng(&b);", "&b"),
    "an array": ("char b[8];\n\nh();", "b"),
    "static": ("static int b;\n\nh();", "b"),
    "in the same arm": ("int b;\n\nif (a) {\n    b = 1;\n    h();\n}", "b"),
    "in the same body": ("int b;\n\nswitch (a) {\ncase 1:\n    b = 1;\n    h();\n}", "b"),
}


@pytest.mark.parametrize("name", GOOD)
def test_locals_that_have_a_value(name: str) -> None:
    text, arg = GOOD[name]
    found = place(body(text), BEFORE, "h();", arg)
    assert not any("may have no value" in note for note in found.notes)


def test_a_body_without_braces_has_what_it_did() -> None:
    found = place(body("int b;\n\nif (a)\n    b = 1;\ng();"), AFTER, "b = 1;", "b")
    assert found.notes == ("braces are added in line 6",)


MAYBE = {
    "in one arm": "int b;\n\nif (a)\n    b = 1;\nh();",
    "in a loop": "int b;\n\nwhile (g())\n    b = 1;\nh();",
    "in the step of a for": "int b;\n\nfor (; a; b = 1)\n    h();",
    "jumped over": "int b;\n\nif (a)\n    goto out;\nb = 1;\nout:\nh();",
}


@pytest.mark.parametrize("name", MAYBE)
def test_a_value_on_some_paths_is_noted(name: str) -> None:
    found = place(body(MAYBE[name]), BEFORE, "h();", "b")
    assert any("`b` may have no value" in note for note in found.notes)


def test_the_address_of_what_has_no_value_is_noted() -> None:
    text = body("struct box b;\n\nh();")
    for arg in ("&b", "&b.size", "g(&b)"):
        (note,) = [n for n in place(text, BEFORE, "h();", arg, guard=False).notes if "value" in n]
        assert note == "`b` has no value in line 5: the event may record its address, not its value"
    assert "`b` has no value yet" in refusal(text, BEFORE, "h();", "g(&b, b.size)")


def test_the_innermost_of_a_name_counts() -> None:
    text = boxed("int b = 1;\n\n{\n    struct box *b = box;\n\n    g();\n}\nh();")
    assert "trace_x(b->size)" in put(text, BEFORE, "g();", "b->size")
    assert "`b` is an integer" in refusal(text, BEFORE, "h();", "b->size")


def test_a_parameter_is_shadowed() -> None:
    text = boxed("{\n    int box = 1;\n\n    g(box);\n}")
    assert "`box` is an integer" in refusal(text, BEFORE, "g(box);", "box->size")


def test_a_local_of_a_branch_is_known_there_only() -> None:
    text = "void f(int a)\n{\n#ifdef X\n\tint b = 1;\n#endif\n\tg();\n#ifdef X\n\th(b);\n#endif\n}\n"
    assert "`b` is declared only under `#ifdef X`" in refusal(text, BEFORE, "g();", "b")
    text = "void f(int a)\n{\n#ifdef X\n\tint b = 1;\n#else\n\tint b = 2;\n#endif\n\tg();\n}\n"
    assert any("and in other branches" in note for note in place(text, BEFORE, "g();", "b").notes)


def test_what_cannot_be_checked_is_noted() -> None:
    notes = place(body("g(elsewhere);"), ENTRY, "", "page->lru", "elsewhere", "odd_call(a)").notes
    assert "whether struct page has a member `lru` is not known from this file" in notes
    assert "`elsewhere` is declared outside mm/a.c: its type is not checked" in notes
    assert "odd_call() is not used elsewhere in mm/a.c: is its header included?" in notes


def test_each_return_is_checked() -> None:
    text = body("{\n    int b = 1;\n\n    if (b)\n        return;\n}\ng();")
    assert "`b` is declared in another block" in refusal(text, RETURNS, "", "b")


TYPES = [
    ("a", "int", None),
    ("a", "unsigned long", None),
    ("a", "struct box *", "`a` is `int`, but the event's parameter `p` is `struct box *`"),
    ("box", "struct box *", None),
    ("box", "const struct box *", None),
    ("box", "const void *", None),
    ("box", "struct page *", "`box` is `struct box *`"),
    ("box", "int", "`box` is `struct box *`"),
    ("box", "struct box", "`box` is `struct box *`"),
    ("seen", "struct box *", "this drops const"),
    ("seen", "void *", "this drops const"),
    ("seen", "const struct box *", None),
    ("box->size", "struct page *", "`box->size` is `int`"),
    ("box->more", "struct list_head *", None),
    ("box->narrow", "const char *", None),
    ("box->narrow[1]", "struct page *", "`box->narrow[1]` is `char`"),
    ("&box->list", "struct page *", None),  # only names and members are compared
]


@pytest.mark.parametrize(("arg", "kind", "reason"), TYPES)
def test_types_are_compared_with_the_events_prototype(arg: str, kind: str, reason: str | None) -> None:
    params = ((kind, "p"),)
    if reason is None:
        assert f"trace_x({arg});" in put(boxed("g();"), BEFORE, "g();", arg, params=params)
    else:
        assert reason in refusal(boxed("g();"), BEFORE, "g();", arg, params=params)


def test_the_number_of_arguments_is_compared() -> None:
    params = (("int", "p"), ("int", "q"))
    assert "the event takes 2 arguments (p, q), not 1" in refusal(
        boxed("g();"), ENTRY, "", "a", params=params
    )


def test_the_returned_value_is_compared() -> None:
    text = "static struct page *f(int a)\n{\n\treturn g(a);\n}\n"
    assert "`RETURN_VALUE` is `struct page *`" in refusal(
        text, RETURNS, "", "RETURN_VALUE", params=(("int", "p"),)
    )


@pytest.mark.parametrize(
    ("given", "wanted", "problem"),
    [
        ("struct page *", "struct page*", None),
        ("struct page **", "struct page *", ""),
        ("pgoff_t", "unsigned long", None),
        ("foo_t", "struct page *", None),
        ("char *", "const char *", None),
        ("const char *", "char *", ": this drops const"),
        ("struct a", "int", ""),
        ("enum e", "int", None),
        ("union u *", "struct u *", ""),
        ("struct a *", "struct a (*)[MAX]", None),
        ("struct a *", "int (*)(struct a *)", None),
    ],
)
def test_type_problems(given: str, wanted: str, problem: str | None) -> None:
    assert type_problem(given, wanted) == problem


NULLS = {
    "not": ("if (!box)\n    g();", "NULL"),
    "a hint": ("if (unlikely(!box)) {\n    h(a);\n    g();\n}", "NULL"),
    "compared": ("if (box == NULL) {\n    while (a)\n        g();\n}", "NULL"),
    "an error": ("if (IS_ERR(box))\n    g();", "an error"),
    "either": ("if (IS_ERR_OR_NULL(box)) {\n    g();\n}", "an error or NULL"),
}
NO_NULLS = {
    "the other arm": "if (!box)\n    h();\nelse\n    g();",
    "after it": "if (!box)\n    h();\ng();",
    "given a value": "if (!box) {\n    box = h();\n    g();\n}",
    "one of two": "if (!box || a)\n    g();",
    "a number": "if (!a)\n    g();",
}


@pytest.mark.parametrize("name", NULLS)
def test_a_pointer_that_is_none_is_not_followed(name: str) -> None:
    text, what = NULLS[name]
    assert f"`box` is {what} here, as line 18 says: `box->size`" in refusal(
        boxed(text), BEFORE, "g();", "box->size"
    )
    notes = place(boxed(text), BEFORE, "g();", "box").notes
    line = 18 + text.split("g();")[0].count("\n")
    assert f"`box` is {what} in line {line}, as line 18 says: the event must not follow it" in notes


@pytest.mark.parametrize("name", NO_NULLS)
def test_pointers_that_may_be_some(name: str) -> None:
    found = place(boxed(NO_NULLS[name]), BEFORE, "g();", "box->size", "box", "a")
    assert not any("must not follow" in note for note in found.notes)
