import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from printk.making import both, line, make, rendered
from tracepoint.errors import TracepointError
from tracepoint.layout.format import EventFormat, FieldFormat
from tracepoint.layout.structs import Placed, StructLayout
from tracepoint.printk.facts import RenderFacts
from tracepoint.printk.printformat import split_print_format
from tracepoint.printk.program import compile_print
from tracepoint.source.ctype import parse_ctype
from tracepoint.source.functions import pure_functions
from tracepoint.source.types import INT, LLONG, UINT, ULLONG

S16 = b"comm\0stale bytes"


@pytest.mark.parametrize(
    ("text", "fields", "expected"),
    [
        ('"%d %u", REC->a, REC->a', [("s8", "a", -1)], "-1 4294967295"),
        ('"%d", REC->a - REC->b', [("u32", "a", 1), ("u32", "b", 2)], "-1"),
        ('"%lld", REC->a - REC->b', [("u32", "a", 1), ("u32", "b", 2)], "4294967295"),
        ('"%lld", (s64)REC->a - REC->b', [("u32", "a", 1), ("u32", "b", 2)], "-1"),
        ('"%d", REC->a < REC->b', [("int", "a", -1), ("u32", "b", 2)], "0"),
        ('"%d", REC->a < REC->b', [("int", "a", -1), ("int", "b", 2)], "1"),
        ('"%d", REC->a / 2', [("int", "a", -7)], "-3"),
        ('"%d", REC->a % 4', [("int", "a", -7)], "-3"),
        ('"%x", REC->a & (0x40000 | 0x80000)', [("u32", "a", 0xC0000)], "c0000"),
        ('"%s", REC->a ? "yes" : "no"', [("bool", "a", 1)], "yes"),
        ('"%d", REC->a ?: 5', [("int", "a", 0)], "5"),
        ('"%llx", ~REC->a', [("u64", "a", 0)], "f" * 16),
        ('"%llx", (u64)~REC->a', [("u8", "a", 0)], "f" * 16),
        ('"%x", (u8)~REC->a', [("u8", "a", 0)], "ff"),
        ('"%d,%d", ((unsigned int) ((REC->d) >> 20)), ((unsigned int) ((REC->d) & ((1U << 20) - 1)))',
         [("u32", "d", 8 << 20 | 3)], "8,3"),
        ('"%s", REC->c', [("char[16]", "c", S16)], "comm"),
        ('"%.2s|", REC->c', [("char[16]", "c", S16)], "co|"),
        ('"%c", REC->c[1]', [("char[16]", "c", S16)], "o"),
        ('"%zu", sizeof(REC->c)', [("char[16]", "c", S16)], "16"),
        ('"%u", REC->a[1]', [("u16[2]", "a", b"\1\0\2\0")], "2"),
        ('"%u", *(u16 *)&REC->a[2]', [("u8[4]", "a", b"\1\0\2\1")], "258"),
        ('"%u", *((u16 *)REC->a + 1)', [("u8[4]", "a", b"\1\0\2\1")], "258"),
        ('"%u", REC->n[1]', [("nid_t[2]", "n", b"\1\0\0\0\2\0\0\0")], "2"),
        ('"%s", (const char *[]){ "a", "b" }[REC->i]', [("int", "i", 1)], "b"),
        ('"%d", (int[]){ [2] = 7, 8 }[REC->i]', [("int", "i", 3)], "8"),
        ('"%c", "RSDT"[REC->i]', [("int", "i", 2)], "D"),
        ('"%s", "a" "b"', [], "ab"),
        ('"%x", __builtin_bswap16(REC->a)', [("u16", "a", 0x1234)], "3412"),
        ('"%x", ntohs(REC->a)', [("__be16", "a", 0x1234)], "3412"),
        ('"%x", __le32_to_cpup(REC->a)', [("u8[4]", "a", b"\4\3\2\1")], "1020304"),
        ('"%u", min_t(u8, REC->a, 300)', [("u32", "a", 255)], "44"),
        ('"%d", max(REC->a, 3)', [("int", "a", -5)], "3"),
        ('"%u", ({ u32 x = REC->a + 1; x * 2; })', [("u32", "a", 4)], "10"),
        ('"%u", (REC)->a', [("u32", "a", 4)], "4"),
        ('"%u", __builtin_constant_p((__u16)(REC->a)) ? ((__u16)(REC->a)) : f(REC->a)', [("u32", "a", 65537)], "1"),
        ('"%d", sizeof(struct { int:(-!!(1 > 2)); })', [], "0"),
        ('"%s", ((void *)0)', [], "(null)"),
        ('"%.*s|", 0, REC->a ? __get_str(s) : ((void *)0)', [("u8", "a", 0), ("__data_loc char[]", "s", b"x\0")], "|"),
        ('"a\n\tb=%d', [], None),
        ('"\ta "%d"\n", REC->a', [("int", "a", 1)], '\ta "1"\n'),
        ('"50%% of %d", REC->a', [("int", "a", 1)], "50% of 1"),
        ('"plain", ', [], "plain"),
        ('"plain"', [], "plain"),
        ('"%d", ret', [], "1"),
        ('"%u", REC->__data_loc_s >> 16', [("__data_loc char[]", "s", b"abc\0")], "4"),
        ('"%llu", REC->a << 4', [("u32", "a", 0xF0000000)], "0"),
        ('"%d", !REC->a', [("int", "a", 0)], "1"),
        ('"%d", REC->a && 1 / REC->a', [("int", "a", 0)], "0"),
        ('"%d", -REC->a', [("u8", "a", 5)], "-5"),
        ('"%s", REC->a == 1 ? "one" : REC->a == 2 ? "two" : __print_symbolic(REC->a, { 3, "three" })',
         [("int", "a", 3)], "three"),
        ('"%u", __event_in_irq()', [], "0"),
        ('"%u", hweight32(REC->a)', [("u32", "a", 7)], "3"),
    ],
)  # fmt: skip
def test_expressions(text, fields, expected):
    if expected is None:
        assert not rendered(text, *fields).is_exact
    else:
        assert line(text, *fields) == expected


@pytest.mark.parametrize(("big", "long_size"), [(True, 8), (False, 4), (True, 4)])
def test_other_machines(big, long_size):
    how = {"big": big, "long_size": long_size}
    fields = [("u16", "a", 0x1234), ("long", "l", -1), ("__data_loc char[]", "s", b"hi\0")]
    got = line('"%x %lx %s %x", REC->a, REC->l, __get_str(s), ntohs(REC->a)', *fields, **how)
    assert got == f"1234 {'f' * 2 * long_size} hi {'1234' if big else '3412'}"
    assert line('"%p", REC->p', ("void *", "p", 0x1234), **how) == "1234".rjust(2 * long_size, "0")
    assert line('"%lu", REC->l / 2', ("unsigned long", "l", -2), **how) == str(
        ((1 << 8 * long_size) - 2) // 2
    )


@pytest.mark.parametrize(
    ("text", "fields", "missing"),
    [
        ('"%lu", jiffies - REC->a', [("unsigned long", "a", 1)], "jiffies"),
        ('"%s", some_function(REC->a)', [("int", "a", 1)], "some_function()"),
        ('"%d", REC->p->x', [("struct foo *", "p", 1)], "a kernel pointer points to"),
        ('"%d", REC->a / REC->b', [("int", "a", 1), ("int", "b", 0)], "division by zero"),
        ('"%d", FOO', [], "FOO"),
        ('"%d"', [], "argument that the print format lacks"),
        ('"%s", REC->p', [("const char *", "p", 0x1000)], "0x1000"),
        ('"%pd", REC->p', [("void *", "p", 0x1000)], "%pd"),
        ('"%d", REC->nothing', [], "nothing"),
        ('"%s", __get_str(nothing)', [], "lacks"),
        ('"%d", REC->a +', [("int", "a", 1)], "the print format"),
        ("no quote", [], "begins with a quote"),
        ('"%n", REC->a', [("int", "a", 1)], "%n"),
        ('"%u", jiffies_to_msecs(REC->a)', [("u32", "a", 1)], "HZ"),
        ('"%s", (const char *[]){ "a" }[REC->a]', [("int", "a", 1)], "outside a table"),
        ('"%pI4", REC->a', [("void *", "a", 1)], "a kernel pointer points to"),
        ('"%d", __get_str(s)', [("__data_loc char[]", "s", b"x\0")], "used as a number"),
        ('"%s", REC->c', [("char[4]", "c", b"abcd")], "past the end"),
    ],
)  # fmt: skip
def test_what_cannot_be_known_shows_the_fields(text, fields, missing):
    result = rendered(text, *fields)
    assert not result.is_exact
    assert missing in result.notes[0]
    for _, name, value in fields:
        if isinstance(value, int):
            assert f"{name}={value:#x}" in result.text or f"{name}={value}" in result.text


def test_a_branch_not_taken_need_not_be_known():
    assert rendered('"%s", REC->a ? f(REC->a) : "no"', ("int", "a", 0)).text == "no"
    assert rendered('"%d", REC->a ? f(REC->a) : -1', ("int", "a", 0)).text == "-1"
    assert not rendered('"%s", REC->a ? f(REC->a) : "no"', ("int", "a", 1)).is_exact


@pytest.mark.parametrize(("is_signed", "expected"), [(True, "-1 -56"), (False, "255 200")])
def test_the_fields_tell_whether_char_is_signed(is_signed, expected):
    field = FieldFormat("c", "char[2]", 8, 2, is_signed=is_signed)
    form = EventFormat("x", "y", (field,), '"%d %d", REC->c[1], (char)200', n_common=0)
    assert both(compile_print(form), bytes(9) + b"\xff").text == expected


@pytest.mark.parametrize(
    ("call", "value", "expected"),
    [
        ("mc_event_error_type(REC->a)", 1, "Uncorrected"),
        ("mc_event_error_type(REC->a)", 9, "Info"),
        ("cper_severity_str(REC->a)", 2, "corrected"),
        ("cper_severity_str(REC->a)", 4, "unknown"),
        ("cper_mem_err_type_str(REC->a)", 15, "physical memory map-out event"),
        ("xhci_ring_type_string(REC->a)", 5, "CMD"),
        ("blk_op_str(REC->a)", 3, "DISCARD"),
        ("str_yes_no(REC->a)", 2, "yes"),
        ("str_on_off(REC->a)", 0, "off"),
    ],
)
def test_functions_of_values_alone(call, value, expected):
    assert line(f'"%s", {call}', ("u32", "a", value)) == expected


def test_numbers_that_differ_between_kernels_are_not_named():
    assert not rendered('"%s", blk_op_str(REC->a)', ("u32", "a", 10)).is_exact


@pytest.mark.parametrize(("name", "shown"), [(b"vda\0", "disk=vda, "), (bytes(4), "")])
def test_the_name_of_a_disk_where_there_is_one(name, shown):
    """The first argument is the buffer that the driver's function prints into."""
    assert (
        line('"nvme: %sqid=1", nvme_trace_disk_name(p, REC->disk)', ("char[4]", "disk", name))
        == f"nvme: {shown}qid=1"
    )


@pytest.mark.thorough
@pytest.mark.parametrize("long_size", [4, 8])
def test_pure_functions_compute_what_their_table_says(long_size):
    """Those that are made of ops too."""
    numbers = (
        0,
        1,
        -1,
        3,
        -7,
        255,
        1 << 20 | 5,
        0x41ED,
        (1 << 31) - 1,
        -(1 << 31),
        -(1 << 62),
        (1 << 63) - 1,
    )
    kinds = {"int": INT, "u32": UINT, "s64": LLONG, "u64": ULLONG}
    rng = random.Random(2)
    for name, pure in pure_functions(long_size).items():
        for _ in range(40):
            chosen = [(rng.choice(list(kinds)), rng.choice(numbers)) for _ in pure.arguments]
            fields = [(ctype, f"a{at}", number) for at, (ctype, number) in enumerate(chosen)]
            call = f"{name}({', '.join(f'REC->a{at}' for at in range(len(chosen)))})"
            shown = rendered(f'"%lld", (s64){call}', *fields, long_size=long_size)
            try:
                value, _ = pure.call(*[(kinds[ctype].wrap(number), kinds[ctype]) for ctype, number in chosen])
            except ArithmeticError:
                # The table takes no negative numbers, a running kernel takes their bits.
                assert not shown.is_exact or name == "ilog2", (call, chosen)
                continue
            assert (shown.text, shown.is_exact) == (str(LLONG.wrap(value)), True), (call, chosen)


def test_facts():
    facts = RenderFacts(
        hz=250,
        variables={"jiffies": 100, "vmemmap_base": 0xFFFFEA0000000000},
        constants={"TCP_LISTEN": 10}.get,
        sizeof={"struct page": 64}.get,
        printk_formats={0x1000: "hello"},
    )
    assert line('"%lu", (jiffies - REC->a) / 250', ("unsigned long", "a", 10), facts=facts) == "0"
    text = '"%p", (((struct page *)vmemmap_base) + (REC->pfn))'
    assert line(text, ("unsigned long", "pfn", 2), facts=facts) == "ffffea0000000080"
    assert line('"%s", REC->p', ("char *", "p", 0x1000), facts=facts) == "hello"
    text = '"%s", __print_symbolic(REC->s, { TCP_LISTEN, "LISTEN" })'
    assert line(text, ("int", "s", 10), facts=facts) == "LISTEN"
    assert line(text, ("int", "s", 10), constants={"TCP_LISTEN": 10}.get) == "LISTEN"
    assert line('"%u", jiffies_to_msecs(REC->a)', ("u32", "a", 3), facts=facts) == "12"


def test_struct_layouts_may_be_given():
    members = {"x1": Placed(0, parse_ctype("int")), "name": Placed(4, parse_ctype("char[4]"))}
    members["flag"] = Placed(0, parse_ctype("int"), bits=1)
    layout = StructLayout(8, 4, members)
    layouts = {"struct rect": layout}.get
    fields = [("struct rect", "r", b"\5\0\0\0ab\0\0")]
    assert (
        line('"%d %s %d", REC->r.x1, (&REC->r)->name, sizeof(struct rect)', *fields, layouts=layouts)
        == "5 ab 8"
    )
    assert not rendered('"%d", REC->r.x1', *fields).is_exact
    assert not rendered('"%d", REC->r.flag', *fields, layouts=layouts).is_exact


def test_source_of_tp_printk():
    fields = [("int", "a", 1), ("__data_loc char[]", "s", b"x\0")]
    assert line("", *fields, source=r'"a=%d\t" "\"%s\"", __entry->a, __get_str(s)') == 'a=1\t"x"'


def test_needs_tell_what_a_program_wants():
    form, _ = make('"%lu", jiffies - REC->a', ("unsigned long", "a", 1))
    assert compile_print(form).needs == ("the name jiffies",)
    form, _ = make('"%d", REC->a', ("int", "a", 1))
    assert compile_print(form).is_complete


def test_split_finds_the_end_of_a_format_with_quotes():
    text, arguments = split_print_format('"a "%s", b=%d", REC->s, "x, y" "z"[0]')
    assert text == 'a "%s", b=%d'
    assert len(arguments) == 2


def test_the_quotes_of_a_probe_are_quotes():
    """No compiler saw them: kernel/trace/trace_probe.c, PRINT_TYPE_FMT_NAME(string)."""
    text, arguments = split_print_format(
        r'"(%lx) file=\"%s\" n=%d", REC->__probe_ip, __get_str(file), REC->n'
    )
    assert text == '(%lx) file="%s" n=%d'
    assert len(arguments) == 3


def test_utf8_survives():
    assert (
        line('"é %s %.1s", __get_str(s), __get_str(s)', ("__data_loc char[]", "s", "ü\0".encode()))
        == "é ü \udcc3"
    )


def test_a_short_record_is_told():
    form, record = make('"%d", REC->a', ("int", "a", 1))
    for size in range(len(record)):
        result = both(compile_print(form), record[:size])
        assert not result.is_exact
        assert "a=<cut>" in result.text


@settings(deadline=None, max_examples=examples(300))
@given(st.text(alphabet='"%dsplxcIM*.0-#,REC->ab()?:{}[]+/ \n_get', max_size=60), st.binary(max_size=40))
def test_no_print_format_and_no_record_breaks_it(text, record):
    fields = (
        FieldFormat("a", "u32", 8, 4, is_signed=False),
        FieldFormat("b", "__data_loc char[]", 12, 4, is_signed=False),
    )
    for source in (text, '"' + text + '", REC->a, __get_str(b), REC->b'):
        form = EventFormat("x", "y", fields, source, n_common=0)
        assert isinstance(both(compile_print(form), record).text, str)


@pytest.mark.parametrize(
    "text",
    ['"%d", ' + "(" * 50000, '"%d", ' + "-" * 50000 + "1", '"' + '"' * 3000, '"%d", ' + "1 +" * 3000 + "1",
     '"%999999999d", REC->a', '"%*d", 1 << 30, REC->a', '"' + "%d" * 2000 + '"'],
    ids=lambda text: text[:12],
)  # fmt: skip
def test_absurd_formats_are_answered(text):
    result = rendered(text, ("int", "a", 1))
    assert len(result.text) < 1 << 17


def test_split_never_raises_other_errors():
    with pytest.raises(TracepointError):
        split_print_format('"abc')
