"""Statements of TP_fast_assign as a tree."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from tracepoint.errors import SourceError
from tracepoint.source.cexpr import write_expression
from tracepoint.source.lexer import lex
from tracepoint.source.statements import (
    MAX_DEPTH,
    Block,
    Case,
    Declare,
    If,
    Jump,
    Loop,
    Run,
    Switch,
    Unreadable,
    parse_statements,
)
from tracepoint.source.text import SourceFile


def parse(text):
    return parse_statements(lex(SourceFile("a.h", text))).body


def test_assignments_and_calls():
    first, second = parse("__entry->a = b + 1; memcpy(__entry->c, d, 4);")
    assert isinstance(first, Run)
    assert write_expression(first.expression) == "__entry->a = b + 1"
    assert write_expression(second.expression) == "memcpy(__entry->c, d, 4)"
    assert str(first.span) == "a.h:1:1"


def test_declarations():
    (several,) = parse("const struct foo *a = b(c), *d, **e;")
    assert isinstance(several, Block)
    assert not several.is_scope
    assert [(d.name, str(d.ctype)) for d in several.body] == [
        ("a", "const struct foo *"),
        ("d", "const struct foo *"),
        ("e", "const struct foo **"),
    ]
    table, names, long_, typed = parse(
        'static const u8 t[4] = { 1, [2] = 3 }; static const char * const n[] = { "a" };'
        "unsigned long l; typeof(x) y = x;"
    )
    assert table.ctype.array == ("4",)
    assert write_expression(table.initial) == "{ 1, [2] = 3 }"
    assert (names.ctype.pointers, names.ctype.array) == (1, ("",))
    assert long_.ctype.base == "unsigned long"
    assert typed.ctype.base == "typeof(x)"


def test_typedef_names_are_seen_by_their_place():
    declared, expression = parse("foo_t *x = y; a.b = c;")
    assert isinstance(declared, Declare)
    assert isinstance(expression, Run)


def test_branches():
    (branch,) = parse("if (a) b = 1; else if (c) { d = 2; } else e = 3;")
    assert isinstance(branch, If)
    assert isinstance(branch.otherwise, If)
    assert isinstance(branch.otherwise.then, Block)
    (switch,) = parse("switch (a) { case 1 ... 3: b = 1; break; case X ? 1 : 2: default: b = 2; }")
    assert isinstance(switch, Switch)
    low, run, leave, odd, default, _ = switch.body.body
    assert (low.value.value, low.high.value) == (1, 3)
    assert isinstance(run, Run)
    assert leave == Jump("break")
    assert isinstance(odd, Case)
    assert default == Case()


def test_loops():
    count, until, once = parse("for (i = 0; i < 4; i++) a[i] = i; while (x) x--; do { y = 1; } while (0);")
    assert isinstance(count, Loop)
    assert write_expression(count.condition) == "i < 4"
    assert until.start is None
    assert once.is_do
    (endless,) = parse("for (;;) break;")
    assert endless == Loop(Jump("break"))
    (declared,) = parse("for (int i = 0; ; ) { }")
    assert isinstance(declared.start, Declare)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("goto out;", "goto"),
        ('asm volatile("" : "=r" (x));', "assembly"),
        ("list_for_each_entry(a, b, c) { __entry->n++; }", "list_for_each_entry"),
        ("struct { int a; } x;", "type"),
        ("__entry->a = = 3;", "="),
    ],
)
def test_what_is_not_followed_is_named(text, reason):
    found = parse(text + " __entry->z = 1;")
    assert isinstance(found[0], Unreadable)
    assert reason in found[0].reason
    assert isinstance(found[-1], Run), "the rest is still read"


def test_a_macro_without_semicolon_is_a_statement():
    first, second = parse("__assign_str(a, b) __entry->c = 1;")
    assert write_expression(first.expression) == "__assign_str(a, b)"
    assert write_expression(second.expression) == "__entry->c = 1"


@pytest.mark.parametrize("text", ["if (a", "{ x = 1;", "x = (1;", "} x", "if (a) b = 1; else"])
def test_damage_has_a_place(text):
    with pytest.raises(SourceError) as caught:
        parse(text)
    assert caught.value.span is not None
    assert caught.value.span.path == "a.h"


def test_depth_is_capped():
    with pytest.raises(SourceError, match="nested more than"):
        parse("{" * (MAX_DEPTH + 2) + "}" * (MAX_DEPTH + 2))
    with pytest.raises(SourceError, match="nested more than"):
        parse("if (a) " * 500 + ";")


@settings(max_examples=examples(300), deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "if",
                "else",
                "for",
                "while",
                "do",
                "switch",
                "case",
                "default",
                ":",
                ";",
                "{",
                "}",
                "(",
                ")",
                "[",
                "]",
                ",",
                "=",
                "a",
                "b",
                "__entry",
                "->",
                ".",
                "1",
                "?",
                "int",
                "struct",
                "goto",
                "return",
                "break",
                "*",
                "&",
                "+",
                "++",
                "asm",
                "typeof",
                '"',
                "'x'",
                "/*",
                "*/",
                "#",
            ]
        ),
        max_size=40,
    )
)
def test_any_tokens_give_a_tree_or_a_source_error(words):
    try:
        block = parse_statements(lex(SourceFile("a.h", " ".join(words))))
    except SourceError:
        return
    assert isinstance(block, Block)
