"""Whole lines: C writes what the twin writes, whatever the pages and options; nothing that was lost is dropped."""

import random
from array import array
from pathlib import Path

import pytest

from tracefile.making import content_of, layout_of, tick
from tracefile.making import written as written_file
from tracepoint.record.write import write_pages
from tracepoint.tracefile import linewriter
from tracepoint.tracefile.buffers import TraceBuffer
from tracepoint.tracefile.cpudata import CpuData
from tracepoint.tracefile.linewriter import LineWriter
from tracepoint.tracefile.recording import read_tgids
from tracepoint.tracefile.text import TextWriter, facts_of, flags_text
from tracepoint.tracefile.textoptions import TextOptions
from tracepoint.tracefile.tracedat import read_tracedat

GOLDEN = Path(__file__).resolve().parent / "golden"
needs_c = pytest.mark.skipif(linewriter.DECODE is None, reason="tracepoint._decode is not built")
OPTIONS = {
    "default": TextOptions(clock="global"),
    "tgid": TextOptions(clock="global", record_tgid=True),
    "counter": TextOptions(clock="counter"),
    "plain": TextOptions(clock="global", irq_info=False),
    "bare": TextOptions(clock="global", context_info=False),
    "latency": TextOptions(clock="global", latency_format=True),
}


def written(trace, buffer, options, shown=None, overruns=False):
    """The text and the notes of a buffer."""
    facts, tgids = facts_of(trace), read_tgids("1 1\n15 15\n")
    writer = TextWriter(trace.events, facts, options, tgids, is_big_endian=trace.is_big_endian)
    maker = LineWriter(writer, trace.events)
    if shown is not None:
        buffer = buffer.sifted(programs=dict.fromkeys(shown))
    blocks = maker.blocks(buffer, has_overruns=overruns)
    return b"".join(bytes(block) for block in blocks), writer.notes


def both(monkeypatch, *args, **how):
    quick = written(*args, **how)
    with monkeypatch.context() as patch:
        patch.setattr(linewriter, "DECODE", None)
        slow = written(*args, **how)
    assert quick == slow
    return quick


@pytest.fixture(scope="module")
def golden():
    return read_tracedat((GOLDEN / "cut.v6.dat").read_bytes())


@needs_c
@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("overruns", [False, True])
def test_every_option(monkeypatch, golden, name, overruns):
    text, notes = both(monkeypatch, golden, golden.buffers[0], OPTIONS[name], overruns=overruns)
    assert text.count(b"\n") >= 400
    assert notes
    assert (b"buffer started" in text) == overruns


@needs_c
def test_chosen_events(monkeypatch, golden):
    shown = {number for number, event in golden.events.items() if event.name == "sched_switch"}
    text, _ = both(monkeypatch, golden, golden.buffers[0], OPTIONS["default"], shown)
    assert text.count(b"\n") == text.count(b": sched_switch: ") == 10


@needs_c
@pytest.mark.parametrize("is_lazy", [False, True])
def test_all_flags(monkeypatch, is_lazy):
    layout = layout_of()
    records = [(10 * n, tick(n, flags=n, count=n)) for n in range(256)]
    trace = read_tracedat(written_file(content_of(n_records=1)))
    buffer = TraceBuffer("", "mono", (small(0, [write_pages(records, layout)], layout),))
    text, _ = both(monkeypatch, trace, buffer, TextOptions(clock="mono", is_from_6_13=is_lazy))
    shown = [line.split()[2].decode() for line in text.splitlines()]
    assert shown == [flags_text(n, n, may_be_lazy=is_lazy) for n in range(256)]


def damaged(buffer, rng):
    cpus = []
    for cpu in buffer.cpus:
        data = bytearray(b"".join(cpu.blocks()))
        for _ in range(rng.randrange(1, 200)):
            data[rng.randrange(len(data))] = rng.choice((0, 1, 29, 30, 31, 255, rng.randrange(256)))
        cpus.append(CpuData(cpu.cpu, 0, len(data), cpu.layout, bytes(data)))
    return TraceBuffer("", "global", tuple(cpus))


@pytest.mark.thorough
@needs_c
def test_damaged_pages(monkeypatch, golden):
    for seed in range(25):
        rng = random.Random(seed)
        shown = None if rng.random() < 0.5 else set(rng.sample(sorted(golden.events), 20))
        both(
            monkeypatch,
            golden,
            damaged(golden.buffers[0], rng),
            OPTIONS["default"],
            shown,
            rng.random() < 0.5,
        )


def small(cpu, pages, layout):
    data = b"".join(pages)
    return CpuData(cpu, 0, len(data), layout, data)


def test_what_was_lost_before_hidden_records_is_not_shown_before_others(monkeypatch, golden):
    """Also when a block of pages ends in between."""
    layout = layout_of(False, 8)
    number = {event.name: n for n, event in golden.events.items()}

    def page(stamp, name, lost):
        record = number[name].to_bytes(2, "little") + bytes(70)
        page = bytearray(write_pages([(stamp, record)], layout))
        if lost:
            commit = int.from_bytes(page[8:16], "little")
            page[8:16] = (commit | 1 << 31 | 1 << 30).to_bytes(8, "little")
            page[16 + commit : 24 + commit] = lost.to_bytes(8, "little")
        return bytes(page)

    pages = [page(10, "sched_waking", 3), page(20, "sched_waking", 4), page(30, "sched_switch", 0)]
    buffer = TraceBuffer(
        "", "global", (small(0, pages, layout), small(1, [page(15, "sched_switch", 5)], layout))
    )
    monkeypatch.setattr("tracepoint.tracefile.cpudata._BLOCK", layout.page_size)
    shown = {number["sched_switch"]}
    text, _ = both(monkeypatch, golden, buffer, OPTIONS["default"], shown)
    assert [line.split(b"]")[0] for line in text.splitlines() if line.startswith(b"CPU:")] == [
        b"CPU:1 [LOST 5 EVENTS",
    ]


@needs_c
def test_wrong_arguments_are_errors():
    decode = linewriter.DECODE
    with pytest.raises(TypeError):
        decode.render_lines()
    with pytest.raises(TypeError):
        decode.line_writer()
    prints = decode.load_prints([], 0, False)
    none, unknown = array("Q"), (array("Q", [0, 0, 0]), b"")
    tables = [b"", none, b"", none, b"", *unknown]
    for at, wrong, words in (
        (0, b"1234", "tables"),
        (1, array("Q", [1]), "end"),
        (4, array("Q", [0, 5, 2, 5]), "end"),
        (5, none, "tables"),
    ):
        damaged = [*tables[:at], wrong, *tables[at + 1 :]]
        if at == 4:
            damaged = [*tables[:3], wrong, b"12345", *unknown]
        with pytest.raises(ValueError, match=words):
            decode.line_writer(prints, *damaged, 0, None)
    with pytest.raises(ValueError, match="PyCapsule"):
        decode.line_notes(prints)
    writer, room = decode.line_writer(prints, *tables, 0, None)
    out = bytearray(room)
    with pytest.raises(TypeError, match="tuple"):
        decode.render_lines(writer, b"", out, 0, (3,))
    for start, size in ((0, room - 1), (1, room), (-1, room), (room + 1, room)):
        with pytest.raises(ValueError, match="room"):
            decode.render_lines(writer, b"", bytearray(size), start, ())
    with pytest.raises(ValueError, match="table of texts"):
        decode.render_lines(writer, b"1", out, 0, ())
    columns = (b"", bytes(8), bytes(8), bytes(3), b"", bytearray(40))
    with pytest.raises(ValueError, match="lengths"):
        decode.render_lines(writer, b"", out, 0, (columns,))
    outside = (b"", bytes(8), b"\xff" * 8, bytes(4), b"", bytearray(14 * 8))
    assert decode.render_lines(writer, b"", out, 0, (outside,)) == (0, [])
    assert decode.line_notes(writer) == []
