import random
import struct
from array import array

import pytest

from printk.making import COMMON, both, line, make, rendered
from tracepoint.layout.format import EventFormat, FieldFormat
from tracepoint.printk import printer
from tracepoint.printk.facts import RenderFacts
from tracepoint.printk.kallsyms import Kallsyms
from tracepoint.printk.printer import Printer
from tracepoint.printk.program import compile_print
from tracepoint.printk.render import render_record
from tracepoint.record.decode import DECODE

FACTS = RenderFacts(
    kallsyms=Kallsyms("ffffffff81000000 T _stext\nffffffff81000100 T write_mark\nffffffff81000200 T _end\n"),
    comms={7: "sh"},
    printk_formats={0x99: "constant\n", 0x100: "a=%d %c %s %-6s| %llx %*d %pS %pI4 %hd\n"},
)
IP = 0xFFFFFFFF81000110


def syscall(name, *fields, **how):
    return line("", ("int", "__syscall_nr", 1), *fields, system="syscalls", name=name, **how)


def test_system_calls():
    fields = [("u64", "dfd", 0xFFFFFF9C), ("u64", "filename", 0x7F00), ("u64", "nr", 3)]
    assert syscall("sys_enter_openat", *fields) == "sys_openat(dfd: ffffff9c, filename: 7f00, nr: 3)"
    assert syscall("sys_enter_getpid") == "sys_getpid()"
    assert syscall("sys_exit_openat", ("long", "ret", 3)) == "sys_openat -> 0x3"
    assert syscall("sys_exit_openat", ("long", "ret", -2)) == "sys_openat -> 0xfffffffffffffffe"
    assert syscall("sys_exit_openat", ("long", "ret", -2), long_size=4) == "sys_openat -> 0xfffffffe"
    assert syscall("sys_exit_openat", ("long", "ret", 2), big=True) == "sys_openat -> 0x2"


def test_system_calls_have_no_name_in_front():
    form, _ = make("", ("int", "nr", 1), system="syscalls", name="sys_enter_x")
    assert not compile_print(form).is_named
    form, _ = make('"x"', system="demo")
    assert compile_print(form).is_named


def own(name, head, body, big=False):
    """Render one of the tracer's own events: `head` are scalar fields, `body` the open array."""
    form, record = make("", *head, system="ftrace", name=name, big=big)
    tail = FieldFormat(body[0], body[1], len(record), 0, is_signed=False)
    form = EventFormat("ftrace", name, (*form.fields, tail), "", is_big_endian=big)
    return both(compile_print(form), record + body[2], FACTS)


def test_marker():
    assert (
        own("print", [("unsigned long", "ip", IP)], ("buf", "char[]", b"hello\n\0\0")).text
        == "write_mark: hello"
    )
    assert own("print", [("unsigned long", "ip", 0)], ("buf", "char[]", b"a\nb\n\0")).text == "0: a\nb"
    assert own("print", [("unsigned long", "ip", 0x10)], ("buf", "char[]", b"x\0")).text == "0x00000010: x"
    assert not own("print", [("unsigned long", "ip", 0x10)], ("buf", "char[]", b"x")).is_exact


def test_raw_marker():
    assert (
        own("raw_data", [("unsigned int", "id", 42)], ("buf", "char[]", b"RAW\0")).text
        == "# 2a buf: 52 41 57 00"
    )


@pytest.mark.parametrize("big", [False, True])
def test_stacks(big):
    order = ">" if big else "<"
    data = struct.pack(order + "3Q", IP, 0, (1 << 64) - 1)
    text = own(
        "kernel_stack", [("int", "size", 3), ("int", "pad", 0)], ("caller", "unsigned long[]", data), big
    ).text
    assert text == "<stack trace>\n => write_mark\n => 0"
    data = struct.pack(order + "3Q", 0x7F00, 0, 5)
    text = own(
        "user_stack", [("int", "tgid", 3), ("int", "pad", 0)], ("caller", "unsigned long[]", data), big
    ).text
    assert text == "<user stack trace>\n =>  <0000000000007f00>"


def arrays(rng, big, long_size):
    """Records of the events that end with an array: any length, with addresses that have symbols and marks."""
    order, code = ">" if big else "<", "Q" if long_size == 8 else "I"
    ends = (0, 0x10, IP, IP + 8, 0x7FFFFFFF, (1 << 64) - 1, (1 << 32) - 1)
    for name, body in (("kernel_stack", "caller"), ("user_stack", "caller"), ("raw_data", "buf")):
        form, head = make(
            "", ("int", "id", 3), ("int", "pad", 0), system="ftrace", name=name, big=big, long_size=long_size
        )
        tail = FieldFormat(body, "unsigned long[]", len(head), 0, is_signed=False)
        form = EventFormat("ftrace", name, (*form.fields, tail), "", is_big_endian=big, long_size=long_size)
        words = [rng.choice(ends) % (1 << 8 * long_size) for _ in range(20)]
        data = head + b"".join(struct.pack(order + code, word) for word in words)
        yield (
            compile_print(form),
            [data[: rng.choice((len(data), rng.randrange(len(data))))] for _ in range(50)],
        )


@pytest.mark.skipif(DECODE is None, reason="tracepoint._decode is not built")
@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize("long_size", [4, 8])
@pytest.mark.parametrize("facts", [FACTS, RenderFacts()], ids=["symbols", "none"])
def test_arrays_are_shown_by_c_once_their_symbols_are_known(monkeypatch, big, long_size, facts):
    rng = random.Random(5)
    for program, records in arrays(rng, big, long_size):
        shown = Printer({1: program}, facts, any_type=True)
        lengths = array("I", map(len, records))
        offsets = array("Q", (sum(lengths[:n]) for n in range(len(records))))
        expected = shown.render_slowly(b"".join(records), memoryview(offsets), memoryview(lengths))
        assert shown.render_list(records) == expected
        with monkeypatch.context() as patch:
            patch.setattr(printer, "render_held", lambda *_: pytest.fail("left to the twin"))
            assert shown.render_list([record for record in records if len(record) >= 16])
        assert shown.render_list(records) == expected


def test_function_and_string():
    fields = [("unsigned long", "ip", IP), ("unsigned long", "parent_ip", IP)]
    assert line("", *fields, system="ftrace", name="function", facts=FACTS) == "write_mark <-write_mark"
    fields = [("unsigned long", "ip", IP), ("const char *", "str", 0x99)]
    assert line("", *fields, system="ftrace", name="bputs", facts=FACTS) == "write_mark: constant"
    fields = [("unsigned long", "ip", IP), ("const char *", "str", 0x98)]
    assert not rendered("", *fields, system="ftrace", name="bputs", facts=FACTS).is_exact


@pytest.mark.parametrize("big", [False, True])
def test_stored_printk(big):
    order = ">" if big else "<"
    head = [("unsigned long", "ip", IP), ("const char *", "fmt", 0x100)]
    data = struct.pack(order + "ib", -5, 65) + b"str\0pad\0" + bytes(3)
    data += struct.pack(order + "QiiQ", 1 << 40, 4, 7, IP) + b"1.2.3.4\0" + struct.pack(order + "h", -2)
    expected = "write_mark: a=-5 A str pad   | 10000000000    7 write_mark+0x10/0x100 1.2.3.4 -2"
    assert own("bprint", head, ("buf", "u32[]", data), big).text == expected
    for size in range(len(data)):
        assert not own("bprint", head, ("buf", "u32[]", data[:size]), big).is_exact
    head[1] = ("const char *", "fmt", 0x101)
    assert not own("bprint", head, ("buf", "u32[]", data), big).is_exact


def test_switches():
    fields = [("u32", "prev_pid", 1), ("u32", "next_pid", 7), ("u32", "next_cpu", 2), ("u8", "prev_prio", 120),
              ("u8", "prev_state", 1), ("u8", "next_prio", 100), ("u8", "next_state", 0)]  # fmt: skip
    text = line("", *fields, system="ftrace", name="context_switch", facts=FACTS)
    assert text == "       1:120:S ==> [002]       7:100:R sh"
    fields[1] = ("u32", "next_pid", 9)
    result = rendered("", *fields, system="ftrace", name="wakeup", facts=FACTS)
    assert result.text == "       1:120:S   + [002]       9:100:R <...>"
    assert result.notes


def test_own_events_of_another_form_show_their_fields():
    result = rendered('"%d", REC->a', ("int", "a", 5), system="ftrace", name="branch")
    assert (result.text, result.is_exact) == ("a=5", False)
    result = rendered('"%d", REC->a', ("int", "a", 5), system="ftrace", name="print")
    assert (result.text, result.is_exact) == ("a=5", False)


def test_generic_fields():
    fields = [("char[8]", "comm", b"sh\0junk!"), ("u16[2]", "pair", b"\1\0\2\0"), ("struct big", "s", b"abc"),
              ("__data_loc char[]", "name", b"n\0"), ("__data_loc u32[]", "list", b"\5\0\0\0"), ("void *", "p", 16), ("u64", "wide", 1 << 63)]  # fmt: skip
    text = rendered("broken", *fields).text
    assert text == "comm=sh pair={0x1,0x2} s=616263 name=n list={0x5} p=0x10 wide=9223372036854775808"


def test_generic_fields_of_hostile_words():
    field = FieldFormat("s", "__data_loc char[]", 8, 4, is_signed=False)
    form = EventFormat("x", "y", (*COMMON, field), "broken")
    record = bytes(8) + b"\xff\xff\xff\xff"
    assert render_record(compile_print(form), record).text == "s=<cut>"
