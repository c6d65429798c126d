import ipaddress
import random
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from printk.making import line, rendered
from tracepoint.printk import addresses
from tracepoint.printk.facts import RenderFacts, read_printk_formats
from tracepoint.printk.kallsyms import Kallsyms, Symbol

IP6 = bytes.fromhex("20010db8000000000000000000000001")
MAPPED = bytes(10) + b"\xff\xff\x01\x02\x03\x04"
UUID = bytes(range(16))
SA4 = struct.pack("<H", 2) + b"\x1f\x90\x0a\0\0\1" + bytes(8)
SA6 = struct.pack("<H", 10) + b"\x00\x50" + b"\0\0\0\5" + IP6 + struct.pack("<I", 3)


@pytest.mark.parametrize(
    ("conversion", "data", "expected"),
    [
        ("%pI4", b"\x0a\0\0\1", "10.0.0.1"),
        ("%pi4", b"\x0a\0\0\1", "010.000.000.001"),
        ("%pI4h", b"\1\0\0\x0a", "10.0.0.1"),
        ("%pI4l", b"\1\0\0\x0a", "10.0.0.1"),
        ("%pI4b", b"\x0a\0\0\1", "10.0.0.1"),
        ("%20pI4|", b"\x0a\0\0\1", " " * 12 + "10.0.0.1|"),
        ("%-10pI4|", b"\x0a\0\0\1", "10.0.0.1  |"),
        ("%pI6", IP6, "2001:0db8:0000:0000:0000:0000:0000:0001"),
        ("%pi6", IP6, IP6.hex()),
        ("%pI6c", IP6, "2001:db8::1"),
        ("%pI6c", bytes(16), "::"),
        ("%pI6c", MAPPED, "::ffff:1.2.3.4"),
        ("%pI6c", b"\0\1" + bytes(2) + b"\0\1" * 6, "1:0:1:1:1:1:1:1"),
        ("%pI6c", bytes(8) + b"\0\0\x5e\xfe\1\2\3\4", "::5efe:1.2.3.4"),
        ("%pI6c", b"\0\1" + bytes(14), "1::"),
        ("%pIS", SA4, "10.0.0.1"),
        ("%pISp", SA4, "10.0.0.1:8080"),
        ("%piS", SA4, "010.000.000.001"),
        ("%pISpc", SA6, "[2001:db8::1]:80"),
        ("%pISc", SA6, "2001:db8::1"),
        ("%pISpfsc", SA6, "[2001:db8::1]:80/5%3"),
        ("%pISp", b"\1\0" + bytes(26), "(einval)"),
        ("%pM", UUID, "00:01:02:03:04:05"),
        ("%pMF", UUID, "00-01-02-03-04-05"),
        ("%pMR", UUID, "05:04:03:02:01:00"),
        ("%pm", UUID, "000102030405"),
        ("%pmR", UUID, "050403020100"),
        ("%pUb", UUID, "00010203-0405-0607-0809-0a0b0c0d0e0f"),
        ("%pU", UUID, "00010203-0405-0607-0809-0a0b0c0d0e0f"),
        ("%pUB", UUID, "00010203-0405-0607-0809-0A0B0C0D0E0F"),
        ("%pUl", UUID, "03020100-0504-0706-0809-0a0b0c0d0e0f"),
        ("%pUL", UUID, "03020100-0504-0706-0809-0A0B0C0D0E0F"),
        ("%5ph", UUID, "00 01 02 03 04"),
        ("%3phC", UUID, "00:01:02"),
        ("%3phD", UUID, "00-01-02"),
        ("%3phN", UUID, "000102"),
        ("%ph", UUID, "00"),
        ("%20pb", struct.pack("<Q", 0xABCDE), "abcde"),
        ("%40pb", struct.pack("<Q", 0x12_00000003), "12,00000003"),
        ("%40pbl", struct.pack("<Q", 0x12_0000000B), "0-1,3,33,36"),
        ("%p4cc", b"NV12", "NV12 little-endian (0x3231564e)"),
        ("%pad", struct.pack("<Q", 0x1234), "0x0000000000001234"),
        ("%pap", struct.pack("<Q", 0x1234), "0x0000000000001234"),
        ("%4pE", b"a\n\0\x80", "a\\n\\0\\200"),
        ("%ptT", struct.pack("<q", 1_700_000_000), "2023-11-14T22:13:20"),
        ("%ptTd", struct.pack("<q", -1), "1969-12-31"),
        ("%ptTts", struct.pack("<q", 951_782_400), "00:00:00"),
        ("%ptRs", struct.pack("<9i", 1, 2, 3, 4, 5, 120, 0, 0, 0), "2020-06-04 03:02:01"),
        ("%ptRr", struct.pack("<9i", 1, 2, 3, 4, 5, 120, 0, 0, 0), "0120-05-04T03:02:01"),
    ],
)  # fmt: skip
def test_memory_of_the_record(conversion, data, expected):
    assert line(f'"{conversion}", REC->a', (f"u8[{len(data)}]", "a", data)) == expected


def test_widths_from_arguments():
    fields = [("u8[4]", "a", b"\1\2\3\4"), ("int", "n", 2)]
    assert line('"%*ph %*phN", REC->n, REC->a, 4, REC->a', *fields) == "01 02 01020304"
    assert not rendered('"%*ph", 40, REC->a', *fields).is_exact


@pytest.mark.parametrize(
    ("conversion", "value", "expected"),
    [
        ("%p", 0xFFFF888000001234, "ffff888000001234"),
        ("%p", 0, "0" * 16),
        ("%20p|", 0x12, " " * 18 + "12|"),
        ("%px", 0x12, "0" * 14 + "12"),
        ("%pK", 0x12, "0" * 14 + "12"),
        ("%pe", -5, "-EIO"),
        ("%pe", -517, "-EPROBE_DEFER"),
        ("%pe", -4000, "-4000"),
        ("%pe", 0x12, "0" * 14 + "12"),
        ("%pS", 0x1234, "0x1234"),
    ],
)
def test_addresses(conversion, value, expected):
    facts = RenderFacts(kallsyms=Kallsyms(""))
    assert line(f'"{conversion}", REC->p', ("void *", "p", value), facts=facts) == expected


def test_hashed_addresses_are_noted():
    facts = RenderFacts(hash_pointers=True)
    result = rendered('"%p", REC->p', ("void *", "p", 0x1234), facts=facts)
    assert (result.text, result.is_exact, len(result.notes)) == ("0" * 12 + "1234", True, 1)
    # NULL and error pointers are never hashed.
    assert line('"%p", REC->p', ("void *", "p", 0), facts=facts) == "0" * 16
    assert line('"%p", REC->p', ("void *", "p", -22), facts=facts) == "f" * 14 + "ea"


def test_restricted_pointers():
    text, field = '"%pK", REC->p', ("void *", "p", 0x1234)
    assert line(text, field, facts=RenderFacts(kptr_restrict=2)) == "0" * 16
    assert line(text, field, facts=RenderFacts(kptr_restrict=1, hash_pointers=True)) == "0" * 12 + "1234"


SYMBOLS = """\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T _stext
ffffffff81000100 T schedule
ffffffff81000100 T schedule_alias
ffffffff81000180 t next
ffffffff81000200 T _end
ffffffffc0002010 t probe\t[mod]
ffffffffc0002050 t second\t[mod]
ffffffffc0002060 t .LC5\t[mod]
ffffffffc0003010 r _note\t[mod]
ffffffffc0003100 r table\t[mod]
"""
MODULES = "mod 16384 0 - Live 0xffffffffc0002000\n"


@pytest.mark.parametrize(
    ("conversion", "address", "expected"),
    [
        ("%pS", 0xFFFFFFFF81000104, "schedule+0x4/0x80"),
        ("%ps", 0xFFFFFFFF81000104, "schedule"),
        ("%pSR", 0xFFFFFFFF81000104, "schedule+0x4/0x80"),
        ("%pB", 0xFFFFFFFF81000180, "schedule+0x80/0x80"),
        ("%pS", 0xFFFFFFFF81000180, "next+0x0/0x80"),
        ("%pS", 0xFFFFFFFFC0002011, "probe+0x1/0x40 [mod]"),
        ("%ps", 0xFFFFFFFFC0002011, "probe [mod]"),
        # The last function reaches to the end of the text, data wraps around it.
        ("%pS", 0xFFFFFFFFC0002070, "second+0x20/0xfb0 [mod]"),
        ("%pS", 0xFFFFFFFFC0003104, "table+0x4/0xffffffffffffff00 [mod]"),
        ("%pS", 0xFFFFFFFFC0006000, "0xffffffffc0006000"),
        ("%ps", 0xFFFFFFFF80000000, "0xffffffff80000000"),
        ("%pS", 0x10, "0x10"),
        ("%30ps|", 0xFFFFFFFF81000104, "schedule|".rjust(31)),
    ],
)
def test_symbols(conversion, address, expected):
    facts = RenderFacts(kallsyms=Kallsyms(SYMBOLS, MODULES))
    assert line(f'"{conversion}", (void *)REC->ip', ("unsigned long", "ip", address), facts=facts) == expected


def test_symbols_without_a_table_are_noted():
    result = rendered('"%pS", (void *)REC->ip', ("unsigned long", "ip", 0x1234))
    assert (result.text, len(result.notes)) == ("0x1234", 1)


def test_a_size_that_cannot_be_told_is_none():
    table = Kallsyms(SYMBOLS)
    assert table.lookup(0xFFFFFFFFC0003104) == Symbol("table", 4, None, "mod")
    assert Kallsyms("garbage\nzz T x\n").lookup(5) is None


PER_CPU = """\
0000000000000000 A fixed_percpu_data
0000000000030000 A pcpu_hot
ffffffff81000000 T _stext
ffffffff81000100 T schedule
ffffffff81000200 T _end
0000000000035f80 {kind} mod_counter\t[early]
ffffffffc0002010 t early_probe\t[early]
ffffffffc0002050 t early_second\t[early]
ffffffffc0003010 r early_table\t[early]
ffffffffc0008010 t late_probe\t[late]
ffffffffc0009010 d late_table\t[late]
"""


@pytest.mark.parametrize("kind", ["a", "d"])
@pytest.mark.parametrize("modules", ["", "early 8192 0 - Live 0xffffffffc0002000\n"])
def test_per_cpu_symbols_do_not_place_a_module(kind, modules):
    """The module with a per-CPU variable begins where its code is, not at the variable's offset."""
    table = Kallsyms(PER_CPU.format(kind=kind), modules)
    assert table.lookup(0xFFFFFFFFC0002020) == Symbol("early_probe", 0x10, 0x40, "early")
    assert table.lookup(0xFFFFFFFFC0008020) == Symbol("late_probe", 0x10, 0xFF0, "late")
    for address in (0x10, 0x30000, 0x35F80, 0x36000, 0x7FFFFFFFF000, 0xFFFFFFFF80000000):
        assert table.lookup(address) is None, hex(address)
    behind = table.lookup(0xFFFFFFFFC0006000)
    assert behind is None if modules else not behind.is_sure


def test_per_cpu_symbols_without_a_first_symbol_of_the_kernel():
    text = PER_CPU.format(kind="a").replace("_stext", "_text")
    assert Kallsyms(text).lookup(0x30010) is None


def test_a_kernel_that_runs_in_the_lower_half_keeps_its_symbols():
    table = Kallsyms(
        "0000000000100000 T _stext\n0000000000100100 t idle\n0000000000200000 T _end\n"
        "000003ff80001000 t probe\t[mod]\n000003ff80001040 t second\t[mod]\n"
    )
    assert table.lookup(0x100108) == Symbol("idle", 8, 0xFFF00)
    assert table.lookup(0x3FF80001004) == Symbol("probe", 4, 0x40, "mod")


# Since 6.4 the text of all modules comes first, their data after it; programs of BPF lie between them.
PARTS_APART = """\
ffffffff81000000 T _stext
ffffffff81000200 T _end
ffffffffc0002010 t one_probe\t[one]
ffffffffc0002050 t one_second\t[one]
ffffffffc0004000 t bpf_prog_6deef7357e7b4530\t[bpf]
ffffffffc0004100 t ftrace_trampoline\t[__builtin__ftrace]
ffffffffc0006010 t two_probe\t[two]
ffffffffc0006050 t two_second\t[two]
ffffffffc0028010 d one_table\t[one]
ffffffffc002a010 d two_table\t[two]
ffffffffc0044000 t bpf_prog_0123456789abcdef\t[bpf]
"""


@pytest.mark.parametrize(
    "modules", ["", "one 16384 0 - Live 0xffffffffc0002000\ntwo 16384 0 - Live 0xffffffffc0006000\n"]
)
def test_parts_of_modules_that_lie_apart(modules):
    table = Kallsyms(PARTS_APART, modules)
    assert table.lookup(0xFFFFFFFFC0002011) == Symbol("one_probe", 1, 0x40, "one")
    assert table.lookup(0xFFFFFFFFC0006011) == Symbol("two_probe", 1, 0x40, "two")
    assert table.lookup(0xFFFFFFFFC0002060) == Symbol("one_second", 0x10, None, "one")
    assert table.lookup(0xFFFFFFFFC0004010) == Symbol("bpf_prog_6deef7357e7b4530", 0x10, None)
    assert table.lookup(0xFFFFFFFFC0014000) == Symbol("two_second", 0xDFB0, None, "two", is_sure=False)
    assert table.lookup(0xFFFFFFFFC003F000) is None


def test_behind_a_module_whose_size_is_not_known_nothing_is_claimed():
    """Initialisation functions lie there while they run, and afterwards anything may."""
    for conversion in ("%pS", "%ps"):
        facts = RenderFacts(kallsyms=Kallsyms(SYMBOLS))
        result = rendered(
            f'"{conversion}", (void *)REC->ip', ("unsigned long", "ip", 0xFFFFFFFFC0005000), facts=facts
        )
        assert (result.is_exact, result.text) == (False, "ip=18446744072635830272")
        assert "after module mod" in result.notes[0]


def test_kernel_memory_is_not_known():
    for conversion in ("%pd", "%pD", "%pV", "%pg", "%pOF", "%pGp", "%pC", "%pfw"):
        result = rendered(f'"{conversion}", REC->p', ("void *", "p", 0x1234))
        assert not result.is_exact
        assert result.text == "p=0x1234"


def test_printk_formats():
    assert read_printk_formats('0x10 : "a\\"b"\nnonsense\n0xzz : "x"\n') == {16: 'a"b'}


@given(st.binary(min_size=16, max_size=16))
def test_short_ip6_reads_back(data):
    text = addresses.ip6_compressed(data)
    assert ipaddress.IPv6Address(text).packed == data


@given(st.integers(0, (1 << 128) - 1), st.integers(1, 128))
def test_bitmap_lists_hold_every_bit(number, n_bits):
    number &= (1 << n_bits) - 1
    bits = 0
    for part in filter(None, addresses.bitmap_list(number).split(",")):
        low, _, high = part.partition("-")
        for bit in range(int(low), int(high or low) + 1):
            bits |= 1 << bit
    assert bits == number
    assert int(addresses.bitmap_text(number, n_bits).replace(",", ""), 16) == number


@given(st.text(max_size=40), st.binary(max_size=64))
def test_no_letters_break_it(letters, data):
    result = rendered(f'"%p{letters}", REC->a, REC->a, REC->a', ("u8[1]", "a", data))
    assert isinstance(result.text, str)


@pytest.mark.parametrize(
    "odd",
    ["", "junk\n", "00 T\n11 22 T\n", "zz T name\n", "ffff T short\n", "ffffffff81000060 tt two\n", "\n"],
)
def test_odd_lines_of_kallsyms_are_passed_over(odd):
    start = "ffffffff81000000 T _stext\nffffffff81000040 t start\n"
    end = "ffffffff81000080 t end\nffffffffc0000000 t of\t[mod]\nffffffffc0000010 t after\t[mod]\n"
    table = Kallsyms(f"{start}{odd}{end}")
    assert table.lookup(0xFFFFFFFF81000044) in (
        Symbol("start", 4, 0x40),
        Symbol("start", 4, 0x20),
    )
    assert table.lookup(0xFFFFFFFFC0000004) == Symbol("of", 4, 0x10, "mod")
    assert table.lowest == 0xFFFFFFFF81000000


@pytest.mark.parametrize("seed", range(12))
def test_symbols_are_the_same_read_at_once_and_line_by_line(seed):
    """In order or not, with absolute numbers and addresses of each half; an odd line makes it line by line."""
    rng = random.Random(seed)
    lows = [0x4000 * n for n in range(rng.choice([0, 6]))]
    addresses = [*lows, *(0xFFFFFFFF81000000 + 64 * rng.randrange(90) for _ in range(60))]
    if seed % 3:
        addresses.sort()
    kinds = "tTdD" if seed % 4 else "tTaA"
    lines = [f"{address:016x} {rng.choice(kinds)} s{n}\n" for n, address in enumerate(addresses)]
    lines.insert(len(lows), "ffffffff81000000 T _stext\n")
    module = "ffffffffc0001000 t in_module\t[loop]\n"
    at_once = Kallsyms("".join([*lines, module]))
    by_line = Kallsyms("".join([*lines, "odd\n", module]))
    wanted = [*addresses, *(address + 5 for address in addresses), 0xFFFFFFFFC0001004, 1]
    assert [at_once.lookup(a) for a in wanted] == [by_line.lookup(a) for a in wanted]
    assert any(at_once.lookup(a) for a in addresses)
