"""Recordings as CTF: what we read back is what was recorded, and babeltrace2 shows the same."""

from __future__ import annotations

import struct

import pytest

import tracepoint as tp
from tracefile import babeltrace
from tracefile.making import GOLDEN, content_of, layout_of, tick, tick_format, written
from tracepoint.cli.main import main
from tracepoint.record.layout import header_page_text
from tracepoint.record.write import PageWriter
from tracepoint.tracefile.content import BufferContent, CpuPages, TraceContent

CUT = GOLDEN / "cut.v6.dat"
COMMON = tick_format().split("\n\n")[0].partition("format:\n")[2]
KINDS = (
    f"name: kinds\nID: 401\nformat:\n{COMMON}\n\n"
    "\tfield:u8 small;\toffset:8;\tsize:1;\tsigned:0;\n"
    "\tfield:short list[3];\toffset:10;\tsize:6;\tsigned:1;\n"
    "\tfield:double half;\toffset:16;\tsize:8;\tsigned:1;\n"
    "\tfield:void * where;\toffset:24;\tsize:8;\tsigned:0;\n"
    "\tfield:__data_loc char[] name;\toffset:32;\tsize:4;\tsigned:1;\n"
    "\tfield:__rel_loc u32[] numbers;\toffset:36;\tsize:4;\tsigned:0;\n"
    "\tfield:struct pair both;\toffset:40;\tsize:5;\tsigned:0;\n"
    "\tfield:float third;\toffset:48;\tsize:4;\tsigned:1;\n"
    "\tfield:u16 rest[];\toffset:52;\tsize:0;\tsigned:0;\n\n"
    'print fmt: "%u", REC->small\n'
)


def kinds(order):
    fixed = struct.pack(f"{order}HBBiBxhhhdQ", 401, 1, 2, 7, 200, -1, 0, 1, 0.5, (1 << 64) - 2) + struct.pack(
        f"{order}II", 4 << 16 | 52, 8 << 16 | (56 - 40)
    )
    fixed += b"abcde\0\0\0" + struct.pack(f"{order}f", -0.25)
    return fixed + b"hi\xff\0" + struct.pack(f"{order}II", 5, 1 << 31)


def recording(records, *, is_big_endian=False, long_size=8, formats=("tick", "kinds")):
    """A trace.dat of records as (time, bytes, lost before it) by CPU."""
    layout = layout_of(is_big_endian, long_size)
    cpus = []
    for cpu, some in records.items():
        writer = PageWriter(layout)
        for stamp, data, lost in some:
            if lost:
                writer.lose(lost)
            writer.add(stamp, data)
        cpus.append(CpuPages(cpu, (writer.pages(),)))
    texts = {"tick": tick_format(long_size), "kinds": KINDS}
    content = TraceContent(
        (BufferContent(tuple(cpus), "", "x86-tsc"),),
        tuple(("demo", texts[name]) for name in formats),
        header_page_text(layout),
        saved_cmdlines="7 wor ker\n",
        n_cpus=max(records) + 1,
        is_big_endian=is_big_endian,
        long_size=long_size,
    )
    return written(content)


def opened(tmp_path, data):
    path = tmp_path / "trace.dat"
    path.write_bytes(data)
    return tp.open_trace(path)


def both(trace, folder):
    """Write a trace and open what was written."""
    tp.write_ctf(trace, folder)
    return tp.open_trace(folder)


def same_tables(one, other, but=()):
    assert other.damage == ()
    assert (one.events, one.span, one.lost) == (other.events, other.span, other.lost)
    for name, table in one.tables().items():
        again = other[name]
        assert set(again.columns) == set(table.columns)
        for column in set(table.columns) - set(but):
            assert again[column].tolist() == table[column].tolist(), (name, column)
            assert again.schema[column] == table.schema[column], (name, column)


def test_tables_are_the_same(tmp_path):
    with tp.open_trace(CUT) as trace, both(trace, tmp_path / "ctf") as read:
        same_tables(trace, read)
        assert read.clock == trace.clock
        names = dict(line.split(" ", 1) for line in trace.file.saved_cmdlines.splitlines())
        for line in read.file.saved_cmdlines.splitlines():
            pid, name = line.split(" ", 1)
            assert names[pid] == name


@pytest.mark.parametrize("is_big_endian", [False, True])
@pytest.mark.parametrize("long_size", [4, 8])
def test_byte_orders_and_losses(tmp_path, is_big_endian, long_size):
    order = ">" if is_big_endian else "<"
    some = [(10**9 + n, tick(n, is_big_endian=is_big_endian), 3 * (n == 40)) for n in range(100)]
    records = {0: some, 3: [(5, kinds(order), 0), (1 << 62, kinds(order), 2)]}
    data = recording(records, is_big_endian=is_big_endian, long_size=long_size)
    with opened(tmp_path, data) as trace, both(trace, tmp_path / "ctf") as read:
        # The bytes of a struct come back as a list of them.
        same_tables(trace, read, but=("both",))
        assert [bytes(row) for row in read["kinds"]["both"].tolist()] == trace["kinds"]["both"].tolist()
        assert read.lost == {0: 3, 3: 2}
        assert read.clock == "x86_tsc"
        assert read.file.saved_cmdlines == "7 wor ker\n"


@babeltrace.needs_babeltrace
@pytest.mark.oracle
@pytest.mark.parametrize("is_big_endian", [False, True, None])
def test_babeltrace_shows_the_same(tmp_path, is_big_endian):
    path = CUT
    if is_big_endian is not None:
        order = ">" if is_big_endian else "<"
        some = [(10**9 + n, tick(n, is_big_endian=is_big_endian), 3 * (n == 40)) for n in range(100)]
        path = tmp_path / "trace.dat"
        path.write_bytes(recording({0: some, 3: [(5, kinds(order), 0)]}, is_big_endian=is_big_endian))
    with tp.open_trace(path) as trace:
        tp.write_ctf(trace, tmp_path / "ctf")
        shown = babeltrace.events(tmp_path / "ctf")
        tables = {name: iter(table) for name, table in trace.tables().items()}
        found = [(record.timestamp, record.event) for record in trace.records()]
        assert [(one.stamp, one.name) for one in shown] == found
        for one in shown:
            row = next(tables[one.name])
            values = babeltrace.flat(one.parts)
            for name, value in row.items():
                theirs = {"common_cpu": "cpu_id", "common_pid": "tid"}.get(name, name)
                if theirs not in ("common_timestamp", "common_type"):
                    ours = [*value] if isinstance(value, bytes) else value
                    assert babeltrace.same(ours, values[theirs]), name
        lost = sum(n for n in trace.lost.values() if n > 0)
    assert (f"discarded {lost} events" in babeltrace.run(tmp_path / "ctf").stderr) is bool(lost)


def test_records_without_their_format(tmp_path):
    long, short = tick(1), tick(2)[:10]
    other = struct.pack("<HBBi", 999, 0, 0, 7) + b"data"
    data = recording({0: [(1, long, 0), (2, short, 0), (3, other, 0)]}, formats=("tick",))
    with opened(tmp_path, data) as trace, both(trace, tmp_path / "ctf") as read:
        assert read.events == {"demo:tick": 1, "unknown:999": 1, "unknown:demo.tick": 1}
        assert bytes(read["unknown:999"]["data"].tolist()[0]) == other
        assert bytes(read["unknown:demo.tick"]["data"].tolist()[0])[:10] == short


def test_times_that_go_back_are_streams_of_their_own(tmp_path):
    stamps = [50, 60, 40, 70, 45]
    data = recording({0: [(stamp, tick(stamp), 0) for stamp in stamps]})
    with opened(tmp_path, data) as trace, both(trace, tmp_path / "ctf") as read:
        assert read["tick"]["n"].tolist() == sorted(stamps)
        assert {path.name for path in (tmp_path / "ctf").iterdir()} == {
            "metadata",
            "channel0_0",
            "channel0_0_1",
        }
        if babeltrace.PROGRAM:
            assert babeltrace.run(tmp_path / "ctf").returncode == 0


def test_a_chosen_part(tmp_path):
    with tp.open_trace(CUT) as trace:
        part = trace.select("sched_switch").on_cpus(1)
        tp.write_ctf(part, tmp_path / "ctf")
        with tp.open_trace(tmp_path / "ctf") as read:
            assert read.events == part.events
            assert {path.name for path in (tmp_path / "ctf").iterdir()} == {"metadata", "channel0_1"}


def test_several_packets(tmp_path):
    content = content_of(n_records=9000)
    with opened(tmp_path, written(content)) as trace, both(trace, tmp_path / "ctf") as read:
        same_tables(trace, read)
        assert (tmp_path / "ctf/channel0_0").stat().st_size > 2 << 16


def test_names_that_are_no_words(tmp_path):
    text = tick_format().replace("u32 n;", "u32 n-1.x;").replace("name: tick", 'name: ti"ck')
    content = content_of(n_records=10)._replace(formats=(("de\\mo", text),))
    with opened(tmp_path, written(content)) as trace, both(trace, tmp_path / "ctf") as read:
        assert read.events == {'de\\mo:ti"ck': 10}
        assert read['ti"ck']["n_1_x"].tolist() == list(range(10))


def test_nothing_is_left_or_replaced(tmp_path):
    def fail(_):
        raise KeyboardInterrupt

    with tp.open_trace(CUT) as trace:
        with pytest.raises(KeyboardInterrupt):
            tp.write_ctf(trace, tmp_path / "ctf", fail)
        assert list(tmp_path.iterdir()) == []
        tp.write_ctf(trace, tmp_path / "ctf")
        with pytest.raises(FileExistsError):
            tp.write_ctf(trace, tmp_path / "ctf")


def test_command(tmp_path, capsys):
    folder = str(tmp_path / "ctf")
    assert main(["convert", str(CUT), folder, "sched", "--to", "ctf"]) == 0
    assert main(["stat", folder, "--quick"]) == 0
    assert "CTF 1.8" in capsys.readouterr().out
    # And back, in the other direction.
    assert main(["cut", folder, "-o", str(tmp_path / "back.dat")]) == 0
    with tp.open_trace(CUT) as trace, tp.open_trace(tmp_path / "back.dat") as back:
        assert back["sched_switch"]["next_comm"].tolist() == trace["sched_switch"]["next_comm"].tolist()
