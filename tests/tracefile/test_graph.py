"""The layout of function_graph: what recordings of guests do not show."""

import random
import struct
from dataclasses import replace

import pytest

from printk.making import COMMON
from tracepoint.layout.format import EventFormat, FieldFormat
from tracepoint.printk.facts import RenderFacts
from tracepoint.printk.kallsyms import Kallsyms
from tracepoint.record.raw import RawRecord
from tracepoint.tracefile.graph import GraphLayout, duration_text, graph_header
from tracepoint.tracefile.text import TextWriter
from tracepoint.tracefile.textoptions import GraphOptions, TextOptions, with_option

FUNC, DEPTH = (
    FieldFormat("func", "unsigned long", 8, 8, is_signed=False),
    FieldFormat("depth", "int", 16, 4, is_signed=True),
)
TIMES = tuple(
    FieldFormat(name, "unsigned long long", at, 8, is_signed=False)
    for name, at in (("calltime", 24), ("rettime", 32), ("retval", 40))
)
OVERRUN = FieldFormat("overrun", "unsigned int", 20, 4, is_signed=False)
EVENTS = {
    11: EventFormat("ftrace", "funcgraph_entry", (*COMMON, FUNC, DEPTH), "", 11),
    10: EventFormat("ftrace", "funcgraph_exit", (*COMMON, FUNC, DEPTH, OVERRUN, *TIMES), "", 10),
}
IRQ, WORK, DEEP = 0xFFFFFFFF81000100, 0xFFFFFFFF81000200, 0xFFFFFFFF81000300
SYMBOLS = Kallsyms(
    "ffffffff81000000 T _stext\nffffffff81000100 T __irqentry_text_start\nffffffff81000100 T on_irq\n"
    "ffffffff81000180 T __irqentry_text_end\nffffffff81000200 T work\nffffffff81000300 T deep\nffffffff81000400 T _end\n"
)


def enter(time, function, depth, pid=7, cpu=0, lost=0):
    return RawRecord(time, cpu, struct.pack("<HBBiQi", 11, 0, 0, pid, function, depth), lost)


def leave(time, function, depth, duration=1000, pid=7, cpu=0, value=0, lost=0):
    data = struct.pack(
        "<HBBiQiIQQQ", 10, 0, 0, pid, function, depth, 3, (time - duration) % 2**64, time, value
    )
    return RawRecord(time, cpu, data, lost)


def graph(*records, words="", facts=None):
    options = TextOptions(tracer="function_graph", n_cpus=2)
    for word in words.split():
        options = with_option(options, word)
    writer = TextWriter(
        EVENTS, facts or RenderFacts(kallsyms=SYMBOLS, comms={7: "worker/0:1", 8: "sh"}), options
    )
    streams = [[r for r in records if r.cpu == cpu] for cpu in (0, 1)]
    return "".join(GraphLayout(writer).lines(streams)), writer


def lines(*records, words="nofuncgraph-duration"):
    return graph(*records, words=words)[0].split("\n")[:-1]


def test_interrupts_are_marked():
    records = (enter(1, WORK, 0), enter(2, IRQ, 1), leave(3, IRQ, 1), leave(4, WORK, 0))
    assert lines(*records) == [
        " 0) work() {", " 0) ==========>", " 0)   __irqentry_text_start();", " 0) <==========", " 0) }",
    ]  # fmt: skip
    with_column = lines(*records, words="")
    assert with_column[1] == " 0)   ==========> |"
    nested = (enter(1, IRQ, 0), enter(2, DEEP, 1), leave(3, DEEP, 1), leave(4, IRQ, 0))
    assert lines(*nested)[-2:] == [" 0) }", " 0) <=========="]


def test_interrupts_are_hidden_on_request():
    records = (
        enter(1, WORK, 0), enter(2, IRQ, 1), enter(3, DEEP, 2), leave(4, DEEP, 2), leave(5, IRQ, 1),
        enter(6, DEEP, 1), leave(7, DEEP, 1), leave(8, WORK, 0),
    )  # fmt: skip
    words = "nofuncgraph-duration nofuncgraph-irqs"
    assert lines(*records, words=words) == [" 0) work() {", " 0)   deep();", " 0) }"]


def test_a_leaf_is_one_line_whatever_another_cpu_does():
    records = (enter(1, WORK, 0), enter(2, WORK, 0, cpu=1), enter(3, DEEP, 1, cpu=1), leave(4, WORK, 0))
    assert lines(*records) == [" 0) work();", " 1) work() {", " 1)   deep() {"]


@pytest.mark.parametrize(
    "end",
    [leave(2, DEEP, 0), leave(2, WORK, 0, pid=8), leave(2, WORK, 0, lost=4)],
    ids=["other", "pid", "lost"],
)
def test_what_is_no_leaf(end):
    assert lines(enter(1, WORK, 0), end)[0] == " 0) work() {"


def test_a_loss_is_told_before_what_follows_it():
    shown = lines(enter(1, WORK, 0), leave(2, WORK, 0, lost=4))
    assert shown == [" 0) work() {", "CPU:0 [LOST 4 EVENTS]", " 0) }"]


def test_a_return_without_its_entry_is_named():
    assert lines(leave(2, WORK, 1)) == [" 0)   } /* work */"]


def test_a_switch_of_tasks():
    shown = lines(leave(1, WORK, 0), leave(2, DEEP, 0, pid=8), words="funcgraph-proc")
    assert shown[1:5] == [f" {42 * '-'}", " 0)   worker/-7    =>      sh-8     ", f" {42 * '-'}", ""]
    assert shown[0] == " 0)   worker/-7    |   1.000 us    |  } /* work */"


def test_return_values():
    error = (1 << 64) - 22
    records = (
        enter(1, WORK, 0),
        enter(2, DEEP, 1),
        leave(3, DEEP, 1, value=error),
        leave(4, WORK, 0, value=18),
    )
    words = "nofuncgraph-duration funcgraph-retval"
    assert lines(*records, words=words)[1:] == [" 0)   deep(); /* = -22 */", " 0) } /* work = 0x12 */"]
    shown = lines(*records, words=f"{words} funcgraph-retval-hex")
    assert shown[1] == f" 0)   deep(); /* = {error:#x} */"
    assert lines(leave(1, WORK, 0, value=0xFFFFFFEA), words=words) == [" 0) } /* work = -22 */"]


@pytest.mark.parametrize(
    ("duration", "text"),
    [(0, "0.000 us    "), (9999, "9.999 us    "), (123456789, "123456.7 us "), (1234567890, "1234567 us  "),
     (12345678901, "12345678 us "), (12345678, "12345.67 us ")],
)  # fmt: skip
def test_durations(duration, text):
    assert duration_text(duration) == text


def test_marks_of_long_calls():
    marks = [graph(leave(10**10, WORK, 0, duration=10**n + 1))[0].split(")")[1][1] for n in range(3, 10)]
    assert "".join(marks) == " +!#*@$"


def test_records_that_are_cut_off_are_no_calls():
    text, writer = graph(RawRecord(1, 0, enter(1, WORK, 0).data[:12], 0))
    assert text == " 0)               |  /* func=<cut> depth=<cut> */\n"
    assert writer.notes


def test_without_symbols_addresses_are_shown_and_noted():
    text, writer = graph(enter(1, WORK, 0), facts=RenderFacts())
    assert f"0x{WORK:x}() {{" in text
    assert "symbols are not known" in next(iter(writer.notes))


def test_header_without_records_in_latency_format():
    writer = TextWriter(EVENTS, options=TextOptions(tracer="function_graph", latency_format=True))
    assert graph_header(writer, 0, 0, 1) == "# tracer: function_graph\n#\n"


@pytest.mark.parametrize("depth", [1025, (1 << 31) - 1])
def test_a_depth_that_cannot_be_takes_no_room(depth):
    text, writer = graph(enter(1, WORK, depth))
    assert f"/* func={WORK} depth={depth} */" in text
    assert writer.notes
    assert lines(enter(1, WORK, -5)) == [" 0) work() {"]


def test_return_values_of_later_kernels():
    records = (enter(1, WORK, 0), enter(2, DEEP, 1), leave(3, DEEP, 1, value=3), leave(4, WORK, 0))
    options = replace(
        TextOptions(tracer="function_graph", n_cpus=2, is_from_6_13=True), graph=GraphOptions(retval=True)
    )
    shown = "".join(GraphLayout(TextWriter(EVENTS, RenderFacts(kallsyms=SYMBOLS), options)).lines([records]))
    assert "deep(); /* ret=0x3 */\n" in shown
    assert "} /* work ret=0x0 */\n" in shown


def test_calls_on_their_own_read_as_their_format_says():
    print_fmt = '"--> %ps (%d)", (void *)REC->func, REC->depth'
    event = EventFormat("ftrace", "funcgraph_entry", EVENTS[11].fields, print_fmt, 11)
    writer = TextWriter({11: event}, RenderFacts(kallsyms=SYMBOLS))
    assert writer.body(enter(1, WORK, 3)) == "--> work (3)"
    assert not writer.notes


@pytest.mark.thorough
def test_damaged_records_are_shown_as_far_as_they_go():
    rng = random.Random(1)
    whole = [enter(1, WORK, 0), enter(2, DEEP, 1), leave(3, DEEP, 1), leave(4, WORK, 0)]
    for _ in range(500):
        records = []
        for record in whole:
            data = bytearray(record.data)
            data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
            records.append(
                record._replace(data=bytes(data[: rng.choice((len(data), rng.randrange(len(data) + 1)))]))
            )
        words = rng.choice(
            ("", "nofuncgraph-irqs", "latency-format", "funcgraph-proc funcgraph-abstime", "raw")
        )
        text, _ = graph(*records, words=words)
        assert len(text) < 20_000
        assert text == "" or text.endswith("\n")


def test_no_more_names_and_contexts_are_kept_than_fit(monkeypatch):
    records = [enter(n, WORK + 0x100 * (n % 3), 0, pid=n % 5) for n in range(30)]
    expected = lines(*records)
    monkeypatch.setattr("tracepoint.tracefile.graph._MOST_KEPT", 2)
    assert lines(*records) == expected
