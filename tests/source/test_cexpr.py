import ctypes

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracepoint.errors import SourceError
from tracepoint.source import ast
from tracepoint.source.cexpr import decode_string, parse_arguments, parse_expression, write_expression
from tracepoint.source.constants import constant_value
from tracepoint.source.ctype import parse_ctype
from tracepoint.source.cvalue import int_type_of, number_type
from tracepoint.source.lexer import lex
from tracepoint.source.text import SourceFile
from tracepoint.source.types import INT, LLONG, UINT, ULLONG, IntType


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(a)+b", "a + b"),
        ("a - (b - c)", "a - (b - c)"),
        ("(a - b) - c", "a - b - c"),
        ("a ? b : c ? d : e", "a ? b : c ? d : e"),
        ("(a ? b : c) ? d : e", "(a ? b : c) ? d : e"),
        ("a ?: b", "a ?: b"),
        ("(foo_t)x", "(foo_t)x"),
        ("(count_t) | x", "count_t | x"),
        ("(foo *)x->y", "(foo *)x->y"),
        ("((foo *)x)->y", "((foo *)x)->y"),
        ("(unknown)x", "(unknown)x"),
        ("(unknown)(x)", "unknown(x)"),
        ("(u8)(x)", "(u8)x"),
        ("(u32)-1", "(u32)-1"),
        ("(flags)-1", "flags - 1"),
        ("- -x", "- -x"),
        ("a - -b", "a - -b"),
        ("& &x", "& &x"),
        ("sizeof(struct x)", "sizeof(struct x)"),
        ("sizeof a + 1", "sizeof(a) + 1"),
        ("offsetof(struct a, b)", "offsetof(struct a, b)"),
        ("f(a*b)", "f(a * b)"),
        ("va_arg(ap, foo *)", "va_arg(ap, foo *)"),
        ("({ int a = 1;  a; })", "({ int a = 1; a; })"),
        ('(const char *[]){ "a", [3] = "b", }[x]', '(const char *[]){ "a", [3] = "b" }[x]'),
        ("(struct a){ .b = 1, .c.d = 2 }", "(struct a){ .b = 1, .c.d = 2 }"),
        ("(int[]){ [1 ... 3] = 2 }", "(int[]){ [1 ... 3] = 2 }"),
        ('"a" "b"', '"ab"'),
        ('"a" PRIu64 "b" X(3) "c"', '"a" PRIu64 "b" X(3) "c"'),
        ('PFX "b"', 'PFX "b"'),
        ("a = b += 3, c", "a = b += 3, c"),
        ("*p++", "*p++"),
        ("(*p)++", "(*p)++"),
        ("~(a|b)&c", "~(a | b) & c"),
        ("0xffUL", "0xfful"),
        ("'a'", "'a'"),
        ("__builtin_constant_p((__u16)(a)) ? (b) : f(a)", "__builtin_constant_p((__u16)a) ? b : f(a)"),
        ("(a, b)", "a, b"),
        ("f((a, b), c)", "f((a, b), c)"),
        ("__extension__ (a)", "a"),
        ("1.5 + 0x1p3", "1.5 + 8.0"),
    ],
)
def test_written_form(text, expected):
    node = parse_expression(text)
    assert write_expression(node) == expected
    assert parse_expression(expected) == node


def test_known_type_names_make_casts():
    assert isinstance(parse_expression("(foo)(x)"), ast.Call)
    assert isinstance(parse_expression("(foo)(x)", type_names={"foo"}), ast.Cast)


def test_arguments_of_a_print_format():
    arguments = parse_arguments('"%d %s", a, f(b, c), (d, e), { 1, "x" }')
    assert [type(a).__name__ for a in arguments] == ["String", "Name", "Call", "Comma", "InitList"]
    assert parse_arguments("  ") == ()


def test_nodes_know_their_tokens():
    file = SourceFile("a.h", "x +\n  foo(y, 3)[2]")
    node = parse_expression(lex(file))
    assert (node.first.span.line, node.last.span.line, node.last.text) == (1, 2, "]")
    call = node.right.base
    assert (call.first.text, call.last.text, call.last.span.column) == ("foo", ")", 11)


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("", None), ("(", 2), ("a b", 3), ("a+", 3), (")", 1), ("((a)", 1), ("f(a,", 5), ("{", 1), ("a[", 3),
        ("({ a", 1), ("1x", 1), ('"abc', 1), ("'", 1), ("a.3", 2), ("''", 1), ("(int)", 2), ("a ? b", 6),
        ("f(a;b)", 4), ("09", 1), ("1" * 90, 1), ("a . 3", 5), ("{ .* = 1 }", 4),
    ],
)  # fmt: skip
def test_wrong_text_is_an_error_with_its_place(text, column):
    with pytest.raises(SourceError) as caught:
        parse_expression(text)
    if column is not None:
        assert caught.value.span.column == column


@pytest.mark.parametrize(
    "text",
    ["(" * 100000, "-" * 5000 + "a", "+".join(["a"] * 5000), "a?" * 4000, "{" * 9999, "f(" * 999, "a" + "[0]" * 5000,
     "a" + "->b" * 5000, "(u8)" * 5000 + "a", "sizeof " * 5000 + "a", "a=" * 5000 + "a", "__extension__ " * 5000 + "a",
     "(" * 149 + "|".join(["a"] * 150) + ")" * 149 + "|a" * 150],
    ids=lambda text: text[:6],
)  # fmt: skip
def test_depth_is_an_error_never_a_crash(text):
    with pytest.raises(SourceError, match=r"deep|in a row|closed"):
        parse_expression(text)


def test_long_lists_are_no_depth():
    text = "f(" + ", ".join(f'{{ {n}, "{n}" }}' for n in range(3000)) + ")"
    assert len(parse_expression(text).arguments) == 3000


def test_escapes():
    assert decode_string(r"\x41\102\n\"\\\?\e") == 'AB\n"\\?\x1b'
    assert decode_string("é") == "\xc3\xa9"
    assert parse_expression('"\\777"') == ast.String("\xff")


OPERATORS = ["+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", "==", "!=", "<", ">", "<=", ">=", "&&", "||"]
LEAVES = st.one_of(
    st.builds(ast.Name, st.sampled_from(["a", "b", "REC"])),
    st.builds(ast.Number, st.integers(0, 1 << 64), st.sampled_from(["", "u", "ull"])),
    st.builds(ast.Number, st.integers(0, 1 << 64), st.just("ul"), st.just(False)),
    st.builds(ast.String, st.text(st.characters(max_codepoint=255), max_size=5)),
    st.builds(ast.Char, st.integers(0, 127)),
    st.builds(ast.SizeOf, st.sampled_from([parse_ctype("u8"), parse_ctype("struct a *")]), st.none()),
)
TYPES = st.sampled_from(
    [parse_ctype(t) for t in ("u8", "struct a *", "const char *", "foo_t", "unsigned long")]
)


def _grow(inner):
    some = st.lists(inner, max_size=3).map(tuple)
    no_init = inner.filter(lambda n: not isinstance(n, ast.Assign))
    items = st.lists(no_init, max_size=3).map(lambda nodes: ast.InitList(tuple(nodes)))
    return st.one_of(
        st.builds(
            ast.Unary, st.sampled_from(["+", "-", "!", "~", "&", "*", "++", "--", "p++", "p--"]), inner
        ),
        st.builds(ast.Binary, st.sampled_from(OPERATORS), inner, inner),
        st.builds(ast.Assign, st.sampled_from(["=", "|=", "<<="]), inner, inner),
        st.builds(ast.Ternary, inner, st.none() | inner, inner),
        st.builds(ast.Cast, TYPES, inner),
        st.builds(ast.Call, st.builds(ast.Name, st.sampled_from(["f", "g"])), some),
        st.builds(ast.Member, inner, st.sampled_from(["x", "y"]), st.booleans()),
        st.builds(ast.Index, inner, inner),
        st.builds(ast.Comma, inner, inner),
        st.builds(ast.CompoundLiteral, TYPES, items),
        st.builds(ast.SizeOf, st.none(), inner),
    )


@settings(deadline=None)
@given(st.recursive(LEAVES, _grow, max_leaves=25))
def test_writing_and_parsing_gives_the_tree_back(node):
    assert parse_expression(write_expression(node)) == node


@settings(deadline=None)
@given(st.text(alphabet="ab(){}[]?:,.->+*&|\"'\\0x1 =u8intsizeof", max_size=40))
def test_no_text_breaks_the_parser(text):
    try:
        node = parse_expression(text)
    except SourceError:
        return
    assert parse_expression(write_expression(node)) == node


NAMES = {"ONE": 1, "BIG": 1 << 40, "NEG": -3}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", 7), ("1u - 2", 0xFFFFFFFF), ("-1", -1), ("-1 > 0u", 1), ("-1 < 0", 1), ("7 / -2", -3),
        ("-7 % 3", -1), ("1 / 0", None), ("0 && 1 / 0", 0), ("1 || x", 1), ("~0u", 0xFFFFFFFF), ("~0ull >> 60", 15),
        ("1 << 31", -(1 << 31)), ("1u << 31", 1 << 31), ("(u8)300", 44), ("(s8)200", -56), ("(bool)7", 1),
        ("sizeof(int)", 4), ("sizeof(struct page)", 64), ("sizeof(void *)", 8), ("ONE ? 5 : 6", 5), ("x", None),
        ("ONE + BIG", (1 << 40) + 1), ("NEG >> 1", -2), ("1 ?: 2", 1), ("BIT(3) | BIT_ULL(40)", 8 | 1 << 40),
        ("1 ? -1 : 0u", 0xFFFFFFFF), ("'a' + 1", 98), ("0x80000000 > 0", 1), ("!5", 0), ("(1, 2)", 2), ("f(1)", None),
        ("ilog2(64)", 6), ("-2147483647 - 2", 2147483647), ("0xffffffff + 1", 0), ("4294967296 - 1", 4294967295),
    ],
)  # fmt: skip
def test_constants(text, expected):
    sizes = {"struct page": 64}
    node = parse_expression(text)
    assert (
        constant_value(node, NAMES.get, sizeof=lambda t: None if t.pointers else sizes.get(t.base))
        == expected
    )


def test_long_size_decides():
    assert constant_value(parse_expression("~0ul"), NAMES.get, long_size=4) == 0xFFFFFFFF
    assert number_type(1 << 31, is_decimal=True, long_size=4) == LLONG
    assert number_type(1 << 31, is_decimal=False, long_size=4) == UINT
    assert number_type(1 << 63, "ul") == ULLONG


@pytest.mark.parametrize(
    ("ctype", "expected"),
    [("int", INT), ("u32", UINT), ("enum x", UINT), ("loff_t", LLONG), ("struct a *", ULLONG), ("struct a", None),
     ("size_t", ULLONG), ("long", LLONG), ("no_such_t", None), ("unsigned  long int", ULLONG)],
)  # fmt: skip
def test_types_of_names(ctype, expected):
    assert int_type_of(ctype) == expected


C_TYPES = {
    (1, True): ctypes.c_int8,
    (2, False): ctypes.c_uint16,
    (4, True): ctypes.c_int32,
    (8, False): ctypes.c_uint64,
}


@given(st.sampled_from(sorted(C_TYPES)), st.integers(-(1 << 70), 1 << 70))
def test_wrapping_is_what_the_machine_does(kind, value):
    assert IntType(kind[0], is_signed=kind[1]).wrap(value) == C_TYPES[kind](value).value


@pytest.mark.parametrize(
    "call", ["__get_str(size_t)", "__assign_str(f_t, text)", "__get_dynamic_array_len(u8)"]
)
def test_a_member_of_the_record_may_be_called_as_types_are(call: str) -> None:
    node = parse_expression(call)
    assert isinstance(node, ast.Call)
    assert isinstance(node.arguments[0], ast.Name)


def test_types_stay_arguments_elsewhere() -> None:
    node = parse_expression("min_t(size_t, a, b)")
    assert isinstance(node, ast.Call)
    assert isinstance(node.arguments[0], ast.TypeName)
