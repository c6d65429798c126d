"""Print formats with their constants worked out."""

import pytest

from tracepoint.generate.catalog.constants import work_out


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(1 << 3) | 0x10", "0x18"),
        ("( unsigned long)((( gfp_t)(((1UL)) << (10))|(1UL << 11)) & ~( gfp_t)(1UL << 11))", "0x400"),
        ("~( gfp_t)1", "0xfffffffe"),
        ("( unsigned long)~( gfp_t)1", "0xfffffffe"),
        ("(unsigned long)~0", "0xffffffffffffffff"),
        ("0x80000000 + (1)", "0x80000001"),
        ("1U << 31", "0x80000000"),
        ("(7) - 3 * 2", "1"),
        ("1 | 2 ^ 3 & 2", "1"),
        ("(010)", "8"),
        ("~0", None),
        ("1 << 31", None),
        ("-5 >> 1", None),
        ("REC->x | 1", None),
        ("(sizeof(long))", None),
        ("(struct page *)1", None),
        ("1 ||", None),
        ("", None),
        ("1 | " * 2000 + "1", None),
    ],
)
def test_constants_are_worked_out_as_c_does(text, value):
    assert work_out(f'"%x", ({text})') == f'"%x", {f"({text})" if value is None else value}'


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            '"%s", f(REC->a, { (1UL << (5)), "A(1|2)" }, { 0x10, "B" })',
            '"%s", f(REC->a, { 0x20, "A(1|2)" }, { 0x10, "B" })',
        ),
        ('"%d", f(1 | 2), (int) REC->a', None),
        ('"%d", REC->a == (-1)', None),
        ('"(1|2) %d", (REC->a) }', None),
        ('"%d", ((1 | 2', None),
        ('"%s, (1|2)', None),
    ],
)
def test_the_rest_stays_as_it_is(text, shown):
    assert work_out(text) == (text if shown is None else shown)


@pytest.mark.thorough
def test_what_is_nested_absurdly_deep_is_worked_out_inside():
    text = work_out("(" * 5000 + "1" + ")" * 5000)
    assert text.startswith("((((")
    assert text.endswith("))))")
    assert len(text) < 10_000
