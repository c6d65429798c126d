import pytest

from tracepoint.source.brackets import (
    find_close,
    find_close_in_text,
    find_parenthesis,
    match_brackets,
    outside,
    split_arguments,
    split_macro_arguments,
)
from tracepoint.source.lexer import Token, lex
from tracepoint.source.syntax import read_call
from tracepoint.source.text import SourceFile


def tokens_of(text: str) -> list[Token]:
    return lex(SourceFile("a.h", text))[:-1]


@pytest.mark.parametrize(
    ("text", "close", "parenthesis"),
    [
        ("(a, [b], {c}) d", 10, 10),
        ("(a ')' \")\") d", 4, 4),
        ("((a)", -1, -1),
        ("(a])", -1, 3),
        ("({a)}", -1, 3),
    ],
)
def test_closing_bracket(text: str, close: int, parenthesis: int) -> None:
    tokens = tokens_of(text)
    assert find_close(tokens, 0) == close
    assert find_parenthesis(tokens, 0) == parenthesis


def test_search_stops_where_it_is_told() -> None:
    assert find_close(tokens_of("(a) b"), 0, 2) == -1
    assert find_close_in_text("(a) b", 0, 2) == -1
    assert find_close_in_text("{ ( } )", 0) == 4


@pytest.mark.parametrize(
    ("text", "wrong"), [("a(b[c]) {}", None), ("a)", 1), ("(a]", 2), ("((a)", 0), ("(({", 2)]
)
def test_first_bracket_without_a_partner(text: str, wrong: int | None) -> None:
    assert match_brackets(tokens_of(text))[1] == wrong


def test_what_no_bracket_encloses() -> None:
    tokens = tokens_of("a, f(b, c), { d, e } = g, h } , i")
    assert [tokens[at].text for at in outside(tokens, {",", "=", "}", "{"})] == list(",,{}=,}")


def test_arguments_of_c_and_of_the_preprocessor() -> None:
    tokens = tokens_of("a, { b, c }, (d, e)")
    assert [" ".join(t.text for t in part) for part in split_arguments(tokens)] == [
        "a",
        "{ b , c }",
        "( d , e )",
    ]
    assert [len(part) for part in split_macro_arguments(tokens)] == [1, 2, 2, 5]
    call = read_call(tokens_of("F(a, { b, c }, (d, e)) f"), 0)
    assert call is not None
    assert call[0].arguments == tuple(map(tuple, split_macro_arguments(call[0].inner)))
    assert [len(part) for part in call[0].split(2)] == [1, 11]
    assert read_call(tokens_of("F(a, { b, c }, (d, e) f"), 0) is None
    assert split_arguments([]) == [[]]
