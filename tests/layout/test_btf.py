"""BTF: sizes, enums, structs and prototypes, split BTF, and damage."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.btf_builder import BtfBuilder
from tracepoint.errors import LayoutError
from tracepoint.layout.btf import BtfKind, read_btf


def sample(order: str = "<") -> BtfBuilder:
    builder = BtfBuilder(order)
    number = builder.int("int", 4, 1)
    unsigned = builder.int("unsigned int", 4, 0)
    char = builder.int("char", 1, 1)
    wide = builder.int("long long unsigned int", 8, 0)
    builder.type(8, "u32", unsigned)
    builder.struct("pair", 16, [("a", char, 0), ("b", wide, 8)])
    builder.struct("packed", 9, [("a", char, 0), ("b", wide, 1)])
    builder.enum("colour", {"RED": 1, "BLUE": 2})
    builder.enum("level", {"LOW": -1, "HIGH": 1}, flag=1)
    builder.type(3, "", 0, [char, number, 16])
    pointer = builder.type(2, "", builder.type(10, "", char))
    prototype = builder.type(13, "", 0, [builder.string("x"), number, builder.string("s"), pointer], 2)
    builder.type(8, "btf_trace_demo", builder.type(2, "", prototype))
    return builder


@pytest.mark.parametrize("order", ["<", ">"])
def test_sizes(order: str) -> None:
    btf = read_btf(sample(order).build())
    expected = {
        "int": (4, 4, True),
        "u32": (4, 4, False),
        "unsigned": (4, 4, False),
        "unsigned long long": (8, 8, False),
        "struct pair": (16, 8, False),
        "struct packed": (9, 1, False),
        "enum colour": (4, 4, False),
        "enum level": (4, 4, True),
    }
    for name, facts in expected.items():
        found = btf.find(name)
        assert found is not None, name
        assert tuple(btf.size_of(found)) == facts, name
    assert btf.find("struct nothing") is None
    assert tuple(btf.size_of(10)) == (16, 1, True)
    assert btf.spell(10) == "char[16]"


def test_enums_members_and_prototypes() -> None:
    btf = read_btf(sample().build())
    level = btf.find("enum level")
    pair = btf.find("struct pair")
    trace = btf.find("btf_trace_demo")
    assert level is not None
    assert pair is not None
    assert trace is not None
    assert btf.enum_values(level) == {"LOW": -1, "HIGH": 1}
    assert btf.constant("BLUE") == 2
    assert btf.constant("GREEN") is None
    assert [(m.name, m.offset) for m in btf.members(pair)] == [("a", 0), ("b", 64)]
    assert [(p.name, btf.spell(p.type_id)) for p in btf.prototype(trace)] == [
        ("x", "int"),
        ("s", "const char *"),
    ]
    assert btf.kind(trace) is BtfKind.TYPEDEF
    with pytest.raises(LayoutError, match="no members"):
        btf.members(level)
    with pytest.raises(LayoutError, match="not a function"):
        btf.prototype(pair)


def test_a_large_unsigned_enum_is_not_negative_where_signs_are_marked() -> None:
    builder = sample()
    big = builder.enum("mask", {"ALL": 0xFFFFFFFF})
    assert read_btf(builder.build()).enum_values(big) == {"ALL": 0xFFFFFFFF}


def test_enum64() -> None:
    builder = BtfBuilder()
    name = builder.string("BIG")
    big = builder.type(19, "wide", 8, [name, 0, 1], 1)
    assert read_btf(builder.build()).enum_values(big) == {"BIG": 1 << 32}


def test_split_btf_of_a_module() -> None:
    base = read_btf(sample().build())
    split = BtfBuilder(first_id=base.n_types, string_base=base.string_end)
    char = base.find("char")
    pair = base.find("struct pair")
    assert char is not None
    assert pair is not None
    split.struct("own", 24, [("p", pair, 0), ("c", char, 16)])
    btf = read_btf(split.build(), base)
    own = btf.find("struct own")
    assert own is not None
    assert tuple(btf.size_of(own)) == (24, 8, False)
    assert [btf.spell(m.type_id) for m in btf.members(own)] == ["struct pair", "char"]
    assert btf.find("u32") == base.find("u32")
    assert btf.constant("RED") == 1


def test_types_that_contain_themselves_end() -> None:
    builder = BtfBuilder()
    builder.struct("loop", 8, [("self", 1, 0)])
    chain = builder.type(8, "t", 2)
    array = builder.type(3, "", 0, [3, 1, 2])
    pointer = builder.type(2, "", 4)
    btf = read_btf(builder.build())
    assert btf.size_of(1).size == 8
    for type_id in (chain, array):
        with pytest.raises(LayoutError):
            btf.size_of(type_id)
    with pytest.raises(LayoutError, match="does not end"):
        btf.strip(chain)
    assert btf.spell(chain) == "t"
    with pytest.raises(LayoutError, match="does not end"):
        btf.spell(pointer)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x9f\xeb" + b"\0" * 10,
        b"\0" * 40,
        sample().build()[:60],
        sample().build()[:-40],
        b"\x9f\xeb\x02" + b"\0" * 40,
    ],
)
def test_what_is_no_btf_is_refused(data: bytes) -> None:
    with pytest.raises(LayoutError, match="BTF"):
        read_btf(data)


@given(st.lists(st.tuples(st.integers(24, 400), st.integers(0, 255)), min_size=1, max_size=6))
def test_damaged_btf_gives_values_or_errors(changes: list[tuple[int, int]]) -> None:
    damaged = bytearray(sample().build())
    for at, value in changes:
        damaged[at % len(damaged)] = value
    try:
        btf = read_btf(bytes(damaged))
    except LayoutError:
        return
    for type_id in range(btf.n_types + 1):
        for ask in (btf.size_of, btf.spell, btf.members, btf.enum_values, btf.prototype):
            try:
                ask(type_id)
            except LayoutError:
                continue


@pytest.mark.oracle
def test_this_machines_own_kernel() -> None:
    path = Path("/sys/kernel/btf/vmlinux")
    if not path.is_file():
        pytest.skip("this kernel has no /sys/kernel/btf/vmlinux (CONFIG_DEBUG_INFO_BTF)")
    btf = read_btf(path.read_bytes())
    dev = btf.find("dev_t")
    entry = btf.find("struct trace_entry")
    assert dev is not None
    assert entry is not None
    assert tuple(btf.size_of(dev)) == (4, 4, False)
    assert [m.name for m in btf.members(entry)][:4] == ["type", "flags", "preempt_count", "pid"]
