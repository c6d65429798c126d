"""Tokens are lossless and know where lines begin."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pace import fewer_turns
from tracepoint.diagnostics import Edit
from tracepoint.errors import SourceError
from tracepoint.source.lexer import Kind, lex
from tracepoint.source.text import SourceFile, apply_edits, decode, encode


def words(text: str) -> list[str]:
    return [t.text for t in lex(SourceFile("a.h", text)) if t.kind is not Kind.END]


@given(st.text(alphabet=st.sampled_from(list("ab_0 9\"'/*\\\n\r\t#()<>=.-+,;{}\0é\udce9")), max_size=80))
def test_any_text_comes_back(text: str) -> None:
    tokens = lex(SourceFile("a.h", text))
    assert "".join(token.file.text[token.lead : token.end] for token in tokens) == text
    assert tokens[-1].kind is Kind.END
    assert sum(t.kind is Kind.END for t in tokens) == 1


@given(st.binary(max_size=60))
def test_bytes_come_back(data: bytes) -> None:
    assert encode(decode(data)) == data


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a->b ... <<= ++x", ["a", "->", "b", "...", "<<=", "++", "x"]),
        ('"a\\"b" \'\\n\'', ['"a\\"b"', "'\\n'"]),
        ("0x1fULL .5e+3 1.0f", ["0x1fULL", ".5e+3", "1.0f"]),
        ("a /* x */ b // c\nd", ["a", "b", "d"]),
        ("a\\\nb", ["a", "b"]),
        ('"one\\\ntwo"', ['"one\\\ntwo"']),
    ],
)
def test_token_texts(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_first_of_line_ignores_splices_and_comments() -> None:
    tokens = lex(SourceFile("a.h", "#define X \\\n  1 /* a\n b */ 2\n  y"))
    assert [t.text for t in tokens if t.first] == ["#", "y"]


@pytest.mark.parametrize("text", ["/* never", '"never', "'never", "a \0 b"])
def test_damage_is_one_bad_token(text: str) -> None:
    assert any(t.kind is Kind.BAD for t in lex(SourceFile("a.h", text)))


@pytest.mark.limits
@pytest.mark.parametrize(
    "text", ["/*" + "*" * 2_000_000, '"' + "\\" * 2_000_001, "/" * 2_000_000, "(" * 400_000]
)
def test_long_lines_take_linear_time(text: str) -> None:
    with fewer_turns(200):
        lex(SourceFile("a.h", text))


@pytest.mark.limits
def test_a_file_of_far_too_many_tokens_is_refused_where_it_becomes_too_long() -> None:
    with pytest.raises(SourceError, match=r"a\.h:2:") as error:
        lex(SourceFile("a.h", "x\n" + "(" * 1_000_000))
    assert error.value.span is not None


def test_spans_count_from_one() -> None:
    file = SourceFile("a.h", "ab\ncd ef\n")
    assert str(lex(file)[2].span) == "a.h:2:4"
    assert file.line_text(2) == "cd ef"
    assert file.n_lines == 3


def test_overlapping_edits_apply_once() -> None:
    assert (
        apply_edits("abcdef", [Edit("f", 1, 4, "X"), Edit("f", 2, 3, "Y"), Edit("f", 5, 5, "!")]) == "aXe!f"
    )
