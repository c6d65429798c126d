import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracepoint.errors import SourceError
from tracepoint.source.ctype import CType, parse_ctype


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("unsigned  int", "unsigned int"),
        ("unsigned", "unsigned int"),
        ("long unsigned int", "unsigned long"),
        ("int long long unsigned", "unsigned long long"),
        ("short int", "short"),
        ("signed", "int"),
        ("signed char", "signed char"),
        ("_Bool", "bool"),
        ("struct  x *const*", "struct x **"),
        ("enum foo", "enum foo"),
        ("char [16]", "char[16]"),
        ("const char *", "const char *"),
        ("char const __user *", "__user const char *"),
        ("u8[4][ 2 ]", "u8[4][2]"),
        ("void(*)(int, char *)", "void (*)(int, char *)"),
        ("char (*)[16]", "char (*)[16]"),
        ("__typeof__(a->b) *", "typeof(a->b) *"),
        ("gfp_t", "gfp_t"),
    ],
)
def test_normal_form(text, expected):
    assert str(parse_ctype(text)) == expected
    assert parse_ctype(expected) == parse_ctype(text)


@pytest.mark.parametrize(
    "text", ["", "*", "int 3", "struct", "unsigned float", "u8 u16", "char[", "long long long", "a b"]
)
def test_what_is_no_type_is_refused_with_its_place(text):
    with pytest.raises(SourceError) as caught:
        parse_ctype(text)
    assert caught.value.span is not None
    assert caught.value.span.path == "<type>"


BASES = st.sampled_from(
    ["int", "unsigned long", "struct page", "enum zone", "u32", "foo_t", "void (int)", "char[8]"]
)


@given(
    BASES,
    st.integers(1, 3),
    st.lists(st.sampled_from(["", "4", "A + 1"]), max_size=2),
    st.frozensets(st.sampled_from(["const", "volatile", "__user"])),
)
def test_text_of_a_type_reads_back(base, pointers, array, qualifiers):
    if base.endswith((")", "]")):
        array = []
    ctype = CType(base, pointers, tuple(array), qualifiers)
    assert parse_ctype(str(ctype)) == ctype
    assert ctype.is_pointer


@given(st.text(alphabet="int*[](){} ux,struct_t1", max_size=30))
def test_no_text_breaks_the_reader(text):
    try:
        ctype = parse_ctype(text)
    except SourceError:
        return
    assert parse_ctype(str(ctype)) == ctype
