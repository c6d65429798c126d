"""The graph as whole lines: C draws what the twin draws, whatever the pages, blocks and options."""

import base64
import random
from array import array
from dataclasses import replace

import pytest

from tracefile.making import layout_of, recorded_layouts
from tracefile.test_graph import DEEP, EVENTS, IRQ, SYMBOLS, WORK, enter, leave
from tracepoint.layout.format import read_format
from tracepoint.printk.facts import RenderFacts
from tracepoint.printk.kallsyms import Kallsyms
from tracepoint.record.layout import read_page_layout
from tracepoint.record.write import write_pages
from tracepoint.tracefile import linewriter
from tracepoint.tracefile.buffers import TraceBuffer
from tracepoint.tracefile.cpudata import CpuData
from tracepoint.tracefile.linewriter import LineWriter
from tracepoint.tracefile.recording import read_pairs
from tracepoint.tracefile.text import TextWriter
from tracepoint.tracefile.textoptions import TextOptions, with_option

pytestmark = pytest.mark.skipif(linewriter.DECODE is None, reason="tracepoint._decode is not built")
MADE = recorded_layouts()["6.12"]
WORDS = (
    "", "nofuncgraph-cpu", "nofuncgraph-duration", "nofuncgraph-overhead", "funcgraph-proc", "funcgraph-abstime",
    "nofuncgraph-irqs", "funcgraph-tail funcgraph-overrun", "funcgraph-retval", "funcgraph-retval funcgraph-retval-hex",
    "nocontext-info", "noirq-info funcgraph-proc nofuncgraph-cpu", "record-tgid sym-offset",
)  # fmt: skip
ADDRESSES = (0, 1, IRQ, IRQ + 0x40, WORK, DEEP, DEEP + 8, (1 << 64) - 1)


def written(events, facts, buffer, words, is_big=False, overruns=False):
    """The text and the notes of a buffer."""
    options = TextOptions(tracer="function_graph", n_cpus=12, is_from_6_13="hex" in words)
    for word in words.split():
        options = with_option(options, word)
    writer = TextWriter(events, facts, options, {7: 3}, is_big_endian=is_big)
    maker = LineWriter(writer, events)
    return b"".join(bytes(block) for block in maker.blocks(buffer, has_overruns=overruns)), writer.notes


def both(*args, **how):
    quick = written(*args, **how)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linewriter, "DECODE", None)
        slow = written(*args, **how)
    assert quick == slow
    return quick[0].decode("utf-8", "surrogateescape")


def recorded(rng=None):
    """The recording of a guest, with bytes changed at random places."""
    recording, layout = MADE["recordings"]["graph"], read_page_layout(MADE["header_page"])
    cpus = []
    for number, pages in enumerate(recording["pages"]):
        data = bytearray(base64.b64decode(pages))
        for _ in range(rng.randrange(1, 300) if rng else 0):
            data[rng.randrange(len(data))] = rng.choice((0, 1, 29, 30, 31, 255, rng.randrange(256)))
        cpus.append(CpuData(number, 0, len(data), layout, bytes(data)))
    events = {form.id: form for form in (read_format(text, system) for system, text in MADE["formats"])}
    comms = read_pairs(recording["saved_cmdlines"])
    facts = RenderFacts(kallsyms=Kallsyms(MADE["symbols"]), hz=250, comms=comms)
    return events, facts, TraceBuffer("", "local", tuple(cpus))


@pytest.mark.parametrize("words", WORDS)
def test_every_option(words):
    assert both(*recorded(), words, overruns=True).count("\n") > 1000


@pytest.mark.thorough
def test_damaged_pages():
    for seed in range(30):
        rng = random.Random(seed)
        both(*recorded(rng), rng.choice(WORDS), overruns=rng.random() < 0.5)


def test_without_symbols():
    events, facts, buffer = recorded()
    assert "0xffffffff" in both(events, replace(facts, kallsyms=None), buffer, "")


def test_an_entry_that_ends_a_block_is_a_leaf_all_the_same(monkeypatch):
    expected = both(*recorded(), "")
    monkeypatch.setattr("tracepoint.tracefile.cpudata._BLOCK", 4096)
    assert both(*recorded(), "") == expected


def random_call(rng, time):
    make = rng.choice((enter, leave))
    depth = rng.choice((-1, 0, 0, 1, 1, 2, 3, 49, 50, 51, 1024, 1025, -1024, -1025, 1 << 30))
    record = make(time, rng.choice(ADDRESSES), depth, pid=rng.choice((-1, 0, 7, 8, 1234567890)))
    if make is leave and rng.random() < 0.7:
        more = {"duration": rng.choice((0, 1, 9999, 10**7 + 1, 10**9, 10**12, 1 << 63)),
                "value": rng.choice((0, 1, (1 << 64) - 5, (1 << 32) - 7, (1 << 64) - 4096, 1 << 31))}  # fmt: skip
        record = leave(time, rng.choice(ADDRESSES), depth, pid=7, **more)
    data = record.data
    return data[: rng.choice((len(data), len(data), len(data), rng.randrange(4, len(data))))]


def random_buffer(rng, layout, swap=bytes):
    """Records of few functions and depths, so that many are leaves; the last may be an entry."""
    cpus = []
    for number in (0, 3, 11):
        records, time = [], rng.randrange(100)
        for _ in range(rng.randrange(60)):
            function, depth = rng.choice(ADDRESSES), rng.randrange(3)
            time += rng.choice((0, 1, 10**6))
            if rng.random() < 0.5:
                records += [
                    (time, enter(time, function, depth).data),
                    (time + 1, leave(time, function, depth).data),
                ]
                time += 1
            else:
                records.append((time, random_call(rng, time)))
        pages = [write_pages(records[at : at + 7], layout) for at in range(0, len(records), 7)]
        data = b"".join(map(bytes, pages))
        cpus.append(CpuData(number, 0, len(data), layout, data))
    return TraceBuffer("", "local", tuple(cpus))


@pytest.mark.thorough
def test_random_calls(monkeypatch):
    monkeypatch.setattr("tracepoint.tracefile.cpudata._BLOCK", 4096)
    n_leaves = 0
    for seed in range(200):
        rng = random.Random(seed)
        kallsyms = SYMBOLS if rng.random() < 0.8 else None
        facts = RenderFacts(kallsyms=kallsyms, comms={7: "wörker/0:1", 8: "sh", 0: "idle"})
        text = both(EVENTS, facts, random_buffer(rng, layout_of()), rng.choice(WORDS))
        n_leaves += text.count("();")
    assert n_leaves > 1000


def test_a_recording_that_ends_with_an_entry():
    data = write_pages([(1, enter(1, WORK, 0).data)], layout_of())
    buffer = TraceBuffer("", "local", (CpuData(0, 0, len(data), layout_of(), data),))
    assert both(EVENTS, RenderFacts(kallsyms=SYMBOLS), buffer, "").endswith("work() {\n")


def test_many_cpus_in_one_ring():
    layout = layout_of()
    cpus = []
    for number in range(100):
        data = write_pages([(number, enter(1, WORK, 0, pid=number).data)], layout)
        cpus.append(CpuData(number * 997, 0, len(data), layout, data))
    shown = both(
        EVENTS, RenderFacts(kallsyms=SYMBOLS), TraceBuffer("", "local", tuple(cpus)), "funcgraph-proc"
    )
    assert shown.count("work() {") == 100


def test_wrong_tables_are_errors():
    decode, none = linewriter.DECODE, array("Q")
    prints = decode.load_prints([], 0, False)
    tables = [b"", none, b"", none, b"", array("Q", [0, 0, 0]), b"", 0]
    reader = [1, 12, *(4, 3, 1), *(0, 2, 1), *(0,) * 12]
    good = [array("I", [0, 1, 2]), array("I", reader), array("Q", [1, 2]), b"ab", 0, 0, 2, 0]
    _, room = decode.line_writer(prints, *tables, tuple(good))
    assert room > decode.line_writer(prints, *tables, None)[1]
    for at, wrong in (
        (0, array("I", [3])),
        (1, array("I", [1, 11, *reader[2:]])),
        (1, array("I", [1, 12, 4, 8, *reader[4:]])),
        (1, array("I", [1, 12, 0xFFFFFFFF, *reader[3:]])),
        (2, array("Q", [1])),
        (2, array("Q", [1, 3])),
        (6, 21),
    ):
        with pytest.raises(ValueError, match=r"tables of a graph|end before"):
            decode.line_writer(prints, *tables, (*good[:at], wrong, *good[at + 1 :]))
    with pytest.raises(ValueError, match="tables of a graph"):
        decode.line_writer(prints, *tables, (*good[:2], array("Q", [1, 20]), b"a" * 20, *good[4:]))
    for wrong in ((), tuple(good[1:])):
        with pytest.raises(TypeError):
            decode.line_writer(prints, *tables, wrong)
    with pytest.raises(SystemError):
        decode.line_writer(prints, *tables, 3)
