import pytest

from printk.making import line, rendered

FLAGS = '__print_flags(REC->f, "|", { 1, "A" }, { 2, "B" }, { 12, "CD" })'


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, ""), (1, "A"), (3, "A|B"), (4, "0x4"), (13, "A|CD"), (16, "0x10"), (17, "A|0x10")],
)
def test_print_flags(value, expected):
    assert line(f'"%s", {FLAGS}', ("u32", "f", value)) == expected


def test_print_flags_without_a_delimiter_or_with_an_end():
    assert line('"%s", __print_flags(REC->f, "", { 1, "A" }, { 2, "B" })', ("u32", "f", 7)) == "AB0x4"
    assert line('"%s", __print_flags(REC->f, ((void *)0), { 1, "A" }, { 2, "B" })', ("u32", "f", 3)) == "AB"
    assert (
        line('"%s", __print_flags(REC->f, "|", { 1, "A" }, { -1, ((void *)0) }, { 2, "B" })', ("u32", "f", 3))
        == "A|0x2"
    )


def test_print_flags_widens_as_the_kernel_does():
    text = '"%s", __print_flags(REC->f, "|", { 1, "A" })'
    assert line(text, ("int", "f", -1)) == "A|0xfffffffffffffffe"
    assert line(text, ("int", "f", -1), long_size=4) == "A|0xfffffffe"
    assert (
        line(text.replace("flags", "flags_u64"), ("u64", "f", 1 << 40 | 1), long_size=4) == "A|0x10000000000"
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, "zero"), (-1, "minus"), (5, "0x5"), (7, "0x7"), (8, "first"), (-2, "0xfffffffffffffffe")],
)
def test_print_symbolic(value, expected):
    table = '{ 0, "zero" }, { -1, "minus" }, { 7, "" }, { 8, "first" }, { 8, "second" }'
    assert line(f'"%s", __print_symbolic(REC->v, {table})', ("int", "v", value)) == expected


def test_print_symbolic_with_an_empty_table_and_values_of_the_record():
    assert line('"%s", __print_symbolic(REC->v, { })', ("int", "v", 3)) == "0x3"
    assert (
        line('"%s", __print_symbolic(REC->v, { REC->w, "same" })', ("int", "v", 3), ("int", "w", 3)) == "same"
    )


def test_hex():
    data = bytes(range(18))
    fields = [("__data_loc u8[]", "b", data)]
    where = "__get_dynamic_array(b), __get_dynamic_array_len(b)"
    assert line(f'"%s", __print_hex_str({where})', *fields) == data.hex()
    # The second group of sixteen follows without a space, as the kernel writes it.
    assert line(f'"%s", __print_hex({where})', *fields) == data[:16].hex(" ") + data[16:].hex(" ")
    assert line('"%s", __print_hex(REC->a, 0)', ("u8[2]", "a", b"ab")) == ""


@pytest.mark.parametrize(("big", "expected"), [(False, "{0x201,0x403}"), (True, "{0x102,0x304}")])
def test_arrays(big, expected):
    fields = [("__data_loc u16[]", "b", b"\1\2\3\4")]
    assert line('"%s", __print_dynamic_array(b, sizeof(u16))', *fields, big=big) == expected
    text = '"%s", __print_array(__get_dynamic_array(b), __get_dynamic_array_len(b) / 2, 2)'
    assert line(text, *fields, big=big) == expected
    assert line('"%s", __print_array(REC->a, 0, 8)', ("u64[0]", "a", b"")) == "{}"
    assert not rendered('"%s", __print_array(REC->a, 2, 3)', ("u8[6]", "a", b"abcdef")).is_exact


@pytest.mark.parametrize("kind", ["data", "rel"])
def test_dynamic_fields(kind):
    get = "__get_" if kind == "data" else "__get_rel_"
    fields = [
        (f"__{kind}_loc char[]", "s", b"text\0"),
        (f"__{kind}_loc unsigned long[]", "m", b"\5\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0"),
        (f"__{kind}_loc u8[]", "a", b"\2\0\0\x50\x0a\1\2\3" + bytes(8)),
    ]
    assert line(f'"%s", {get}str(s)', *fields) == "text"
    assert line(f'"%s", {get}bitmask(m)', *fields) == "00000000,00000001,00000000,00000005"
    assert line(f'"%s", {get}cpumask(m)', *fields) == "00000000,00000001,00000000,00000005"
    assert line(f'"%pISpc", {get}sockaddr(a)', *fields) == "10.1.2.3:80"
    assert line(f'"%d", {get}dynamic_array_len(s)', *fields) == "5"
    assert line(f'"%d", ((u8 *){get}dynamic_array(s))[1]', *fields) == str(ord("e"))


def test_bitmask_of_big_endian_words():
    fields = [("__data_loc unsigned long[]", "m", b"\0\0\0\0\0\0\0\5")]
    assert line('"%s", __get_bitmask(m)', *fields, big=True) == "00000000,00000005"
    assert line('"%s", __get_bitmask(m)', *fields, big=True, long_size=4) == "00000005,00000000"


def test_seconds():
    text = '"%llu.%09u", __print_ns_to_secs(REC->t), __print_ns_without_secs(REC->t)'
    assert line(text, ("u64", "t", 5_000_000_042)) == "5.000000042"


def test_hex_dump():
    text = '"%s", __print_hex_dump("raw: ", DUMP_PREFIX_OFFSET, 16, 1, REC->a, 18, 1)'
    first = bytes(range(0x41, 0x51))
    expected = (
        "\nraw: 00000000: "
        + first.hex(" ")
        + "  ABCDEFGHIJKLMNOP\nraw: 00000010: 00 ff".ljust(len(first) * 0 + 34)
    )
    got = line(text, ("u8[18]", "a", first + b"\0\xff"))
    assert got.startswith(expected)
    assert got.endswith("  ..\n")


@pytest.mark.parametrize(
    ("name", "flags", "expected"),
    [
        ("irq", 0x10, 1),
        ("irq", 0x08, 1),
        ("hardirq", 0x10, 0),
        ("softirq", 0x10, 1),
        ("hardirq", 0x08, 1),
        ("irq", 1, 0),
    ],
)
def test_context_of_the_event(name, flags, expected):
    assert line(f'"%d", __event_in_{name}()', flags=flags) == str(expected)


def test_scratch_buffers_are_not_known():
    assert not rendered('"%s", decode(__get_buf(20), REC->a)', ("int", "a", 1)).is_exact
