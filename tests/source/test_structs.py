"""Definitions of structs in preprocessed text: members, attributes, and what is not understood."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracepoint.errors import SourceError
from tracepoint.source.declarations import read_declarations
from tracepoint.source.lexer import Token, lex
from tracepoint.source.structs import StructBody, find_definition, pack_at, read_struct
from tracepoint.source.text import SourceFile


def tokens_of(text: str) -> list[Token]:
    return lex(SourceFile("a.h", text))


def body(text: str, name: str = "struct s") -> StructBody:
    keyword, _, tag = name.rpartition(" ")
    found = find_definition(tokens_of(text), keyword, tag)
    assert found is not None
    return read_struct(found)


def test_every_kind_of_member() -> None:
    found = body(
        "struct s { const char *name, *names[2][3]; void (*call)(int a, char b); void (*calls[4])(void);\n"
        "unsigned long long big; enum e { A, B } kind; enum { C }; struct t inner; union { u8 x; u16 y; };\n"
        "struct { int z; } own[2]; typeof(int) same; u8 flex[]; };"
    )
    assert [(m.name, str(m.ctype or ""), len(m.lengths)) for m in found.members] == [
        ("name", "char *", 0),
        ("names", "char *", 2),
        ("call", "void *", 0),
        ("calls", "void *", 1),
        ("big", "unsigned long long", 0),
        ("kind", "enum e", 0),
        ("inner", "struct t", 0),
        ("", "", 0),
        ("own", "", 1),
        ("same", "typeof(int)", 0),
        ("flex", "u8", 1),
    ]
    union = found.members[7].body
    assert union is not None
    assert union.is_union
    assert [m.name for m in union.members] == ["x", "y"]


@pytest.mark.parametrize(
    "text",
    [
        "struct s { int a; } __packed;",
        "struct __packed s { int a; };",
        "struct s { int a; } __attribute__((packed, aligned(8)));",
        "struct s { int a; } __attribute__((__packed__)) name;",
    ],
)
def test_packed(text: str) -> None:
    assert body(text).marks.is_packed


def test_alignment_of_a_struct_and_of_a_member() -> None:
    found = body("struct s { u8 a __aligned(4), b; u8 c __attribute__((aligned(2))); } __aligned(16);")
    assert [[t.text for t in align] for align in found.marks.aligns] == [["16"]]
    assert [[[t.text for t in a] for a in m.marks.aligns] for m in found.members] == [[["4"]], [], [["2"]]]


def test_bit_fields_with_and_without_a_name() -> None:
    found = body("struct s { unsigned a:3, :0, b:N + 1; };")
    assert [(m.name, [t.text for t in m.bits or ()]) for m in found.members] == [
        ("a", ["3"]),
        ("", ["0"]),
        ("b", ["N", "+", "1"]),
    ]


def test_typedefs_name_structs_and_pointers_to_functions() -> None:
    text = "typedef struct { int a; } own_t; typedef struct t { int b; } *t_ptr; typedef int (*f_t)(int);"
    assert read_declarations(tokens_of(text)).typedefs == {"f_t": "void *"}
    assert [m.name for m in body(text, "own_t").members] == ["a"]
    assert find_definition(tokens_of(text), "", "t_ptr") is None


def test_structs_in_structs_are_known_by_their_tags() -> None:
    text = "struct a { struct b { int x; } y; }; struct c; struct a *f(struct d *e) { return 0; } union a { u8 z; };"
    assert [m.name for m in body(text, "struct b").members] == ["x"]
    assert [m.name for m in body(text, "union a").members] == ["z"]
    for tag in ("c", "d", "e"):
        assert find_definition(tokens_of(text), "struct", tag) is None


@pytest.mark.parametrize(
    "text",
    [
        "struct s { MACRO_WITH_MEMBERS };",
        "struct s { unknown_word int a; };",
        "struct s { int a unknown_word; };",
        "struct s { int (a); };",
        "struct s { int; int a b; };",
        "struct s { " + "struct { " * 60 + "int a; " + "} x; " * 60 + "};",
    ],
)
def test_what_is_not_understood_is_an_error(text: str) -> None:
    with pytest.raises(SourceError, match="not understood"):
        body(text)


@pytest.mark.parametrize("text", ["struct s { int a;", "struct s { int a; }", "struct s { int a[; };"])
def test_a_definition_that_is_cut_off_is_none(text: str) -> None:
    assert find_definition(tokens_of(text), "struct", "s") is None


@pytest.mark.parametrize(
    ("text", "pack"),
    [
        ("", 0),
        ("#pragma pack(1)\n", 1),
        ("#pragma pack(push, 2)\n#pragma pack(push)\n#pragma pack(4)\n#pragma pack(pop)\n", 2),
        ("#pragma pack(2)\n#pragma pack()\n", 0),
        ("#pragma pack(pop)\n", 0),
    ],
)
def test_pragma_pack(text: str, pack: int) -> None:
    assert pack_at(text, len(text)) == pack


@given(st.lists(st.sampled_from([*"{}();,*:[]=", "struct s", "int", "a", "__packed", "typedef", "3"])))
def test_any_text_is_read_or_refused(words: list[str]) -> None:
    found = find_definition(tokens_of("struct s {" + " ".join(words) + "};"), "struct", "s")
    with contextlib.suppress(SourceError):
        assert found is None or isinstance(read_struct(found), StructBody)
