"""Lines of many records: C and twin, programs as instructions, and what is damaged."""

import random
import struct
import threading
from array import array
from dataclasses import replace

import pytest

from printk.making import both, make, render_records
from tracepoint.layout.format import EventFormat
from tracepoint.printk import ops, printer
from tracepoint.printk.facts import RenderFacts
from tracepoint.printk.kallsyms import Kallsyms
from tracepoint.printk.printer import Printer, fill_slots
from tracepoint.printk.program import PrintProgram, compile_print
from tracepoint.printk.texts import AddressTexts
from tracepoint.record.decode import DECODE
from tracepoint.source.types import INT

needs_c = pytest.mark.skipif(
    DECODE is None, reason="tracepoint._decode is not built: install gcc and python3-dev"
)

SWITCH = (
    '"%s:%d -> %-8.4s| %s %#x %s", REC->comm, REC->n, __get_str(s), '
    '__print_flags(REC->n & 7, "|", { 1, "A" }, { 2, "B" }), REC->n, '
    '__print_symbolic(REC->n, { 1, "one" }, { 2, "" })'
)
FIELDS = [("char[8]", "comm", b"sh\0junk!"), ("int", "n", 1), ("__data_loc char[]", "s", b"abcdef\0")]


EVERY_FIELD = [
    ("int", "a", 7), ("s8", "b", -2), ("void *", "p", 0x10), ("char[3]", "s", b"s\xe9\0"),
    ("u32[2]", "words", b"\1\1\1\1\2\2\2\2"), ("struct odd", "odd", b"\n\v\f"), ("char[4]", "comm", b"sh\0j"),
    ("__data_loc char[]", "text", b"abc\0def"), ("__rel_loc char[]", "rel", b"xyz"), ("u16[3]", "shorts", bytes(range(6))),
    ("__data_loc u8[]", "bytes", b"\1\2\3"), ("u64[2]", "longs", bytes(range(16))),
]  # fmt: skip


def places(records):
    offsets, lengths, at = array("Q"), array("I"), 0
    for record in records:
        offsets.append(at)
        lengths.append(len(record))
        at += len(record)
    return b"".join(records), memoryview(offsets), memoryview(lengths)


def test_a_program_is_shown_one_instruction_a_line():
    form, _ = make('"a=%d %s", REC->a, REC->a ? "yes" : "no"', ("int", "a", 1))
    assert str(compile_print(form)).splitlines() == [
        "0  text          'a='",
        "1  load          s32 at 8",
        "2  number        %d",
        "3  text          ' '",
        "4  load          s32 at 8",
        "5  jump_unless   to 8",
        "6  text          'yes'",
        "7  jump          to 9",
        "8  text          'no'",
        "9  end",
    ]


def test_facts_are_inputs_of_a_packed_program():
    form, _ = make('"%lu %s", jiffies, __print_symbolic(REC->a, { X, "x" })', ("int", "a", 1))
    program = compile_print(form)
    known = RenderFacts(variables={"jiffies": 7}, constants={"X": 3}.get)
    assert program.packed == compile_print(form).packed
    values = [
        struct.iter_unpack("=QQ", fill_slots(program.ops, facts).packed) for facts in (RenderFacts(), known)
    ]
    assert [{number for number, state in found if state == 1} for found in values] == [set(), {7, 3}]


def test_what_is_left_to_the_twin_is_named():
    form, _ = make('"%pISpc %d", REC->a, foo(REC->a)', ("u8[28]", "a", bytes(28)))
    assert compile_print(form).ops.leaves == ("sockaddr()",)


@needs_c
@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize("long_size", [4, 8])
def test_fields_are_shown_by_c_too_where_a_fact_is_not_known(monkeypatch, big, long_size):
    text = '"%d %p %s", REC->a + (REC->a ? foo(REC->a) : 1), jiffies, __print_symbolic(REC->a, { X, "x" })'
    form, record = make(text, *EVERY_FIELD, big=big, long_size=long_size)
    rng = random.Random(9)
    records = [record, record[:8] + bytes(4) + record[12:]]
    for _ in range(400):
        damaged = bytearray(record)
        for _ in range(rng.randrange(1, 5)):
            damaged[rng.randrange(8, len(damaged))] = rng.choice((0, 1, 4, 255, rng.randrange(256)))
        records.append(bytes(damaged[: rng.choice((len(damaged), rng.randrange(len(damaged))))]))
    program = compile_print(form)
    facts = RenderFacts(hash_pointers=True)
    for known in (facts, replace(facts, constants={"X": 3}.get), replace(facts, variables={"jiffies": 7})):
        shown = Printer({1: program}, known, any_type=True)
        assert shown.render_list(records) == shown.render_slowly(*places(records))
    shown = Printer({1: program}, facts, any_type=True)
    with monkeypatch.context() as patch:
        patch.setattr(printer, "render_held", None)
        lines = shown.render_list(records[:2])
    assert " odd=0a0b0c comm=sh text=abc rel=xyz shorts={" in lines.texts[0]
    assert lines.texts[0].startswith("a=7 b=-2 p=0x10 s=s\udce9 words={0x1010101,0x2020202} odd=")
    start = "fields are shown instead of the print format: not known: "
    reasons = [
        "the function foo()",
        "jiffies, a variable of the kernel that was read when the line was printed",
    ]
    assert [lines.noted[n].notes for n in (0, 1)] == [(start + reason,) for reason in reasons]


@pytest.mark.parametrize("big", [False, True])
def test_records_of_many_events(big):
    forms = [make(f'"{name}=%d", REC->a', ("int", "a", number), big=big) for number, name in enumerate("xyz")]
    programs = {number: compile_print(form) for number, (form, _) in enumerate(forms)}
    order = ">H" if big else "<H"
    records = [struct.pack(order, number) + record[2:] for number, (_, record) in enumerate(forms)]
    records += [struct.pack(order, 700) + bytes(10), b"\1", b"", records[1][:9]]
    shown = Printer(programs)
    lines = shown.render_list(records)
    assert lines.texts[:3] == ["x=0", "y=1", "z=2"]
    assert lines.texts[3] == "Unknown type 700"
    assert lines.texts[6] == "a=<cut>"
    assert sorted(lines.noted) == [3, 4, 5, 6]
    assert shown.render_slowly(*places(records)) == lines


def test_places_outside_of_the_buffer_are_not_read():
    form, record = make('"%d", REC->a', ("int", "a", 5))
    shown = Printer({1: compile_print(form)})
    offsets, lengths = array("Q", [0, 4, 1 << 40, (1 << 64) - 4]), array("I", [12, 12, 12, 12])
    found = shown.render(record, memoryview(offsets), memoryview(lengths))
    assert found.texts[0] == "5"
    assert sorted(found.noted) == [1, 2, 3]


def test_notes_are_those_of_the_twin_in_their_order():
    facts = RenderFacts(hash_pointers=True)
    for text in ('"%p %pS", REC->a, REC->a', '"%pS %p", REC->a, REC->a', '"%p", REC->a', '"%ps", REC->a'):
        form, record = make(text, ("void *", "a", 0x1234))
        assert len(both(compile_print(form), record, facts).notes) == text.count("%p")
    known = RenderFacts(
        hash_pointers=True, kallsyms=Kallsyms("0000000000001000 T _stext\n0000000000002000 T e\n")
    )
    form, record = make('"%ps", REC->a', ("void *", "a", 0x1234))
    assert both(compile_print(form), record, known).text == "_stext"


def test_long_lines_and_wide_fields():
    for text in ('"%16000d%16000d%16000d%16000d%16000d", REC->a, 1, 2, 3, 4', '"%-16000d|", REC->a', '"%.9d", REC->a',
                 '"%*d", REC->a, 5', '"%.*s", REC->a, "abc"', '"%0*d", -3, 7', '"%-*s|", -1, "x"'):  # fmt: skip
        form, record = make(text, ("int", "a", 70))
        both(compile_print(form), record)


def test_numbers_at_their_limits():
    texts = ["%d", "%u", "%lld", "%llu", "%#llx", "%hhd", "%ho", "%+d", "% d", "%X", "%08d", "%-8d|", "%#o"]
    for value in (0, 1, -1, 1 << 31, (1 << 31) - 1, -(1 << 63), (1 << 63) - 1, 0x8081828384858687):
        for kind in ("s8", "u16", "int", "u32", "u64", "s64"):
            expressions = ["REC->a", "-REC->a", "~REC->a", "REC->a << 3", "REC->a >> 65", "REC->a / -1", "REC->a % 7",
                           "(s64)REC->a * REC->a", "REC->a < -1", "abs(REC->a)", "__builtin_bswap32(REC->a)",
                           "(u8)REC->a", "hweight64(REC->a)", "REC->a / (REC->a - REC->a)", "max(REC->a, 3)"]  # fmt: skip
            for text in texts[:: 1 if kind == "s64" else 4]:
                arguments = ", ".join(expressions)
                form, record = make(
                    f'"{" ".join([text] * len(expressions))}", {arguments}', (kind, "a", value)
                )
                both(compile_print(form), record)


def test_threads_render_with_one_printer():
    form, record = make(SWITCH, *FIELDS)
    shown = Printer({1: compile_print(form)})
    expected = shown.render_list([record] * 2000)
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(shown.render_list([record] * 2000))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4


SYMBOLS = Kallsyms(
    "ffffffff81000000 T _stext\nffffffff81000100 T one\nffffffff81000200 T two\nffffffff81000300 T _e\n"
)


@needs_c
def test_symbols_that_were_found_once_are_known_to_c(monkeypatch):
    form, _ = make('"%pS %ps %s", REC->a, REC->a, REC->b', ("void *", "a", 0), ("char *", "b", 0))
    facts = RenderFacts(kallsyms=SYMBOLS, printk_formats={0x10: "\u20ac é", 0x20: ""})
    rng = random.Random(1)
    records = [
        bytes(8) + struct.pack("<QQ", 0xFFFFFFFF81000100 + 4 * rng.randrange(80), rng.choice((0x10, 0x20, 0)))
        for _ in range(5000)
    ]
    shown = Printer({1: compile_print(form)}, facts, any_type=True)
    expected = shown.render_slowly(*places(records))
    calls = []
    real = printer.render_held
    monkeypatch.setattr(printer, "render_held", lambda *given: calls.append(1) or real(*given))
    fresh = Printer({1: compile_print(form)}, facts, any_type=True)
    assert fresh.render_list(records) == expected
    # The first 512 are rendered before anything is known.
    assert len(calls) <= 512
    assert fresh.render_list(records) == expected
    assert len(calls) <= 512


@needs_c
def test_damaged_tables_of_texts_are_refused_or_searched():
    form, record = make('"%s %ps", REC->a, REC->a', ("void *", "a", 0x10))
    loaded = DECODE.load_prints([(1, compile_print(form).packed, b"")], 2, False)
    texts = AddressTexts()
    for address in range(0, 0x200, 8):
        texts.add(1, address, "x" * address)
        texts.add(4, address, "y")
    texts.pack()
    rng = random.Random(6)
    n_refused = 0
    for _ in range(1000):
        damaged = bytearray(texts.packed)
        for _ in range(rng.choice((1, 3, 200))):
            damaged[rng.randrange(len(damaged))] = rng.choice((0, 1, 4, 255))
        if rng.random() < 0.1:
            damaged[rng.randrange(8)] = rng.randrange(256)
        del damaged[rng.choice((len(damaged), rng.randrange(len(damaged)))) :]
        try:
            DECODE.render_prints(loaded, bytes(damaged), *places([record]), True)
        except ValueError:
            n_refused += 1
    assert n_refused > 100
    assert DECODE.render_prints(loaded, texts.packed, *places([record]), True)[0] == ["x" * 16 + " y"]


@needs_c
def test_a_blob_of_lines_has_the_same_texts():
    form, record = make(SWITCH, *FIELDS)
    loaded = DECODE.load_prints([(1, compile_print(form).packed, b"")], 0, False)
    blob, ends, states, whys = DECODE.render_prints(loaded, b"", *places([record, record[:3], record]), False)
    ends = struct.unpack("=3Q", ends)
    text = both(compile_print(form), record).text.encode()
    assert (blob, ends, states) == (text * 2, (len(text), len(text), 2 * len(text)), b"\0\x80\0")
    assert whys == bytes(6)


# Every kind of instruction, so that damage meets each.
EVERYTHING = (
    SWITCH,
    '"%*phC %pI4 %pI6c %pM %pUl %40pbl %s", REC->n, REC->m, REC->m, REC->m, REC->m, REC->m, __print_array(REC->m, 4, 2)',
    '"%p %pe %pK %ps %s %.*s|", REC->p, REC->p, REC->p, REC->p, REC->p, REC->n, REC->m',
    '"%d %d %s %c %s", (int[]){1,2}[REC->n], *(u16 *)(REC->m + REC->n), __print_hex(REC->m, REC->n), REC->n, REC->n > 3 && REC->n || !REC->p ? "y" : REC->m',
    '"%s %u %lu", __get_bitmask(s), jiffies_to_msecs(REC->n), jiffies + ilog2(REC->n)',
)
MANY = [("u8[32]", "m", bytes(range(65, 97))), ("int", "n", 3), ("char *", "p", 0x10),
        ("__data_loc char[]", "s", b"text\0"), ("char[8]", "comm", b"sh\0junk!")]  # fmt: skip
FACTS = RenderFacts(hz=300, variables={"jiffies": 9})


def test_damaged_records_are_rendered_alike():
    rng = random.Random(3)
    for text in EVERYTHING:
        form, record = make(text, *MANY)
        program = compile_print(form)
        records = [record]
        for _ in range(300):
            damaged = bytearray(record)
            for _ in range(rng.randrange(1, 6)):
                damaged[rng.randrange(len(damaged))] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
            records.append(bytes(damaged[: rng.choice((len(damaged), rng.randrange(len(damaged))))]))
        shown = Printer({1: program}, FACTS, any_type=True)
        assert shown.render_list(records) == shown.render_slowly(*places(records))


@needs_c
def test_damaged_programs_are_refused_or_run():
    """A program is checked before it runs: then nothing that is in it may leave its stack, tables or data."""
    rng = random.Random(4)
    n_refused = n_run = 0
    for text in EVERYTHING:
        form, record = make(text, *MANY)
        flat = compile_print(form).ops
        packed, slots = flat.pack(), fill_slots(flat, FACTS).packed
        for _ in range(1500):
            damaged = bytearray(packed)
            for _ in range(rng.choice((1, 1, 2, 8))):
                damaged[rng.randrange(len(damaged))] = rng.choice(
                    (0, 1, 2, 63, 64, 65, 66, 127, 128, 255, rng.randrange(256))
                )
            if rng.random() < 0.1:
                del damaged[rng.randrange(len(damaged)) :]
            try:
                loaded = DECODE.load_prints([(1, bytes(damaged), slots)], rng.randrange(4), False)
            except ValueError:
                n_refused += 1
                continue
            DECODE.render_prints(loaded, b"", *places([record, record[: rng.randrange(len(record))]]), True)
            n_run += 1
    assert n_refused > 1000
    assert n_run > 1000


@needs_c
@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (([(1, b"", b"")], 0, False), ValueError),
        (([(1, bytes(32), b"")], 0, False), ValueError),
        (([3], 0, False), TypeError),
        ((3, 0, False), TypeError),
        (([(1, 2, 3)], 0, False), TypeError),
    ],
)
def test_what_is_no_program_is_refused(arguments, error):
    with pytest.raises(error):
        DECODE.load_prints(*arguments)


@needs_c
def test_programs_are_refused_with_a_reason():
    packed = compile_print(make('"x%d", REC->a', ("int", "a", 1))[0]).packed
    for items, words in (
        ([(1 << 16, packed, b"")], "more than 16 bits"),
        ([(1, packed, b"\0" * 16)], "other facts"),
        ([(1, packed, b""), (0xFFFFFFFF, packed, b"")], "beside others"),
    ):
        with pytest.raises(ValueError, match=words):
            DECODE.load_prints(items, 0, False)
    loaded = DECODE.load_prints([(1, packed, b"")], 0, False)
    with pytest.raises(ValueError, match="offsets"):
        DECODE.render_prints(loaded, b"", b"", b"\0" * 8, b"", True)
    with pytest.raises(ValueError, match="PyCapsule"):
        DECODE.render_prints(object(), b"", b"", b"", b"", True)


def test_a_program_too_deep_for_c_is_left_to_the_twin():
    form, record = make('""', ("int", "a", 1))
    for depth in (40, 47, 48, 49, 70, 200):
        number = ops.Load(8, INT)
        for _ in range(depth):
            number = ops.Binary("+", ops.Const(1), number, INT)
        program = PrintProgram(form, ops.Joined((ops.Number(number, "d"),)))
        assert both(program, record).text == str(depth + 1)
        assert bool(program.ops.leaves) == (depth > 47)


def test_without_c_the_twin_renders(monkeypatch):
    form, record = make(SWITCH, *FIELDS)
    expected = render_records(compile_print(form), [record, record[:5]])
    monkeypatch.setattr(printer, "DECODE", None)
    assert render_records(compile_print(form), [record, record[:5]]) == expected


def test_an_event_of_unknown_system_has_no_empty_line():
    form = EventFormat("x", "y", (), '""', n_common=0)
    assert render_records(compile_print(form), [b""])[0].text == ""
