"""`open_trace`: recorded files as tables, against the reader of single records."""

import struct
import sys
from contextlib import ExitStack

import pytest

import tracepoint as tp
from decode.test_columns import twin
from tracefile.making import GOLDEN, TICK_ID, content_of, tick, written
from tracepoint.decode import engine
from tracepoint.errors import DecodeError
from tracepoint.filter.error import FilterError
from tracepoint.record.field import field_values
from tracepoint.record.page import LOST_UNKNOWN
from tracepoint.record.write import PageWriter, write_pages
from tracepoint.tracefile.compression import has_zstd
from tracepoint.tracefile.content import BufferContent, CpuPages, TraceContent
from tracepoint.tracefile.options import Option, OptionId, text_option
from tracepoint.tracefile.tracedat import open_tracedat

FILES = ["cut.v6.dat"] + (["cut.v7.zstd.dat"] if has_zstd() else [])


def saved(tmp_path, content, version=7, compression="none"):
    path = tmp_path / "trace.dat"
    path.write_bytes(written(content, version, compression))
    return path


def slow_tables(path):
    """What the reader of records gives: by event, rows in the order of time."""
    found = {}
    with open_tracedat(path) as file:
        for record in file.buffers[0].records():
            form = file.events[record.id()]
            row = {"common_timestamp": record.timestamp, "common_cpu": record.cpu}
            row |= {
                field.name: int.from_bytes(record.data[field.offset : field.offset + field.size], "little")
                for field in form.common_fields
            }
            found.setdefault(f"{form.system}:{form.name}", []).append(row | field_values(form, record.data))
    return found


def as_slow(row):
    return {name: value.hex() if isinstance(value, bytes) else value for name, value in row.items()}


@pytest.mark.parametrize("name", FILES)
def test_every_value_of_a_recording_is_that_of_the_slow_reader(name):
    expected = slow_tables(GOLDEN / name)
    with tp.open_trace(GOLDEN / name) as trace:
        assert trace.events == {event: len(rows) for event, rows in sorted(expected.items())}
        assert trace.damage == ()
        tables = trace.tables()
        assert set(tables) == set(expected)
        for event, rows in expected.items():
            assert [as_slow(row) for row in tables[event].to_dicts()] == rows, event
            assert [as_slow(row) for row in trace[event]] == rows
        assert trace.span == (
            min(rows[0]["common_timestamp"] for rows in expected.values()),
            max(rows[-1]["common_timestamp"] for rows in expected.values()),
        )


@pytest.mark.skipif(engine.DECODE is None, reason="tracepoint._decode is not built")
def test_twin_reads_the_same_file():
    with tp.open_trace(GOLDEN / FILES[0]) as trace:
        quick = {name: table.to_dicts() for name, table in trace.tables().items()}
        facts = trace.events, trace.lost, trace.span
    with twin(), tp.open_trace(GOLDEN / FILES[0]) as trace:
        assert {name: table.to_dicts() for name, table in trace.tables().items()} == quick
        assert (trace.events, trace.lost, trace.span) == facts


@pytest.mark.parametrize("version", [6, 7])
@pytest.mark.parametrize("is_big_endian", [False, True])
def test_byte_orders_instances_and_names(tmp_path, version, is_big_endian):
    content = content_of(is_big_endian, n_records=20, instances=("other",))
    with tp.open_trace(saved(tmp_path, content, version)) as trace:
        table = trace["tick"]
        assert trace["demo:tick"].to_dicts() == table.to_dicts()
        assert table["n"].tolist() == list(range(20))
        assert table["common_cpu"].tolist() == [0, 1] * 10
        assert (trace.clock, trace.instances, trace.events) == ("mono", ("other",), {"demo:tick": 20})
        assert len(trace.open_instance("other")["tick"]) == 20
        with pytest.raises(KeyError, match="did you mean 'tick'"):
            trace["tik"]
        with pytest.raises(KeyError, match="did you mean 'other'"):
            trace.open_instance("othr")
        assert "tick" in trace
        assert "demo:tick" in trace
        assert "tik" not in trace
    with tp.open_trace(tmp_path / "trace.dat", instance="other") as trace:
        assert trace.n_records == 20
    with pytest.raises(KeyError):
        tp.open_trace(tmp_path / "trace.dat", instance="none")


def test_between_two_times(tmp_path):
    path = saved(tmp_path, content_of(n_records=4000))
    with tp.open_trace(path) as trace:
        start = 10**9 + 1000 * 1234
        part = trace.between(start, start + 5000)
        assert part["tick"]["n"].tolist() == [1234, 1235, 1236, 1237, 1238]
        assert part.events == {"demo:tick": 5}
        assert trace.between(None, start)["tick"]["n"].tolist() == list(range(1234))
        assert part.between(start + 1000, None).n_records == 4
        assert trace.between(5, 4).n_records == 0


def test_times_are_shown_as_the_recording_says(tmp_path):
    # Twice as many cycles as ns, 5 ns later.
    scale = Option(
        OptionId.TSC2NSEC, (1).to_bytes(4, "little") + (1).to_bytes(4, "little") + (5).to_bytes(8, "little")
    )
    content = content_of(n_records=50, options=(text_option(OptionId.TRACECLOCK, "[x86-tsc]"), scale))
    path = saved(tmp_path, content)
    expected = [row["common_timestamp"] for row in slow_tables(path)["demo:tick"]]
    with tp.open_trace(path) as trace:
        assert trace["tick"]["common_timestamp"].tolist() == expected
        assert trace.between(expected[10], expected[20])["tick"]["n"].tolist() == list(range(10, 20))
        assert trace.between(expected[10], expected[20]).events == {"demo:tick": 10}
        assert trace.span == (expected[0], expected[-1])
        with twin():
            assert trace.between(expected[10], expected[20])["tick"]["n"].tolist() == list(range(10, 20))
            assert trace.between(expected[10], None).span == (expected[10], expected[-1])


def content_with(blocks):
    content = content_of(n_records=0)
    layout = content.layout
    cpus = tuple(CpuPages(cpu, (block,)) for cpu, block in enumerate(blocks))
    return TraceContent(
        (BufferContent(cpus, "", "mono"),), content.formats, content.header_page, n_cpus=len(blocks)
    ), layout


def test_what_was_lost(tmp_path):
    _, layout = content_with([b""])
    writers = [PageWriter(layout) for _ in range(3)]
    for writer in writers:
        writer.add(1000, tick(1))
    writers[0].lose(7)
    writers[0].add(2000, tick(2))
    writers[0].lose(5)
    writers[0].add(3000, tick(3))
    writers[1].lose(LOST_UNKNOWN)
    writers[1].add(2000, tick(2))
    content, _ = content_with([writer.pages() for writer in writers])
    with tp.open_trace(saved(tmp_path, content)) as trace:
        assert trace.lost == {0: 12, 1: LOST_UNKNOWN, 2: 0}


def test_damage_is_counted_and_the_rest_is_read(tmp_path):
    _, layout = content_with([b""])
    good = write_pages([(1000 + n, tick(n)) for n in range(400)], layout)
    bad = bytearray(good)
    bad[4096 + 8 : 4096 + 16] = (5000).to_bytes(8, "little")
    strange = write_pages([(5, (TICK_ID + 1).to_bytes(2, "little") + bytes(10))], layout)
    content, _ = content_with([good, bytes(bad), strange])
    with tp.open_trace(saved(tmp_path, content)) as trace:
        assert 400 < len(trace["tick"]) < 800
        reasons = [damage.reason for damage in trace.damage]
        assert "a page claims 5000 bytes of data" in reasons
        assert f"1 record of unknown:{TICK_ID + 1}, which has no format" in reasons
        assert trace.n_records == len(trace["tick"]) + 1


@pytest.mark.parametrize("is_quick", [True, False])
@pytest.mark.parametrize("formats", [None, ()])
@pytest.mark.parametrize("is_big_endian", [False, True])
def test_records_without_a_format_are_chosen_as_others_are(tmp_path, formats, is_big_endian, is_quick):
    order = "big" if is_big_endian else "little"
    content = content_of(is_big_endian, n_records=0)
    strange = [
        (5 + n, (17 + n % 2).to_bytes(2, order) + bytes(2) + (n % 3).to_bytes(4, order)) for n in range(12)
    ]
    buffer = BufferContent(
        (CpuPages(0, ()), CpuPages(1, (write_pages(strange, content.layout),))), "", "mono"
    )
    content = content._replace(buffers=(buffer,), formats=content.formats if formats is None else formats)
    with ExitStack() as stack:
        if not is_quick:
            stack.enter_context(twin())
        trace = stack.enter_context(tp.open_trace(saved(tmp_path, content)))
        whole = {"unknown:17": 6, "unknown:18": 6}
        assert trace.events == whole
        for pattern in ("unknown:17", "unknown:?7", "17", "*:1[67]"):
            assert trace.select(pattern).events == {"unknown:17": 6}, pattern
        assert trace.select("unknown").events == trace.select("*").events == whole
        assert trace.select("tick").events == trace.select("un*:tick").events == {}
        assert trace.on_cpus(1).events == whole
        assert trace.on_cpus(0).events == {}
        assert trace.of_tasks(2).events == {"unknown:17": 2, "unknown:18": 2}
        assert [r.pid for r in trace.select("unknown:17").of_tasks(2).records()] == [2, 2]
        assert trace.where("common_pid == 1 && CPU == 1").n_records == 4
        with pytest.raises(FilterError, match="Field not found"):
            _ = trace.where("nosuch == 1").events
        with pytest.raises(KeyError, match="the recording has no format for event 17"):
            _ = trace["unknown:17"]


@pytest.mark.parametrize("n_files", [1, 2])
def test_closed_recording(n_files):
    trace = tp.open_trace([GOLDEN / FILES[0]] * n_files)
    table, part, events = trace["sched_switch"], trace.on_cpus(0), trace.events
    n_rows = len(table)
    undecoded = trace["sched_wakeup"]
    trace.close()
    uses = {
        "table": lambda: trace["sched_switch"],
        "column": lambda: undecoded["pid"],
        "records": lambda: next(trace.records()),
        "names": lambda: trace.of_tasks("sh"),
        "part": lambda: part.n_records,
        "order": lambda: trace.in_order,
    }
    for use in uses.values():
        with pytest.raises(DecodeError, match="the recording is closed"):
            use()
    assert (trace.events, len(table)) == (events, n_rows)
    assert repr(trace).endswith(", closed>")
    trace.close()


def test_reprs_are_short(tmp_path):
    path = saved(tmp_path, content_of(n_records=3))
    with tp.open_trace(path) as trace:
        assert repr(trace).startswith("<Trace ")
        table = trace["tick"]
        assert repr(table) == "<Table demo:tick, 8 columns, not decoded yet>"
        assert len(table) == 3
        assert repr(table) == "<Table demo:tick, 8 columns, 3 rows>"
        assert repr(table["n"]) == "<Column n, number, 3 rows>"
        assert table._repr_html_().count("<tr>") == 4
        assert table.schema["name"] == "dictionary<i, U>"


def test_another_interpreter_reads_it_too():
    interpreters = pytest.importorskip("_xxsubinterpreters", reason="Python has interpreters of another name")
    other = interpreters.create()
    program = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        "import tracepoint as tp\n"
        f"with tp.open_trace({str(GOLDEN / FILES[0])!r}) as trace:\n"
        "    table = trace['sched_switch']\n"
        "    assert (len(table), trace.n_records) == (10, 400)\n"
        "    assert table['prev_comm'].tolist()[0] == 'swapper/1'\n"
    )
    try:
        interpreters.run_string(other, program)
    finally:
        interpreters.destroy(other)


@pytest.mark.parametrize("is_quick", [True, False])
def test_a_stack_has_all_its_addresses(tmp_path, is_quick):
    text = (
        "name: kernel_stack\nID: 4\nformat:\n"
        "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
        "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
        "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
        "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
        "\tfield:int size;\toffset:8;\tsize:4;\tsigned:1;\n"
        "\tfield:unsigned long caller[8];\toffset:16;\tsize:64;\tsigned:0;\n\n"
        'print fmt: "\\t=> %ps", REC->caller[0]\n'
    )
    content = content_of(n_records=1)
    stacks = [[0xFFFFFFFF81000000 + n for n in range(size)] for size in (0, 2, 8, 30)]
    records = [
        (n, struct.pack(f"<HBBiii{len(stack)}Q", 4, 0, 0, 7, len(stack), 0, *stack))
        for n, stack in enumerate(stacks)
    ]
    cpus = (CpuPages(0, [write_pages(records, content.layout)]),)
    content = content._replace(formats=(("ftrace", text),), buffers=(BufferContent(cpus),))
    with tp.open_trace(saved(tmp_path, content)) as trace:
        if is_quick:
            assert trace["kernel_stack"]["caller"].tolist() == stacks
        else:
            with twin():
                assert trace["kernel_stack"]["caller"].tolist() == stacks


def test_a_notebook_shows_the_trace(tmp_path):
    with tp.open_trace(GOLDEN / FILES[0]) as trace:
        shown = trace._repr_html_()
        assert shown.count("<svg") == 1
        assert "CPU 0" in shown
        assert "kmem:kmem_cache_alloc" in shown
        assert "#d1242f" not in shown
        assert "<svg" not in trace.select("sched")._repr_html_()
        assert "<svg" in trace.between(trace.span[0], trace.span[0] + 50_000_000)._repr_html_()
    writer = PageWriter(content_of().layout)
    for n in range(300):
        if n == 150:
            writer.lose(12345)
        writer.add(n * 1000, tick(n))
    content = content_of(n_records=1)
    content = content._replace(buffers=(BufferContent((CpuPages(0, [writer.pages()]),)),))
    with tp.open_trace(saved(tmp_path, content)) as trace:
        shown = trace._repr_html_()
        assert "12,345 events were lost" in shown
        assert trace.losses(0) == [(150_000, 12345)]
    with tp.open_trace(saved(tmp_path, content._replace(buffers=(BufferContent(()),)))) as trace:
        assert "<svg" not in trace._repr_html_()
