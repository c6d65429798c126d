"""TRACE_DEFINE_ENUM substitution: what the kernel's scanner replaces and what it passes over."""

from __future__ import annotations

import pytest

from tracepoint.layout.evals import EvalMap, without_attributes

NAMES = EvalMap({"RED": 3, "BLUE_SKY": -1, "A": 12, "sizeof(struct x)": 24, "LEN_MAX": 16})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"%d", RED', '"%d", 3'),
        ('"%s", { RED, "RED" }', '"%s", { 3, "RED" }'),
        ('"x", BLUE_SKY | RED', '"x", -1 | 3'),
        ('"x", REDDER, A_RED, RED2', '"x", REDDER, A_RED, RED2'),
        ('"x", REC->RED, x.RED, x.RED.RED', '"x", REC->RED, x.RED, x.RED.RED'),
        ('"x", 0RED, 10 RED', '"x", 0RED, 10 3'),
        ('"a\\"RED", RED', '"a\\"RED", 3'),
        ('"x", (RED)->RED', '"x", (3)->3'),
        ('"x", sizeof(struct x)', '"x", 24'),
        ('"x", sizeof(struct xy)', '"x", sizeof(struct xy)'),
        # A number that is longer than its name does not fit into the kernel's buffer.
        ('"x", A', '"x", A'),
        # The character after a word is not looked at: a quote there opens no string.
        ('"x", y"RED"', '"x", y"3"'),
        ('"never closed RED', '"never closed RED'),
        ('"x", RED\\', '"x", 3\\'),
        ("", ""),
    ],
)
def test_print_format(before: str, after: str) -> None:
    assert NAMES.in_print_fmt(before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("char[LEN_MAX]", "char[16]"),
        ("char[16]", "char[16]"),
        ("char[(LEN_MAX)]", "char[(LEN_MAX)]"),
        ("__data_loc char[]", "__data_loc char[]"),
        ("LEN_MAX", "LEN_MAX"),
    ],
)
def test_array_length(before: str, after: str) -> None:
    assert NAMES.in_type(before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('char __attribute__((btf_type_tag("user"))) *', "char *"),
        ("__attribute__((a(b))) int __attribute__((c)) *", "int *"),
        ("int my__attribute__(x)", "int my__attribute__(x)"),
        ("int __attribute__((open", "int __attribute__((open"),
    ],
)
def test_attributes_are_taken_out(before: str, after: str) -> None:
    assert without_attributes(before) == after
