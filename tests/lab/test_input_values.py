"""Values that a person gives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracepoint.lab.simulate.inputs import GivenValueError, parse_given, split_assignment
from tracepoint.lab.simulate.simulation import show_value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("-7", -7),
        ("0x1F", 31),
        ("'A'", 65),
        ("1 << 4 | 1", 17),
        ('"a\\tb"', "a\tb"),
        ('""', ""),
        ("[]", []),
        ("[1, -2, 0x3]", [1, -2, 3]),
        ("hex:", b""),
        ("hex:00ff", b"\0\xff"),
        ("NULL", 0),
        ("true", 1),
        ("eth0", "eth0"),
        ("LIMIT", 9),
        ("/a b", "/a b"),
    ],
)
def test_values(text, value):
    assert parse_given(text, {"LIMIT": 9}.get) == value


@pytest.mark.parametrize("text", ["hex:0", "hex:zz", "[1", "[a]", '"a', '"a" b'])
def test_damaged_values(text):
    with pytest.raises(GivenValueError):
        parse_given(text)


@pytest.mark.parametrize("text", ["a", "=1", "a=", "a==1"])
def test_damaged_assignments(text):
    with pytest.raises(GivenValueError, match="INPUT=VALUE"):
        split_assignment(text)


def test_split_at_the_first_equals():
    assert split_assignment("f(a == b) = c=d") == ("f(a == b)", "c=d")


@given(st.text(max_size=30))
def test_any_text_is_a_value_or_an_error(text):
    try:
        value = parse_given(text)
    except GivenValueError:
        return
    assert isinstance(value, (int, str, bytes, list))


@given(
    st.integers(-(1 << 63), (1 << 64) - 1) | st.binary(max_size=9) | st.lists(st.integers(0, 99), max_size=4)
)
def test_what_is_shown_can_be_given(value):
    assert parse_given(show_value(value)) == value
