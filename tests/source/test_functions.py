"""What pure functions of the kernel compute, and in which types."""

import pytest

from tracepoint.source.functions import BYTE_ORDERS, QUIET, TRANSPARENT, TYPED, pure_functions
from tracepoint.source.types import INT, LLONG, UINT, ULLONG, USHORT, IntType

ULONG = ULLONG
FUNCTIONS = pure_functions()


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("min", [(-1, INT), (1, INT)], (-1, INT)),
        ("min", [(-1, INT), (1, UINT)], (1, UINT)),
        ("max", [(3, USHORT), (2, LLONG)], (3, LLONG)),
        ("clamp", [(9, INT), (1, INT), (5, INT)], (5, INT)),
        ("abs", [(-5, INT)], (5, INT)),
        ("MAJOR", [(0x800001, UINT)], (8, UINT)),
        ("MINOR", [(0x800001, UINT)], (1, UINT)),
        ("MKDEV", [(8, INT), (1, INT)], (0x800001, UINT)),
        ("ilog2", [(4096, ULONG)], (12, INT)),
        ("order_base_2", [(5, INT)], (3, INT)),
        ("hweight8", [(-1, INT)], (8, UINT)),
        ("upper_32_bits", [(1 << 33, ULLONG)], (2, UINT)),
        ("BIT", [(40, INT)], (1 << 40, ULONG)),
        ("GENMASK", [(7, INT), (4, INT)], (0xF0, ULONG)),
        ("DIV_ROUND_UP", [(7, INT), (4, INT)], (2, LLONG)),
        ("round_down", [(7, INT), (4, INT)], (4, LLONG)),
        ("div_s64", [(-7, INT), (2, INT)], (-3, LLONG)),
        ("ktime_to_us", [(-1999, LLONG)], (-1, LLONG)),
        ("IS_ERR", [(-22, INT)], (1, INT)),
        ("PTR_ERR_OR_ZERO", [(-22, LLONG)], (-22, INT)),
        ("S_ISDIR", [(0o40755, USHORT)], (1, INT)),
    ],
)
def test_values_and_types(name, values, expected):
    assert FUNCTIONS[name].call(*values) == expected


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("ilog2", [(0, INT)]),
        ("BIT", [(64, INT)]),
        ("GENMASK", [(1, INT), (4, INT)]),
        ("div_u64", [(1, INT), (0, INT)]),
        ("round_up", [(1, INT), (0, INT)]),
    ],
)
def test_what_has_no_value(name, values):
    with pytest.raises(ArithmeticError):
        FUNCTIONS[name].call(*values)


def test_a_long_of_four_bytes():
    assert pure_functions(4)["BIT"].call((31, INT)) == (1 << 31, UINT)
    assert pure_functions(4)["IS_ERR"].call((0xFFFFFFFF, UINT)) == (1, INT)
    assert pure_functions(8)["IS_ERR"].call((0xFFFFFFFF, UINT)) == (0, INT)


@pytest.mark.parametrize(
    ("name", "little", "big"),
    [
        ("ntohs", 0x3412, 0x1234),
        ("le16_to_cpu", 0x1234, 0x3412),
        ("__cpu_to_be16", 0x3412, 0x1234),
        ("swab16", 0x3412, 0x3412),
    ],
)
def test_byte_orders(name, little, big):
    order = BYTE_ORDERS[name]
    assert order.call(0x1234) == little
    assert order.call(0x1234, is_big_endian=True) == big
    assert order.kind == IntType(2, is_signed=False)


def test_names_are_in_one_table():
    tables = [set(FUNCTIONS), set(BYTE_ORDERS), set(TYPED), set(TRANSPARENT), set(QUIET)]
    assert len(set.union(*tables)) == sum(map(len, tables))
    assert set(TYPED.values()) <= set(FUNCTIONS)
