"""Records computed from declarations: every kind of field, every architecture, and what is not known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from layout.btf_builder import BtfBuilder
from tracepoint.errors import LayoutError
from tracepoint.layout.abi import Abi
from tracepoint.layout.btf import read_btf
from tracepoint.layout.compute import compute_layout
from tracepoint.layout.format import COMMON_FIELDS, FieldFormat, write_format
from tracepoint.layout.sizes import TypeSizes
from tracepoint.model.event import EnumDef, Event
from tracepoint.model.read import read_header_text
from tracepoint.source.lexer import Token
from tracepoint.source.structs import StructBody


def declare(fields: str, printk: str = '"x"', extra: str = "") -> Event:
    header = read_header_text(
        f"#define TRACE_SYSTEM demo\n{extra}\n"
        "TRACE_EVENT(tick, TP_PROTO(int n), TP_ARGS(n),\n"
        f"TP_STRUCT__entry({fields}),\nTP_fast_assign(),\nTP_printk({printk}));\n"
    )
    return header["tick"]


@dataclass
class FakeNames:
    constants: dict[str, int] = field(default_factory=dict)
    typedefs: dict[str, str] = field(default_factory=dict)
    enums: dict[str, dict[str, int | None]] = field(default_factory=dict)
    packed: tuple[str, ...] = ()

    def constant(self, name: str) -> int | None:
        return self.constants.get(name)

    def typedef(self, name: str) -> str | None:
        return self.typedefs.get(name)

    def enum_members(self, tag: str) -> dict[str, int | None] | None:
        return self.enums.get(tag)

    def is_packed_enum(self, tag: str) -> bool:
        return tag in self.packed

    def struct(self, name: str) -> StructBody | None:
        return None

    def expand_value(self, tokens: Sequence[Token]) -> list[Token]:
        return list(tokens)


EVERY_KIND = """
    __field(u8, small)
    __field(unsigned long, where)
    __field_ext(pid_t, pid, FILTER_OTHER)
    __field_struct(struct in6_addr, addr)
    __array(char, comm, TASK_COMM_LEN)
    __array(u16, trio, 3)
    __string(name, n)
    __dynamic_array(int, list, n)
    __bitmask(mask, n)
    __cpumask(cpus)
    __sockaddr(peer, n)
    __rel_string(rname, n)
    __rel_dynamic_array(u64, rlist, n)
    __rel_bitmask(rmask, n)
    __rel_cpumask(rcpus)
    __rel_sockaddr(rpeer, n)
    __field(void *, tail)
    __field(u8, last)
"""


def test_every_kind_of_field() -> None:
    event = compute_layout(declare(EVERY_KIND))
    assert [(f.name, f.ctype, f.offset, f.size, int(f.is_signed)) for f in event.event_fields] == [
        ("small", "u8", 8, 1, 0),
        ("where", "unsigned long", 16, 8, 0),
        ("pid", "pid_t", 24, 4, 1),
        ("addr", "struct in6_addr", 28, 16, 0),
        ("comm", "char[16]", 44, 16, 1),
        ("trio", "u16[3]", 60, 6, 0),
        ("name", "__data_loc char[]", 68, 4, 1),
        ("list", "__data_loc int[]", 72, 4, 1),
        ("mask", "__data_loc unsigned long[]", 76, 4, 0),
        ("cpus", "__data_loc cpumask_t", 80, 4, 0),
        ("peer", "__data_loc u8[]", 84, 4, 0),
        ("rname", "__rel_loc char[]", 88, 4, 1),
        ("rlist", "__rel_loc u64[]", 92, 4, 0),
        ("rmask", "__rel_loc unsigned long[]", 96, 4, 0),
        ("rcpus", "__rel_loc cpumask_t", 100, 4, 0),
        ("rpeer", "__rel_loc u8[]", 104, 4, 0),
        ("tail", "void *", 112, 8, 0),
        ("last", "u8", 120, 1, 0),
    ]
    assert event.size_bytes == 128
    assert event.holes == ((9, 7), (66, 2), (108, 4))
    assert event.tail_padding == 7
    assert "\tfield:__rel_loc char rname[];\toffset:88;" in write_format(event)


@pytest.mark.parametrize(
    ("abi", "offset", "size", "is_big_endian"),
    [
        (Abi.X86_64, 16, 8, False),
        (Abi.I386, 12, 4, False),
        (Abi.ARM, 16, 4, False),
        (Abi.ARM64, 16, 8, False),
        (Abi.RISCV64, 16, 8, False),
        (Abi.S390X, 16, 8, True),
        (Abi.PPC64LE, 16, 8, False),
    ],
)
def test_architectures(abi: Abi, offset: int, size: int, is_big_endian: bool) -> None:
    event = compute_layout(declare("__field(u8, a) __field(u64, b) __field(long, c)"), abi)
    assert event["b"].offset == offset
    assert event["c"].size == size
    assert (event.is_big_endian, event.long_size) == (is_big_endian, size)


@pytest.mark.parametrize(
    ("abi", "given", "expected"), [(Abi.X86_64, None, 1), (Abi.X86_64, False, 0), (Abi.ARM64, None, 0)]
)
def test_plain_char(abi: Abi, given: bool | None, expected: int) -> None:
    event = compute_layout(declare("__array(char, a, 4) __string(b, n)"), abi, is_char_signed=given)
    assert [int(f.is_signed) for f in event.event_fields] == [expected, expected]


def test_macros_in_types_are_shown_as_the_preprocessor_leaves_them() -> None:
    event = compute_layout(declare("__field(void __user *, p) __field(pgoff_t, i) __array(pgoff_t, a, 2)"))
    assert [f.ctype for f in event.event_fields] == ["void *", "unsigned long", "pgoff_t[2]"]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ("__field(struct secret, s)", "field s: the size of type 'struct secret'"),
        ("__field(enum kind, k)", "field k: the constants of 'enum kind'"),
        ("__array(char, c, SECRET_LEN)", "field c: the array length 'SECRET_LEN'"),
        ("__array(char, c, 1 << 30)", "impossible"),
        ("__array(char, c, -1)", "impossible"),
        ("SECRET_FIELDS", "nothing defines the field macro"),
    ],
)
def test_what_is_not_known_is_an_error_with_the_field(fields: str, reason: str) -> None:
    with pytest.raises(LayoutError, match="event demo:tick") as caught:
        compute_layout(declare(fields))
    assert reason in str(caught.value)


def test_the_environment_answers_for_names() -> None:
    names = FakeNames(
        {"SECRET_LEN": 5},
        {"secret_t": "other_t", "other_t": "unsigned short", "cb_t": "struct x *"},
        {"up": {"A": 0, "B": 1}, "down": {"A": -1, "B": None}, "dim": {"A": None}},
    )
    sizes = TypeSizes(Abi.X86_64, environment=names)
    assert sizes.of("secret_t") == (2, 2, False)
    assert sizes.of("cb_t") == (8, 8, False)
    assert sizes.of("enum up") == (4, 4, False)
    assert sizes.of("enum down") == (4, 4, True)
    assert sizes.of("char[SECRET_LEN * 2]").size == 10
    assert sizes.length("sizeof(struct in6_addr) + SECRET_LEN") == 21
    with pytest.raises(LayoutError, match="value of A is not known"):
        sizes.of("enum dim")


@pytest.mark.parametrize(
    ("values", "plain", "packed"),
    [
        ({"A": 0, "B": 255}, (4, 4, False), (1, 1, False)),
        ({"A": 0, "B": 256}, (4, 4, False), (2, 2, False)),
        ({"A": -1, "B": 127}, (4, 4, True), (1, 1, True)),
        ({"A": -1, "B": 128}, (4, 4, True), (2, 2, True)),
        ({"A": 1 << 31}, (4, 4, False), (4, 4, False)),
        ({"A": 1 << 32}, (8, 8, False), (8, 8, False)),
        ({"A": -1, "B": 1 << 31}, (8, 8, True), (8, 8, True)),
    ],
)
def test_enums_are_as_large_as_gcc_makes_them(
    values: dict[str, int | None], plain: object, packed: object
) -> None:
    names = FakeNames(enums={"plain": values, "packed": values}, packed=("packed",))
    sizes = TypeSizes(Abi.X86_64, environment=names)
    assert sizes.of("enum plain") == plain
    assert sizes.of("enum packed") == packed


@pytest.mark.parametrize("attribute", ["__mode(byte)", "__packed", "__attribute__((__packed__))"])
def test_a_packed_enum_of_the_header_is_one_byte(attribute: str) -> None:
    header = read_header_text(
        f"#define TRACE_SYSTEM demo\nenum small {{ A, B }} {attribute};\n"
        "TRACE_EVENT(tick, TP_PROTO(int n), TP_ARGS(n), TP_STRUCT__entry(__field(enum small, a)),\n"
        'TP_fast_assign(), TP_printk("x"));\n'
    )
    assert compute_layout(header["tick"], environment=header.environment)["a"].size == 1


def test_a_variable_called_mode_packs_nothing() -> None:
    header = read_header_text("#define TRACE_SYSTEM demo\nenum small { A, B } mode, packed;\n")
    assert TypeSizes(Abi.X86_64, environment=header.environment).of("enum small").size == 4


def test_typedefs_in_a_circle_are_not_known() -> None:
    names = FakeNames(typedefs={"a_t": "b_t", "b_t": "a_t"})
    with pytest.raises(LayoutError, match="is not known"):
        TypeSizes(Abi.X86_64, environment=names).of("a_t")


def test_btf_comes_first() -> None:
    builder = BtfBuilder()
    number = builder.int("unsigned int", 4, 0)
    builder.struct("in6_addr", 24, [("odd", number, 0)])
    builder.type(8, "pid_t", builder.int("short int", 2, 1))
    builder.enum("anything", {"TASK_COMM_LEN": 32})
    sizes = TypeSizes(Abi.X86_64, btf=read_btf(builder.build()))
    assert sizes.of("struct in6_addr").size == 24
    assert sizes.of("pid_t") == (2, 2, True)
    assert sizes.length("TASK_COMM_LEN") == 32
    assert sizes.of("u64") == (8, 8, False)


def test_real_time_kernels_have_more_common_fields() -> None:
    common = (
        *COMMON_FIELDS,
        FieldFormat("common_preempt_lazy_count", "unsigned char", 8, 1, is_signed=False),
    )
    event = compute_layout(declare("__field(u8, a)"), common=common)
    assert event["a"].offset == 12
    assert event.n_common == 5


def test_nop_events_have_no_record() -> None:
    with pytest.raises(LayoutError, match="_NOP"):
        compute_layout(replace(declare("__field(u8, a)"), is_nop=True))


@pytest.mark.parametrize(
    ("printk", "text"),
    [
        ('"n=%d"  " s=%s\\n",\n\t__entry->n,   __get_str(s)', '"n=%d s=%s\n", REC->n, __get_str(s)'),
        ('"plain"', '"plain", '),
        ('"q \\"%d\\"", __entry->n', '"q "%d"", REC->n'),
        (
            '"%s", __print_symbolic(__entry->n, { RED, "RED" })',
            '"%s", __print_symbolic(REC->n, { 3, "RED" })',
        ),
        ('"%lu", __print_ns_to_secs(__entry->n)', '"%lu", (REC->n) / 1000000000UL'),
        ('"%lu", __print_ns_without_secs(f(__entry->n))', '"%lu", (f(REC->n)) % 1000000000UL'),
        ('"%d", LOCAL(__entry->n)', '"%d", ((REC->n) + 1)'),
    ],
)
def test_print_format(printk: str, text: str) -> None:
    event = declare("__field(int, n) __string(s, n)", printk, "#define LOCAL(x) ((x) + 1)")
    names = FakeNames({"RED": 3})
    assert compute_layout(event, environment=names, enums=[EnumDef("RED", system="demo")]).print_fmt == text


def test_enums_of_another_system_do_not_count() -> None:
    event = declare("__field(int, n)", '"%d", RED')
    found = compute_layout(event, environment=FakeNames({"RED": 3}), enums=[EnumDef("RED", system="other")])
    assert found.print_fmt == '"%d", RED'
